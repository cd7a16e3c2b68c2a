#pragma once

// Every actor's interface, one comment a message. Handles and records are all that passes; a reader
// can follow a variant from top to bottom.

#include <caf/atom.hpp>
#include <caf/typed_actor.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "messages/caf_records.hpp"

namespace hone {

using draw_atom = caf::atom_constant<caf::atom("draw")>;
constexpr draw_atom draw_atom_v = draw_atom{};
using submit_atom = caf::atom_constant<caf::atom("submit")>;
constexpr submit_atom submit_atom_v = submit_atom{};
using put_atom = caf::atom_constant<caf::atom("put")>;
constexpr put_atom put_atom_v = put_atom{};
using pull_atom = caf::atom_constant<caf::atom("pull")>;
constexpr pull_atom pull_atom_v = pull_atom{};
using done_atom = caf::atom_constant<caf::atom("done")>;
constexpr done_atom done_atom_v = done_atom{};
using verify_atom = caf::atom_constant<caf::atom("verify")>;
constexpr verify_atom verify_atom_v = verify_atom{};
using measure_atom = caf::atom_constant<caf::atom("measure")>;
constexpr measure_atom measure_atom_v = measure_atom{};
using close_atom = caf::atom_constant<caf::atom("close")>;
constexpr close_atom close_atom_v = close_atom{};
using take_atom = caf::atom_constant<caf::atom("take")>;
constexpr take_atom take_atom_v = take_atom{};
using replay_atom = caf::atom_constant<caf::atom("replay")>;
constexpr replay_atom replay_atom_v = replay_atom{};
using commit_atom = caf::atom_constant<caf::atom("commit")>;
constexpr commit_atom commit_atom_v = commit_atom{};
using compare_atom = caf::atom_constant<caf::atom("compare")>;
constexpr compare_atom compare_atom_v = compare_atom{};
using branch_atom = caf::atom_constant<caf::atom("branch")>;
constexpr branch_atom branch_atom_v = branch_atom{};
using weights_atom = caf::atom_constant<caf::atom("weights")>;
constexpr weights_atom weights_atom_v = weights_atom{};
using connect_atom = caf::atom_constant<caf::atom("connect")>;
constexpr connect_atom connect_atom_v = connect_atom{};
using device_atom = caf::atom_constant<caf::atom("device")>;
constexpr device_atom device_atom_v = device_atom{};
using status_atom = caf::atom_constant<caf::atom("status")>;
constexpr status_atom status_atom_v = status_atom{};
using watch_atom = caf::atom_constant<caf::atom("watch")>;
constexpr watch_atom watch_atom_v = watch_atom{};
using join_atom = caf::atom_constant<caf::atom("join")>;
constexpr join_atom join_atom_v = join_atom{};
using tick_atom = caf::atom_constant<caf::atom("tick")>;
constexpr tick_atom tick_atom_v = tick_atom{};
using flush_atom = caf::atom_constant<caf::atom("flush")>;
constexpr flush_atom flush_atom_v = flush_atom{};
using stop_atom = caf::atom_constant<caf::atom("stop")>;
constexpr stop_atom stop_atom_v = stop_atom{};
using fatal_atom = caf::atom_constant<caf::atom("fatal")>;
constexpr fatal_atom fatal_atom_v = fatal_atom{};
using finish_atom = caf::atom_constant<caf::atom("finish")>;
constexpr finish_atom finish_atom_v = finish_atom{};
using lease_atom = caf::atom_constant<caf::atom("lease")>;
constexpr lease_atom lease_atom_v = lease_atom{};
using use_atom = caf::atom_constant<caf::atom("use")>;
constexpr use_atom use_atom_v = use_atom{};
using revive_atom = caf::atom_constant<caf::atom("revive")>;
constexpr revive_atom revive_atom_v = revive_atom{};

// What every actor that telemetry watches answers.
using observable = caf::replies_to<status_atom>::with<actor_status_record>;

// ---- a stage's workers and their queue

// Takes jobs that it has asked for.
template <class Job>
using worker_actor =
    caf::typed_actor<caf::reacts_to<Job>,  // a job to do, against one of its credits
                     observable>;

// First in, first out for each type of device; workers pull.
template <class Job>
using queue_actor = caf::typed_actor<
    caf::reacts_to<put_atom, Job>,  // a job from the stage before
    caf::reacts_to<pull_atom, std::vector<std::string>,
                   std::uint32_t>,  // the sender works for these device types ("*": all) and takes
                                    // so many jobs at once
    caf::reacts_to<done_atom, std::uint64_t, std::uint64_t>,  // the sender is done with this
                                                              // measurement id: its credit is back
    observable>;

using compile_worker = worker_actor<compile_job>;
using verify_worker = worker_actor<verify_job>;
using benchmark_worker = worker_actor<benchmark_job>;
using compile_queue = queue_actor<compile_job>;
using verify_queue = queue_actor<verify_job>;
using benchmark_queue = queue_actor<benchmark_job>;

// ---- the pool

using pool_actor = caf::typed_actor<
    caf::replies_to<draw_atom>::with<draw_record>,  // generator: what to write next; waits until
                                                    // there is room
    caf::replies_to<submit_atom, group_record>::with<done_atom>,  // generator, corpus: a group; the
                                                                  // answer means that it is durable
    caf::reacts_to<close_atom, evaluation_record>,                // any stage: a job's result
    caf::replies_to<take_atom, std::uint8_t, std::uint32_t, std::uint32_t, bool>::with<
        batch_record>,  // learner: (stage, at least, at most, even over the tasks); waits for them
    caf::replies_to<replay_atom, std::uint8_t>::with<std::vector<
        scored_group_record>>,  // learner: what was trained on in this stage, up to the head
    caf::replies_to<commit_atom, version_record,
                    step_record>::with<done_atom>,  // learner: a step, whose checkpoint is on disk
    caf::replies_to<branch_atom, std::uint64_t>::with<done_atom>,  // learner: go on from this
                                                                   // version
    caf::replies_to<compare_atom, std::vector<std::uint64_t>, std::uint32_t>::with<
        std::uint32_t>,  // learner: let these versions write so many samples a task; how many
                         // groups will come
    caf::reacts_to<connect_atom, compile_queue>,                    // where new work goes
    caf::reacts_to<device_atom, device_type_record, std::int32_t>,  // node: so many more (or fewer)
                                                                    // devices of this type
    caf::replies_to<status_atom, watch_atom>::with<run_status_record>,  // telemetry: where the run
                                                                        // stands
    caf::reacts_to<tick_atom>, caf::reacts_to<flush_atom>,              // itself
    caf::reacts_to<stop_atom>,                                          // no more draws
    observable>;

// ---- devices

using device_actor = caf::typed_actor<
    caf::replies_to<verify_atom, verify_job>::with<verdict_record>,  // verifier; its mailbox is the
                                                                     // lock that keeps timing
                                                                     // exclusive
    caf::replies_to<measure_atom, benchmark_job>::with<measurement_record>,  // benchmarker
    caf::replies_to<lease_atom, std::uint64_t, std::uint32_t>::with<
        done_atom>,  // a policy on the same GPU: the sender may use it in this turn of its, for so
                     // many ms at most; done when it says so
    observable>;

// Who leases a device.
using lessee_actor = caf::typed_actor<caf::replies_to<use_atom, std::uint64_t>::with<
    done_atom>>;  // device: it is this turn; nothing is verified or timed until the answer

// ---- policy

using generator_actor =
    caf::typed_actor<caf::reacts_to<weights_atom, version_record>,  // learner: write with these
                                                                    // from the next token on
                     caf::replies_to<use_atom, std::uint64_t>::with<done_atom>,  // device: as a
                                                                                 // lessee
                     caf::reacts_to<lease_atom>,  // itself: ask for a turn again
                     caf::reacts_to<tick_atom>,   // itself: write on
                     caf::reacts_to<stop_atom>,   // write no more
                     observable>;

using learner_actor =
    caf::typed_actor<caf::replies_to<use_atom, std::uint64_t>::with<done_atom>,  // device: as a
                                                                                 // lessee
                     caf::reacts_to<lease_atom>,  // itself: ask for a turn again
                     caf::reacts_to<tick_atom>,   // itself: the next piece of work
                     caf::reacts_to<stop_atom>,   // end the current step, commit, and say so
                     observable>;

// ---- nodes

using telemetry_actor = caf::typed_actor<
    caf::reacts_to<watch_atom, caf::strong_actor_ptr>,  // node: ask this actor from now on
    caf::reacts_to<node_status_record>,                 // another node's report
    caf::replies_to<status_atom>::with<std::vector<node_status_record>>,  // all nodes, as last
                                                                          // heard
    caf::replies_to<finish_atom>::with<done_atom>,  // launch: look a last time; the answer means
                                                    // that it has been shown
    caf::reacts_to<tick_atom>>;

using node_actor = caf::typed_actor<
    caf::replies_to<join_atom, join_record>::with<
        compile_queue, verify_queue, benchmark_queue, pool_actor,
        std::vector<task_record>>,  // a node that wants to help: where work is, and what it is
                                    // about
    caf::replies_to<status_atom>::with<std::vector<node_status_record>>,  // hone status
    caf::replies_to<lease_atom, std::string, std::uint64_t, std::uint32_t>::with<
        done_atom>,                      // generator, learner: passed on to the device of this name
    caf::reacts_to<node_status_record>,  // from a joined node, every second
    caf::reacts_to<device_atom, device_type_record, std::int32_t>,  // a joined node's device is
                                                                    // there, or gone
    caf::reacts_to<revive_atom, bool, std::uint32_t>>;  // itself: start this device (or compiler)
                                                        // again

}  // namespace hone

