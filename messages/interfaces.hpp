#pragma once

// Declares every actor's interface, in the order in which a variant meets the actors. Only handles,
// records and plain values are sent. The comment on a message reads "SENDER: what the message asks,
// what the reply means".

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
using cancel_atom = caf::atom_constant<caf::atom("cancel")>;
constexpr cancel_atom cancel_atom_v = cancel_atom{};
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
using validate_atom = caf::atom_constant<caf::atom("validate")>;
constexpr validate_atom validate_atom_v = validate_atom{};
using repeat_atom = caf::atom_constant<caf::atom("repeat")>;
constexpr repeat_atom repeat_atom_v = repeat_atom{};
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
using grant_atom = caf::atom_constant<caf::atom("grant")>;
constexpr grant_atom grant_atom_v = grant_atom{};
using revive_atom = caf::atom_constant<caf::atom("revive")>;
constexpr revive_atom revive_atom_v = revive_atom{};
using leave_atom = caf::atom_constant<caf::atom("leave")>;
constexpr leave_atom leave_atom_v = leave_atom{};
using fetch_atom = caf::atom_constant<caf::atom("fetch")>;
constexpr fetch_atom fetch_atom_v = fetch_atom{};
using generate_atom = caf::atom_constant<caf::atom("generate")>;
constexpr generate_atom generate_atom_v = generate_atom{};
using corpus_atom = caf::atom_constant<caf::atom("corpus")>;
constexpr corpus_atom corpus_atom_v = corpus_atom{};
using judge_atom = caf::atom_constant<caf::atom("judge")>;
constexpr judge_atom judge_atom_v = judge_atom{};
using scale_atom = caf::atom_constant<caf::atom("scale")>;
constexpr scale_atom scale_atom_v = scale_atom{};

// The part of the interface that all actors have whose status telemetry requests.
using observable =
    // telemetry: requests the status; the reply holds the counts since the actor's start and the
    // spans since the last report
    caf::replies_to<status_atom>::with<actor_status_record>;

// ---- a stage's workers and their queue

// Takes jobs against the credits that it gave to its work queue.
template <class Job>
using worker_actor = caf::typed_actor<
    // work queue: hands out a job, which costs one credit
    caf::reacts_to<Job>,
    // node: takes no more jobs, and ends after those that it has
    caf::reacts_to<leave_atom>, observable>;

// Hands out jobs, first in, first out per device type, to workers with credits.
template <class Job>
using work_queue_actor = caf::typed_actor<
    // previous stage: puts a job into the queue
    caf::reacts_to<put_atom, Job>,
    // pool: nobody needs these measurements any more, the two halves of each id; jobs that no
    // worker has are dropped
    caf::reacts_to<cancel_atom, std::vector<std::uint64_t>>,
    // worker: adds credits, (device types, credits), for jobs of the types ("*": of all types)
    caf::reacts_to<pull_atom, std::vector<std::string>, std::uint32_t>,
    // worker: the job with this measurement id, (high, low), has gone on; its credit returns
    caf::reacts_to<done_atom, std::uint64_t, std::uint64_t>,
    // worker: the job has ended with this evaluation, which goes on to the pool; its credit returns
    caf::reacts_to<close_atom, evaluation_record>, observable>;

using compiler_actor = worker_actor<compile_job>;
using verifier_actor = worker_actor<verify_job>;
using benchmarker_actor = worker_actor<benchmark_job>::extend<
    // verifier of the same device: wants a measurement; the reply holds one evaluation, or none if
    // the job waits in the benchmark queue for another device to confirm it
    caf::replies_to<measure_atom, benchmark_job>::with<std::vector<evaluation_record>>>;
using compile_queue_actor = work_queue_actor<compile_job>;
using verify_queue_actor = work_queue_actor<verify_job>;
using benchmark_queue_actor = work_queue_actor<benchmark_job>;

// ---- the pool

