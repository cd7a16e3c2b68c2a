#include "evaluation/sandbox/child/common/arena_ledger.hpp"

#include <algorithm>

namespace hone {

void arena_ledger::reset(std::uint64_t begin, std::uint64_t end) {
  next_ = arena_aligned(begin) + guard_bytes;
  end_ = end;
  ++epoch_;
  reuses_ = true;
  free_.clear();
  head_->allocation_count = 0;
  head_->scratch_used = next_;
}

// Enters an allocation into the head's list and returns its number there, or max_arena_allocations
// if the list is full.
std::uint32_t arena_ledger::note(std::uint64_t offset, std::uint64_t bytes) const {
  if (head_->allocation_count >= max_arena_allocations) return max_arena_allocations;
  head_->allocations[head_->allocation_count] = {offset, bytes};
  return head_->allocation_count++;
}

std::optional<std::uint64_t> arena_ledger::take(std::uint64_t bytes) {
  const std::uint64_t size = arena_aligned(bytes);
  if (auto reusable = free_.find(size); reusable != free_.end() && !reusable->second.empty()) {
    const auto [offset, number] = reusable->second.back();
    reusable->second.pop_back();
    // The guard begins after the largest tensor that this block has held: the memory of a bool
    // tensor may be handed out for a larger one of the same rounded size.
    if (number < max_arena_allocations)
      head_->allocations[number].bytes = std::max(head_->allocations[number].bytes, bytes);
    hold(offset, size, number);
    return offset;
  }
  if (size > left()) return std::nullopt;
  const std::uint64_t offset = next_;
  next_ += size + guard_bytes;
  head_->scratch_used = next_;
  hold(offset, size, note(offset, bytes));
  return offset;
}

// Adds a holder to the block at `offset`, which takes the facts of this newest allocation.
void arena_ledger::hold(std::uint64_t offset, std::uint64_t size, std::uint32_t number) {
  const std::uint32_t holders = blocks_[offset].holders + 1;
  blocks_[offset] = {size, epoch_, number, holders};
}

void arena_ledger::give_back(std::uint64_t offset) {
  const auto found = blocks_.find(offset);
  if (found == blocks_.end() || --found->second.holders > 0) return;
  const block freed = found->second;
  blocks_.erase(found);
  if (freed.epoch == epoch_ && reuses_) free_[freed.size].emplace_back(offset, freed.number);
}

std::uint64_t arena_ledger::left() const {
  return end_ > next_ && end_ - next_ > guard_bytes
             ? (end_ - next_ - guard_bytes) / arena_alignment * arena_alignment
             : 0;
}

}  // namespace hone
