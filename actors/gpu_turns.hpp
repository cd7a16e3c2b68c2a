#pragma once

#include <caf/all.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "messages/interfaces.hpp"

namespace hone {

// The device that times variants on the GPU where a policy runs, if there is one.
struct shared_gpu {
  node_actor node;               // whose device it is; empty: nobody shares
  std::string device;            // "cuda:0"
  std::function<void()> finish;  // waits until the GPU has done what the policy asked for
};

// An actor's turns at the GPU that its policy runs on. Alone there, work is done at once. Where a
// device of the same node times variants on it, work waits until that device lends it: the device
// does nothing else until the work is done. One actor's; on its thread.
class gpu_turns {
 public:
  // Within which a piece of work must be done; the device is broken where it is not.
  static constexpr std::chrono::seconds longest_turn{300};

  explicit gpu_turns(shared_gpu gpu = {}) : gpu_(std::move(gpu)) {}
  bool are_shared() const { return static_cast<bool>(gpu_.node); }

  // Work is done in order. `self` answers (use_atom, turn) with `use`, and (lease_atom) with
  // `ask_again`.
  template <class Self>
  void take(Self self, std::function<void()> work) {
    if (!are_shared()) return work();
    waiting_.push_back(std::move(work));
    if (waiting_.size() == 1) ask(self);
  }
  // One piece of work, in the turn that was asked for last; another, which was given up, has
  // passed.
  template <class Self>
  void use(Self self, std::uint64_t turn) {
    if (turn != asked_ || waiting_.empty()) return;
    const std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    ++asked_;
    if (!waiting_.empty()) ask(self);
    work();
    gpu_.finish();
  }
  // The device was not there when a turn was asked for.
  template <class Self>
  void ask_again(Self self) {
    if (!waiting_.empty()) ask(self);
  }

 private:
  static constexpr auto longest_wait =
      std::chrono::minutes(20);  // for a device that starts, or has long jobs to do
  static constexpr auto pause = std::chrono::milliseconds(500);

  template <class Self>
  void ask(Self self) {
    const std::uint64_t turn = ++asked_;
    self->request(gpu_.node, longest_wait, lease_atom_v, gpu_.device, turn,
                  static_cast<std::uint32_t>(std::chrono::milliseconds(longest_turn).count()))
        .then([](done_atom) {},
              [this, self, turn](const caf::error&) {
                if (turn == asked_) self->delayed_send(self, pause, lease_atom_v);
              });
  }

  shared_gpu gpu_;
  std::deque<std::function<void()>> waiting_;
  std::uint64_t asked_ =
      0;  // the turn that counts; one that was given up or is over has another number
};

}  // namespace hone
