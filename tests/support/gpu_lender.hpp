#pragma once

#include <caf/all.hpp>

#include <atomic>
#include <memory>
#include <string>

#include "actors/gpu_turns.hpp"
#include "messages/interfaces.hpp"

namespace hone::testing_support {

// State of a gpu_lender, shared with the test.
struct lending {
  std::atomic<bool> is_lent = false;
  std::atomic<int> turns = 0;     // number of leases so far
  std::atomic<int> refusals = 0;  // number of requests still to refuse
};

// Stands in for a node with one GPU, "cuda:0", and leases it to one lessee at a time. It blocks
// during a lease, so spawn it detached.
inline caf::behavior gpu_lender(caf::event_based_actor* self,
                                const std::shared_ptr<lending>& lent) {
  return {[self, lent](lease_atom, const std::string& device, std::uint64_t turn,
                       std::uint32_t most_ms) -> caf::result<done_atom> {
    if (device != "cuda:0")
      return caf::make_error(caf::sec::runtime_error, "there is no such device");
    if (lent->refusals > 0) {
      --lent->refusals;
      return caf::make_error(caf::sec::runtime_error, "it is being started again");
    }
    lent->is_lent = true;
    ++lent->turns;
    caf::scoped_actor waiting(self->system());
    waiting
        ->request(caf::actor_cast<lessee_actor>(self->current_sender()),
                  std::chrono::milliseconds(most_ms), use_atom_v, turn)
        .receive([](done_atom) {}, [](const caf::error&) {});
    lent->is_lent = false;
    return done_atom_v;
  }};
}

// Returns the GPU that a gpu_lender leases.
inline shared_gpu gpu_lent_by(
    const caf::actor& lender, std::function<void()> finish = [] {}) {
  return {caf::actor_cast<node_actor>(lender), "cuda:0", std::move(finish)};
}

}  // namespace hone::testing_support
