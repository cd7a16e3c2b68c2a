#pragma once

#include <cstdint>
#include <functional>

#include "evaluation/backends/device.hpp"
#include "evaluation/compile_ahead.hpp"

namespace hone {

// Takes a compiled document through the rest of the pipeline on one device, without actors: verify,
// measure, and measure again if device::needs_confirmation(). It must have been compiled for the
// device's type. If `seed` is 0, verification and each measurement draw seeds of their own. A
// variant's failure is part of the result. `begins`, if given, hears of each part as it begins:
// "verifying", "timing", "confirming". Must be called on the device's thread. Throws
// std::runtime_error if the machine cannot judge.
record<schema::Evaluation> evaluate(device& on, const compiled_document& document, const task& t,
                                    std::uint64_t seed = 0,
                                    const std::function<void(const char*)>& begins = {});

// As evaluate(), but the evaluation ends with the verdict: nothing is measured, and a variant that
// is ok has no score and no measurement.
record<schema::Evaluation> verify_only(device& on, const compiled_document& document, const task& t,
                                       std::uint64_t seed = 0);

}  // namespace hone
