#pragma once

#include <caf/all.hpp>

#include <memory>
#include <string>

#include "actors/gpu_lease.hpp"
#include "messages/interfaces.hpp"

namespace hone::testing_support {

// State of a gpu_lender, shared with the test.
struct lender_state {
  bool is_leased = false;
  int leases = 0;    // number of leases so far
  int refusals = 0;  // number of requests still to refuse
};

// Acts as a node with one GPU, "cuda:0", and leases it to one lessee at a time. Requests wait
// while it is leased.
inline caf::behavior gpu_lender(caf::event_based_actor* self,
                                const std::shared_ptr<lender_state>& state) {
  return {[self, state](lease_atom, const std::string& device, std::uint64_t number,
                        std::uint32_t max_ms) -> caf::result<done_atom> {
    if (device != "cuda:0")
      return caf::make_error(caf::sec::runtime_error, "there is no such device");
    if (state->refusals > 0) {
      --state->refusals;
      return caf::make_error(caf::sec::runtime_error, "the device is being started again");
    }
    state->is_leased = true;
    ++state->leases;
    const auto lessee = caf::actor_cast<lessee_actor>(self->current_sender());
    // Making the promise clears the sender of the current message, so this must come second.
    auto promise = self->make_response_promise<done_atom>();
    auto end_lease = [state, promise](const auto&) mutable {
      state->is_leased = false;
      promise.deliver(done_atom_v);
    };
    self->request(lessee, std::chrono::milliseconds(max_ms), grant_atom_v, number)
        .await([end_lease](done_atom done) mutable { end_lease(done); },
               [end_lease](const caf::error& error) mutable { end_lease(error); });
    return promise;
  }};
}

// Returns the GPU that a gpu_lender leases.
inline shared_gpu leased_gpu(
    const caf::actor& lender, std::function<void()> finish = [] {}) {
  return {caf::actor_cast<node_actor>(lender), "cuda:0", std::move(finish)};
}

}  // namespace hone::testing_support
