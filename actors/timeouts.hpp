#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

// Every time limit of the actors, in one place, because some must be shorter than others. The
// static_asserts below are the rules between them.
namespace hone::timeouts {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// ---- requests to the pool

// How long the pool holds a request for a draw or a batch that it cannot serve yet. After that it
// refuses the request.
inline constexpr seconds pool_hold{15};
// How long a generator waits for a draw, and the learner for a batch, before they ask again.
inline constexpr seconds draw_request{20};
inline constexpr seconds batch_request{20};
// The pause before a generator repeats a request that the pool has refused.
inline constexpr milliseconds pool_retry{100};
// How long a generator waits until a group is durable, and the learner until a step is.
inline constexpr seconds submit_request{60};
inline constexpr seconds commit_request{60};
// How long the learner waits until a checkpoint is on disk.
inline constexpr minutes checkpoint_request{60};
// How long the pool waits for the groups of a validation before it hands over those that it has.
inline constexpr minutes validation{10};
// The pause before the learner asks for a comparison again for which there was no device.
inline constexpr seconds comparison_retry{1};
// How often the pool looks for overdue jobs, lost draws and requests that it has held too long.
inline constexpr milliseconds pool_tick{500};

// A reply that is sent after the requester has stopped waiting is lost, and with it the draw.
static_assert(pool_hold + 2 * pool_tick < draw_request);
static_assert(pool_hold + 2 * pool_tick < batch_request);

// ---- slices of work, between which an actor serves its mailbox

// A generator's sampling, if its device is not shared with a judge.
inline constexpr milliseconds sampling_slice{50};
// The learner's supervised updates, with and without a GPU lease.
inline constexpr milliseconds training_slice{200};
// A generator's sampling under a GPU lease. Up to four jobs pass between two leases, so the slice
// is longer.
inline constexpr milliseconds leased_sampling_slice{300};
// How long the learner waits before it checks again whether enough of the corpus is judged.
inline constexpr milliseconds corpus_poll{100};

// ---- GPU leases

// How long a lessee that has the GPU may make no progress (policy/work_progress.hpp). A device
// whose lessee makes none for longer counts as failed.
inline constexpr seconds gpu_lease{300};
// How long a lessee waits for its lease. The device may still be starting, or long jobs may be
// ahead of the request.
inline constexpr minutes gpu_lease_request{20};
// The pause before a lease that was refused is requested again.
inline constexpr milliseconds gpu_lease_retry{500};

static_assert(gpu_lease < gpu_lease_request);
static_assert(leased_sampling_slice < gpu_lease);

// ---- checkpoints on their way to joined nodes

// How long a generator waits for a checkpoint: that of a large policy, over a slow link.
inline constexpr minutes fetch_request{60};
// How long the fetcher goes on if no connection can be had, and the pause between two attempts.
inline constexpr minutes fetch_patience{5};
inline constexpr milliseconds fetch_retry{500};
// The pause before a generator asks again for a checkpoint that it did not get.
inline constexpr seconds fetch_again{10};

// ---- connections between nodes

// How long a run that has ended waits for its nodes to leave.
inline constexpr seconds goodbye{2};

// ---- supervision

// The pause before what has failed on a node is started again. It doubles with every restart.
inline constexpr milliseconds first_restart_pause{500};
inline constexpr milliseconds max_restart_pause{30000};

// ---- telemetry

inline constexpr milliseconds telemetry_interval{1000};
// How long telemetry waits for a status. It is long because an actor that computes replies late,
// and its reply carries the spans of that time.
inline constexpr minutes status_request{10};
// The last round of status requests, at the end of a run: per actor, and for all of them.
inline constexpr seconds last_status_request{4};
inline constexpr seconds last_status_round{5};
// The pause between two reports of a joined node is the interval or, if that is longer, this time
// multiplied by the number of nodes: the head reads at most a hundred reports a second.
inline constexpr milliseconds report_pause_for_each{10};
// A joined node whose last report is older than this many pauses is no longer listed.
inline constexpr int report_age_in_pauses = 30;

inline milliseconds report_pause(std::size_t nodes) {
  return std::max(telemetry_interval, static_cast<int>(nodes) * report_pause_for_each);
}

static_assert(last_status_request < last_status_round);

}  // namespace hone::timeouts

namespace hone {

// How two nodes notice that the other has died without a word: CAF sends a heartbeat each time that
// `every` has passed, and gives a connection up on which nothing has come for `lost_after`.
struct signs_of_life {
  std::chrono::milliseconds every{2000};
  std::chrono::milliseconds lost_after{15000};
};

// A connection is lost after as many heartbeats have failed to come.
inline constexpr int min_heartbeats_in_silence = 3;

}  // namespace hone
