#pragma once

#include <span>
#include <string>
#include <vector>

#include "evaluation/program/arena_plan.hpp"
#include "evaluation/program/session.hpp"
#include "evaluation/program/source.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"

namespace hone {

// Conversions between the sandbox protocol's messages and the types of evaluation/program. Sessions
// on the CPU and on a GPU share them.

// Writes the programs into an open command.
void describe_programs(schema::Open::Builder open, const std::vector<program_source>& programs);
opened_programs read_opened(schema::Opened::Reader opened);

// Longest text of a failure that is kept, in bytes.
inline constexpr std::size_t max_failure_text = 2000;
std::string failure_text(schema::Failed::Reader failed);

// Returns the command that stages one call per entry of `sets` on the tensors of `plan`. The calls'
// scratch memory is `scratch`, which is filled with `poison` before the offset `poisoned_end`.
// `row_major_outputs`: see program_session::require_row_major(). `seed`: of a Python module's
// constructor.
record<schema::Command> stage_command(const arena_plan& plan, std::span<const std::size_t> sets,
                                      bool parameters_changed, arena_region scratch,
                                      std::uint64_t poisoned_end, std::uint64_t row_major_outputs,
                                      unsigned char poison = poison_byte, std::uint64_t seed = 0);

// Returns the command that makes the runs of a study on the staged call.
record<schema::Command> study_command(const study_plan& plan);

}  // namespace hone
