#pragma once

#include <string>

#include "evaluation/evaluate.hpp"
#include "evaluation/variant_compiler.hpp"

namespace hone::testing_support {

// Compiles and judges documents on one device, which must outlive it. Confined to the device's
// thread.
class evaluator {
 public:
  explicit evaluator(device& on, const variant_compiler::limits& limits = {})
      : device_(&on), compiler_(limits) {}

  record<schema::Evaluation> evaluate(const std::string& document, const task& t,
                                      std::uint64_t seed = 0) {
    return hone::evaluate(*device_, compile_document(document, t, *device_->type(), compiler_), t,
                          seed);
  }

 private:
  device* device_;
  variant_compiler compiler_;
};

}  // namespace hone::testing_support
