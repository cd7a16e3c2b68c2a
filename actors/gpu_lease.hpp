#pragma once

#include <caf/all.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "actors/timeouts.hpp"
#include "messages/interfaces.hpp"
#include "policy/work_progress.hpp"

namespace hone {

// Names the device that times variants on the policy's GPU, if there is one.
struct shared_gpu {
  node_actor node;               // supervises the device; empty if the GPU is not shared
  std::string device;            // "cuda:0"
  std::function<void()> finish;  // blocks until the GPU has finished the policy's work
};

// Runs an actor's GPU work under GPU leases. If no device times variants on the GPU, work runs at
// once. Otherwise each piece of work waits for a lease, during which the device does nothing else.
// Belongs to one actor and is used on its thread only.
class gpu_lease {
 public:
  explicit gpu_lease(shared_gpu gpu = {}) : gpu_(std::move(gpu)) {}
  bool is_shared() const { return static_cast<bool>(gpu_.node); }

  // Runs `work` at once or under the next lease. Work runs in the order of the calls. `self` must
  // answer (grant_atom, number) with granted(), and (lease_atom) with request_again().
  template <class Self>
  void run(Self self, std::function<void()> work) {
    if (!is_shared()) return work();
    waiting_.push_back(std::move(work));
    if (waiting_.size() == 1) request(self);
  }
  // Runs one piece of work under the granted lease. Has no effect unless `number` is that of the
  // latest request, because earlier requests were given up.
  template <class Self>
  void granted(Self self, std::uint64_t number) {
    if (number != number_ || waiting_.empty()) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    ++number_;
    if (!waiting_.empty()) request(self);
    const counted_work counted(gpu_.device);
    work();
    note_progress();
    gpu_.finish();
  }
  // Repeats a request that was refused, for example because the device was being restarted.
  template <class Self>
  void request_again(Self self) {
    if (!waiting_.empty()) request(self);
  }

 private:
  template <class Self>
  void request(Self self) {
    const std::uint64_t number = ++number_;
    constexpr std::chrono::milliseconds limit = timeouts::gpu_lease;
    self->request(gpu_.node, timeouts::gpu_lease_request, lease_atom_v, gpu_.device, number,
                  static_cast<std::uint32_t>(limit.count()))
        .then([](done_atom) {},
              [this, self, number](const caf::error&) {
                if (number == number_)
                  self->delayed_send(self, timeouts::gpu_lease_retry, lease_atom_v);
              });
  }

  shared_gpu gpu_;
  std::deque<std::function<void()>> waiting_;
  // Number of the request that counts. A request that was given up, or whose lease is over, has
  // another number.
  std::uint64_t number_ = 0;
};

}  // namespace hone
