#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "policy/network/decoder_weights.hpp"
#include "policy/training/distinct_rollouts.hpp"
#include "policy/work_progress.hpp"

namespace hone {

// Only for the .cpp files of this room, as it includes LibTorch.

// The weights on one of the devices that a trainer uses. Each update runs every replica on a part
// of the batch.
struct replica {
  at::Device device;
  std::optional<c10::Stream> stream{};  // of the trainer's own; none on a CPU
  decoder_weights weights{};            // with the adapters, if there are some
  decoder_weights adapters{};           // sharing their tensors with `weights`
  decoder_weights reference{};          // of the KL term; empty if there is none
};

// Calls `work(i, batch)` for each micro batch of the items with the index of the replica that is to
// compute it: one after the other on a thread of each replica. A micro batch goes to the replica
// that has the fewest tokens so far, and is closed at an equal part of all tokens. Throws what
// `work` throws, after all threads have ended.
template <class Item, class Work>
void for_replicas(std::span<const replica> replicas, std::span<Item> items, std::size_t tokens,
                  const Work& work) {
  const auto length = [](std::size_t sum, const auto& item) {
    return sum + item.all.tokens.size();
  };
  const std::size_t all = std::accumulate(items.begin(), items.end(), std::size_t{0}, length);
  const std::size_t most = std::min(tokens, (all + replicas.size() - 1) / replicas.size());
  std::vector<std::vector<std::vector<Item*>>> batches(replicas.size());
  std::vector<std::size_t> held(replicas.size());
  for_micro_batches(items, most, [&](std::span<Item* const> batch) {
    const auto least = std::min_element(held.begin(), held.end());
    for (const Item* item : batch) *least += item->all.tokens.size();
    batches[static_cast<std::size_t>(least - held.begin())].emplace_back(batch.begin(),
                                                                         batch.end());
  });
  const auto run = [&](std::size_t i) {
    const c10::OptionalStreamGuard guard(replicas[i].stream);
    for (const std::vector<Item*>& batch : batches[i]) {
      work(i, std::span<Item* const>(batch));
      note_progress();
    }
  };
  std::vector<std::future<void>> others;  // their destructors wait
  for (std::size_t i = 1; i < replicas.size(); ++i)
    others.push_back(std::async(std::launch::async, run, i));
  run(0);
  for (std::future<void>& other : others) other.get();
}

}  // namespace hone
