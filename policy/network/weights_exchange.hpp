#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "policy/network/decoder_weights.hpp"

namespace hone {

// Hands the newest weights from a learner to the generators of its process, on the device, so that
// no file is needed between a step and the first token of its weights. Safe on any thread.
class weights_exchange {
 public:
  struct offer {
    std::uint64_t version = 0;
    std::shared_ptr<const decoder_weights> weights;  // on the learner's device; never changed
    std::shared_ptr<const decoder_weights> on_host;  // empty unless generators are on other devices
    std::chrono::steady_clock::time_point made;
  };

  // Replaces the offer. The weights must be complete on their device, and must not be changed
  // later. A copy between two GPUs would disturb timings on either, which no lease of one of
  // them prevents, so generators on other devices get theirs by way of the host.
  void put(std::uint64_t version, decoder_weights weights, decoder_weights on_host = {}) {
    const std::scoped_lock guard(lock_);
    newest_ = offer{version, std::make_shared<const decoder_weights>(std::move(weights)),
                    std::make_shared<const decoder_weights>(std::move(on_host)),
                    std::chrono::steady_clock::now()};
  }
  // Returns the offer if it is of this version or a later one.
  std::optional<offer> find(std::uint64_t version) const {
    const std::scoped_lock guard(lock_);
    if (!newest_ || newest_->version < version) return std::nullopt;
    return newest_;
  }

 private:
  mutable std::mutex lock_;
  std::optional<offer> newest_;
};

}  // namespace hone
