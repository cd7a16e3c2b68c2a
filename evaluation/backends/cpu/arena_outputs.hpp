#pragma once

#include <cstddef>

#include "evaluation/program/arena_plan.hpp"
#include "evaluation/program/failure.hpp"
#include "evaluation/program/tensors.hpp"
#include "evaluation/sandbox/arena.hpp"

namespace hone {

// Copies the outputs of a call of the last run from an arena, row-major, as its head describes
// them. The process that writes the arena must be stopped. A malformed output is a failure.
program_result<value_set> read_outputs(const arena& memory, const arena_plan& plan,
                                       std::size_t call);

}  // namespace hone
