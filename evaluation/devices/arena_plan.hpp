#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "evaluation/devices/program_session.hpp"
#include "evaluation/sandbox/arena_layout.hpp"
#include "evaluation/sandbox/programs.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"

namespace hone {

// A stretch of an arena, in offsets from its start.
struct arena_region {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return begin + bytes; }
  bool overlaps(const arena_region& other) const {
    return begin < other.end() && other.begin < end();
  }
};

// What a session's failure means to whoever asked for a call.
inline program_failure failure_of(const session_failure& failed) {
  return {failed.outcome, "", failed.message};
}

// An output where the process says that it lies: inside the arena, or with `begin` not_in_arena.
struct output_place {
  tensor_layout layout;
  std::vector<std::int64_t> strides;  // in elements
  arena_region extent;
};

// Where inputs and parameters of a session lie in its arena, guard bytes around each, and where its
// scratch memory begins; and what the arena's head, which the process writes, says of the last run.
// None of that is believed: every number is checked. In offsets alone, so it serves memory of every
// kind.
class arena_plan {
 public:
  // `begin`: what lies before belongs to others. Throws std::length_error where it does not fit
  // into `size` bytes.
  void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
               const std::vector<tensor_layout>& parameters, std::size_t sets, std::uint64_t begin,
               std::uint64_t size);

  const std::vector<arena_region>& inputs(std::size_t set) const { return inputs_.at(set); }
  const std::vector<arena_region>& parameters() const { return parameters_; }
  std::uint64_t end() const { return end_; }  // scratch memory may begin here

  // The command for calls on those sets, one an entry.
  record<schema::Command> stage(std::span<const std::size_t> sets, bool parameters_changed,
                                arena_region scratch, std::uint64_t poisoned_end) const;

  // The number of outputs of each call of the last run, or why there is none.
  static std::variant<std::uint32_t, program_failure> outputs_per_call(const arena_head& head);
  std::variant<output_place, program_failure> locate(const arena_head& head, std::size_t call,
                                                     std::size_t output) const;
  // `sets`: of the last run; `calls_begin`: what lies before was there before the run.
  std::set<shared_memory_of_output> aliases(const arena_head& head, std::size_t call,
                                            std::span<const std::size_t> sets,
                                            std::uint64_t calls_begin = 0) const;
  std::size_t output_bytes(const arena_head& head, std::size_t call) const;

  // What must still hold poison, and whose it is.
  struct guard {
    arena_region stretch;
    const char* damage;
  };
  std::vector<guard> guards() const;
  // The same around the process's own allocations, up to where memory has been poisoned; or nothing
  // where its list makes no sense.
  std::optional<std::vector<guard>> scratch_guards(const arena_head& head,
                                                   std::uint64_t scratch_begin,
                                                   std::uint64_t poisoned_end) const;

 private:
  arena_region place(std::uint64_t& at, std::uint64_t bytes) const;

  std::size_t program_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::vector<tensor_layout> input_layouts_;
  std::vector<tensor_layout> parameter_layouts_;
  std::vector<std::vector<arena_region>> inputs_;  // by set
  std::vector<arena_region> parameters_;
};

}  // namespace hone