// A draw or batch that is not available within 15 s is refused with caf::sec::request_timeout.
using pool_actor = caf::typed_actor<
    // generator: requests a draw; the reply comes when there is room for another group
    caf::replies_to<draw_atom>::with<draw_record>,
    // generator, launch (for the corpus): hands in a group; the reply means that it is durable
    caf::replies_to<submit_atom, group_record>::with<done_atom>,
    // work queue: reports the result of a job
    caf::reacts_to<close_atom, evaluation_record>,
    // learner: requests ready groups, (stage, at least, at most, even over the tasks, without
    // these); the reply comes when there are enough of them; a newer request replaces one that
    // still waits. What it does without is trained on, though not committed yet: the two halves of
    // each group's id
    caf::replies_to<take_atom, std::uint8_t, std::uint32_t, std::uint32_t, bool,
                    std::vector<std::uint64_t>>::with<batch_record>,
    // learner: requests the groups that the steps of this stage, up to the head, were trained on
    caf::replies_to<replay_atom, std::uint8_t>::with<std::vector<scored_group_record>>,
    // learner: commits a step and its version, whose checkpoint is on disk; the reply means that
    // both are durable
    caf::replies_to<commit_atom, version_record, step_record>::with<done_atom>,
    // learner: makes this version the head; the reply means that the choice is durable
    caf::replies_to<branch_atom, std::uint64_t>::with<done_atom>,
    // learner: starts a comparison; the reply is the number of groups to come, or an error if there
    // is no device at present
    caf::replies_to<compare_atom, comparison_record>::with<std::uint32_t>,
    // learner: wants greedy answers of the policy, as it is, to at most so many held-out tasks; the
    // reply has their groups when they are judged. An error means that there are none
    caf::replies_to<validate_atom, std::uint32_t>::with<batch_record>,
    // launch: wants the judgement of a group that a client handed in, (the halves of its id, the
    // longest wait in ms): the reply comes when the group is judged, or says that it waits. An
    // error means that the group is unknown
    caf::replies_to<judge_atom, std::uint64_t, std::uint64_t,
                    std::uint32_t>::with<judgement_record>,
    // launch: nobody waits for this group any more, (the halves of its id); the reply is its
    // judgement, as for judge_atom
    caf::replies_to<cancel_atom, std::uint64_t, std::uint64_t>::with<judgement_record>,
    // launch: a client handed in a task; the reply means that it is durable
    caf::replies_to<submit_atom, task_record>::with<done_atom>,
    // launch: names the work queues: the first one, to which new jobs are sent, and the one in
    // which most jobs wait
    caf::reacts_to<connect_atom, compile_queue_actor, verify_queue_actor>,
    // node: changes the number of devices of a type by the given number, which may be negative
    caf::reacts_to<device_atom, device_type_record, std::int32_t>,
    // node: a node has ended, or has joined anew; what its generators had is lost
    caf::reacts_to<leave_atom, caf::node_id>,
    // telemetry: requests the state of the run
    caf::replies_to<status_atom, watch_atom>::with<run_status_record>,
    // self, every 500 ms: hands out overdue jobs again, gives up old draws, refuses old requests
    caf::reacts_to<tick_atom>,
    // self: writes all changes, then sends the replies and jobs that depend on them
    caf::reacts_to<flush_atom>,
    // launch: ends the run; no more draws are made
    caf::reacts_to<stop_atom>, observable>;

// ---- devices

// Each request is a whole protocol; the mailbox is the lock that keeps timing exclusive.
using device_actor = caf::typed_actor<
    // verifier: requests a verdict on an artifact; an error means that it was not judged
    caf::replies_to<verify_atom, verify_job>::with<verdict_record>,
    // benchmarker: requests a measurement of an artifact; an error means that it was not judged
    caf::replies_to<measure_atom, benchmark_job>::with<measurement_record>,
    // lessee, through its node: requests a GPU lease, (number, limit in ms); the device sends
    // (grant_atom, number) to the lessee and replies when the lessee has answered
    caf::replies_to<lease_atom, std::uint64_t, std::uint32_t>::with<done_atom>, observable>;

// The part of a generator's or learner's interface that a device uses for a GPU lease.
using lessee_actor = caf::typed_actor<
    // device: grants the GPU lease of this number; the reply ends it, and the device verifies and
    // times nothing before the reply
    caf::replies_to<grant_atom, std::uint64_t>::with<done_atom>>;

// ---- policy

using generator_actor = caf::typed_actor<
    // learner, self: announces a version, whose weights are used from the next token on
    caf::reacts_to<weights_atom, version_record>,
    // device: grants the GPU lease of this number; the reply ends it
    caf::replies_to<grant_atom, std::uint64_t>::with<done_atom>,
    // self: requests the GPU lease again
    caf::reacts_to<lease_atom>,
    // self: continues to write
    caf::reacts_to<tick_atom>,
    // self: repeats the requests that the pool has refused
    caf::reacts_to<repeat_atom>,
    // launch: ends the run; no more is written
    caf::reacts_to<stop_atom>, observable>;

using learner_actor = caf::typed_actor<
    // generator: wants to hear of versions from now on, until it ends; the newest one is sent at
    // once
    caf::reacts_to<join_atom>,
    // launch: so many documents of the corpus enter the pool for this device type
    caf::reacts_to<corpus_atom, std::string, std::uint64_t>,
    // device: grants the GPU lease of this number; the reply ends it
    caf::replies_to<grant_atom, std::uint64_t>::with<done_atom>,
    // self: requests the GPU lease again
    caf::reacts_to<lease_atom>,
    // self: does the next piece of work
    caf::reacts_to<tick_atom>,
    // launch: stops the run; the learner ends and commits the current step, then sends finish_atom
    // to its supervisor
    caf::reacts_to<stop_atom>, observable>;