// What travels between nodes, by name.
CAF_BEGIN_TYPE_ID_BLOCK(hone, caf::first_custom_type_id)

CAF_ADD_TYPE_ID(hone, (hone::task_record))
CAF_ADD_TYPE_ID(hone, (hone::draw_record))
CAF_ADD_TYPE_ID(hone, (hone::group_record))
CAF_ADD_TYPE_ID(hone, (hone::compile_job))
CAF_ADD_TYPE_ID(hone, (hone::verify_job))
CAF_ADD_TYPE_ID(hone, (hone::benchmark_job))
CAF_ADD_TYPE_ID(hone, (hone::verdict_record))
CAF_ADD_TYPE_ID(hone, (hone::measurement_record))
CAF_ADD_TYPE_ID(hone, (hone::evaluation_record))
CAF_ADD_TYPE_ID(hone, (hone::batch_record))
CAF_ADD_TYPE_ID(hone, (hone::step_record))
CAF_ADD_TYPE_ID(hone, (hone::version_record))
CAF_ADD_TYPE_ID(hone, (hone::scored_group_record))
CAF_ADD_TYPE_ID(hone, (hone::device_type_record))
CAF_ADD_TYPE_ID(hone, (hone::join_record))
CAF_ADD_TYPE_ID(hone, (hone::actor_status_record))
CAF_ADD_TYPE_ID(hone, (hone::run_status_record))
CAF_ADD_TYPE_ID(hone, (hone::node_status_record))
CAF_ADD_TYPE_ID(hone, (hone::compile_queue))
CAF_ADD_TYPE_ID(hone, (hone::verify_queue))
CAF_ADD_TYPE_ID(hone, (hone::benchmark_queue))
CAF_ADD_TYPE_ID(hone, (hone::pool_actor))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::scored_group_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::node_status_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::actor_status_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::task_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::device_type_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<std::string>))
CAF_ADD_TYPE_ID(hone, (std::vector<uint64_t>))

CAF_END_TYPE_ID_BLOCK(hone)
