#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "evaluation/backends/device.hpp"
#include "evaluation/compile_ahead.hpp"
#include "evaluation/variant_compiler.hpp"

namespace hone {

// Takes one variant through the whole pipeline on one device, without actors: compile, verify,
// measure, and measure again if device::needs_confirmation(). `hone eval` runs it. Confined to the
// device's thread; the device must outlive it.
class evaluator {
 public:
  explicit evaluator(device& on) : device_(&on) {}
  evaluator(device& on, const variant_compiler::limits& limits) : device_(&on), compiler_(limits) {}

  // Evaluates the text of a variant document. If `seed` is 0, verification and each measurement
  // draw seeds of their own. A variant's failure is part of the result. Throws std::runtime_error
  // if the machine cannot judge.
  record<schema::Evaluation> evaluate(const std::string& document, const task& t,
                                      std::uint64_t seed = 0);
  // The same for a document that was compiled for the device's type.
  record<schema::Evaluation> evaluate(const compiled_document& document, const task& t,
                                      std::uint64_t seed = 0);

 private:
  device* device_;
  variant_compiler compiler_;
};

}  // namespace hone