// Copies checkpoints from the first node to a joined one.
using fetcher_actor = caf::typed_actor<
    // generator: wants the checkpoint of a version; the reply is its folder. Unless it is pinned,
    // a request for a later version takes its place, and it is refused
    caf::replies_to<fetch_atom, std::uint64_t, bool>::with<std::string>,
    // self: goes on copying
    caf::reacts_to<tick_atom>, observable>;

// ---- nodes

using telemetry_actor = caf::typed_actor<
    // node: adds an actor to those whose status is requested
    caf::reacts_to<watch_atom, caf::strong_actor_ptr>,
    // node: forwards the report of a joined node
    caf::reacts_to<node_status_record>,
    // node: the joined node of this name is gone
    caf::reacts_to<leave_atom, std::string>,
    // node: requests the status of this node and the last report of each joined one
    caf::replies_to<status_atom>::with<std::vector<node_status_record>>,
    // launch: asks for a last round of status requests; the reply means that it has been shown
    caf::replies_to<finish_atom>::with<done_atom>,
    // self, at every interval: requests the status of all actors
    caf::reacts_to<tick_atom>>;

using node_actor = caf::typed_actor<
    // joining node: asks to join; the reply holds the work queues, the pool, the tasks and the
    // run's configuration as TOML, an error names the versions that differ
    caf::replies_to<join_atom, join_record>::with<compile_queue_actor, verify_queue_actor,
                                                  benchmark_queue_actor, pool_actor,
                                                  std::vector<task_record>, std::string>,
    // joined node: asks for what it needs to run so many generators
    caf::replies_to<generate_atom, std::uint64_t>::with<learner_actor, generator_setup_record>,
    // `hone status`: requests the status of all nodes, from telemetry
    caf::replies_to<status_atom>::with<std::vector<node_status_record>>,
    // generator, learner: requests a GPU lease, (device name, number, limit in ms); the node passes
    // the request on to the device
    caf::replies_to<lease_atom, std::string, std::uint64_t, std::uint32_t>::with<done_atom>,
    // telemetry of a joined node: reports its status; the reply is the pause until the next report
    // in ms, which grows with the number of nodes
    caf::replies_to<node_status_record>::with<std::uint32_t>,
    // joined node: takes part from now on, under this name, instead of any earlier node of the
    // name
    caf::reacts_to<join_atom, std::string>,
    // joined node: changes the number of its devices of a type by the given number
    caf::reacts_to<device_atom, device_type_record, std::int32_t>,
    // `hone scale`, or the first node: wants this number of devices of a type at work, on all nodes
    // or, sent to a joined node, on that node; the reply is the resulting number. Devices that stop
    // finish their jobs
    caf::replies_to<scale_atom, std::string, std::uint32_t>::with<std::uint32_t>,
    // launch: the run has ended; the reply comes when the joined nodes have left, or soon after.
    // The first node sends the message on to them
    caf::replies_to<stop_atom>::with<done_atom>,
    // self: starts a worker again, (its kind, its index)
    caf::reacts_to<revive_atom, std::uint8_t, std::uint32_t>>;

}  // namespace hone

// Types of values that are sent between nodes. CAF identifies them there by their names.
CAF_BEGIN_TYPE_ID_BLOCK(hone, caf::first_custom_type_id)

CAF_ADD_TYPE_ID(hone, (hone::task_record))
CAF_ADD_TYPE_ID(hone, (hone::draw_record))
CAF_ADD_TYPE_ID(hone, (hone::comparison_record))
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
CAF_ADD_TYPE_ID(hone, (hone::judgement_record))
CAF_ADD_TYPE_ID(hone, (hone::device_type_record))
CAF_ADD_TYPE_ID(hone, (hone::join_record))
CAF_ADD_TYPE_ID(hone, (hone::generator_setup_record))
CAF_ADD_TYPE_ID(hone, (hone::actor_status_record))
CAF_ADD_TYPE_ID(hone, (hone::run_status_record))
CAF_ADD_TYPE_ID(hone, (hone::node_status_record))
CAF_ADD_TYPE_ID(hone, (hone::compile_queue_actor))
CAF_ADD_TYPE_ID(hone, (hone::verify_queue_actor))
CAF_ADD_TYPE_ID(hone, (hone::benchmark_queue_actor))
CAF_ADD_TYPE_ID(hone, (hone::pool_actor))
CAF_ADD_TYPE_ID(hone, (hone::learner_actor))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::scored_group_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::node_status_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::actor_status_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::task_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::evaluation_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<hone::device_type_record>))
CAF_ADD_TYPE_ID(hone, (std::vector<std::string>))
CAF_ADD_TYPE_ID(hone, (std::vector<uint64_t>))

CAF_END_TYPE_ID_BLOCK(hone)
