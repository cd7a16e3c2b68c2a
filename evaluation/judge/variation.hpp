#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "evaluation/judge/varied_element.cuh"
#include "evaluation/program/tensors.hpp"
#include "tasks/task_file.hpp"

namespace hone {

using judging::variation;

// Returns true if checks never change the tensor's contents from what the task declares: `fixed`
// tensors, permutations, and data files of integers with one row.
bool is_always_declared(const tensor_spec& spec);
// Returns true if some distribution other than `declared` changes a tensor of the task.
bool changes_any(const task& t, distribution how);

// Returns true for outliers and `sparse`, which change one input alone: of a product of two sparse
// factors little is left, and two outliers may cancel.
bool changes_one_input(distribution how);
// Returns the number of inputs that take turns in being changed by `how`; 1 if it changes all of
// them together. The contents of a seed change input number seed % turns of those that vary.
std::size_t turns_of(const task& t, distribution how);
// Returns a seed whose contents change input number `turn`.
std::uint64_t seed_of_turn(std::uint64_t bits, std::size_t turn, std::size_t turns);

// Returns how the contents of tensor number `tensor` (inputs first, then parameters) differ from
// the declared ones if the inputs' distribution is `how`; nullopt if they do not. Parameters are
// declared unless it is `weights`, and then each of them is scaled by slices, sparse, or has an
// outlier; all elements of a constant change for even seeds, and a few or one of them for odd ones.
// Equal seeds give equal changes.
std::optional<variation> variation_of(const task& t, std::size_t tensor, const task_case& at,
                                      distribution how, std::uint64_t seed);

// Changes drawn values, before the tensor's `expr`: float32, or int64 for integers.
void vary(tensor_value& raw, const variation& v);
// Changes the contents of a data file.
void vary_data(tensor_value& value, const variation& v);

}  // namespace hone
