#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "evaluation/program/arena_layout.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/session.hpp"

namespace hone {

// A range of an arena in bytes from its start.
struct arena_region {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return begin + bytes; }
  bool overlaps(const arena_region& other) const {
    return begin < other.end() && other.begin < end();
  }
};

// The place of an output as the process reports it, after checks: inside the arena, or with
// `extent.begin` equal to not_in_arena.
struct output_place {
  tensor_layout layout;
  std::vector<std::int64_t> strides;  // in elements
  arena_region extent;
};

// Computes the places of a session's inputs and parameters in its arena, with guards around each of
// them, and the start of its scratch memory. Interprets the arena's head, which the process writes,
// and checks every number in it. Works in offsets alone, so that the class serves host and device
// memory. Not synchronized.
class arena_plan {
 public:
  // Places `parameters` and then `sets` input sets from `begin` on, for the program of that index.
  // Throws std::length_error if they do not fit into an arena of `size` bytes.
  void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
               const std::vector<tensor_layout>& parameters, std::size_t sets, std::uint64_t begin,
               std::uint64_t size);

  std::size_t program() const { return program_; }
  const std::vector<tensor_layout>& input_layouts() const { return input_layouts_; }
  const std::vector<tensor_layout>& parameter_layouts() const { return parameter_layouts_; }
  const std::vector<arena_region>& inputs(std::size_t set) const { return inputs_.at(set); }
  const std::vector<arena_region>& parameters() const { return parameters_; }
  // Returns the first offset that scratch memory may use.
  std::uint64_t end() const { return end_; }

  // Returns the number of outputs of each call of the last run, or a failure with the outcome
  // `crash` if the head states none or too many.
  static program_result<std::uint32_t> outputs_per_call(const arena_head& head);
  // Returns the place of an output of a call of the last run. Fails with `crash` if the head does
  // not describe the output, and with `wrong_result` if its type, shape or alignment is impossible.
  program_result<output_place> locate(const arena_head& head, std::size_t call,
                                      std::size_t output) const;
  // Returns the memory that the outputs of `call` share with other tensors. `sets`: the input sets
  // of the last run, by call. Memory before `calls_begin` was allocated before the run. Throws
  // std::out_of_range if the last run did not make the call.
  std::set<output_alias> aliases(const arena_head& head, std::size_t call,
                                 std::span<const std::size_t> sets,
                                 std::uint64_t calls_begin = 0) const;
  // Returns a bit for each of the first max_marked_outputs outputs of `call` that is row-major.
  std::uint64_t row_major_outputs(const arena_head& head, std::size_t call) const;
  // Returns the bytes that the outputs of `call` occupy, each at most the bytes of its elements.
  std::size_t output_bytes(const arena_head& head, std::size_t call) const;

  // A range that must still hold poison, and the message if it does not.
  struct guard {
    arena_region range;
    const char* damage;
  };
  // Returns the guards around inputs and parameters.
  std::vector<guard> guards() const;
  // Returns the guards around the process's own allocations, up to `poisoned_end`. Returns nullopt
  // if the head's list of allocations is inconsistent.
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
