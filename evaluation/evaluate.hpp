#pragma once

#include <cstdint>
#include <functional>

#include "evaluation/backends/device.hpp"
#include "evaluation/compile_ahead.hpp"

namespace hone {

// How far an evaluation goes. All of them verify in full.
enum class evaluation_depth {
  verdict,    // nothing is measured; a variant that is ok has no score
  screening,  // one short measurement, which can order the variants of a task
  full,       // a measurement, and another one if device::needs_confirmation()
};

// Takes a compiled document through the rest of the pipeline on one device, without actors. It must
// have been compiled for the device's type. If `seed` is 0, verification and each measurement draw
// separate seeds. A variant's failure is part of the result. `begins`, if given, is called as each
// part begins: "verifying", "timing", "confirming". Must be called on the device's thread. Throws
// std::runtime_error if the machine cannot judge.
record<schema::Evaluation> evaluate(device& on, const compiled_document& document, const task& t,
                                    evaluation_depth depth = evaluation_depth::full,
                                    std::uint64_t seed = 0,
                                    const std::function<void(const char*)>& begins = {});

}  // namespace hone
