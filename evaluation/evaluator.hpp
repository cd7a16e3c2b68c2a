#pragma once

#include <string>

#include "evaluation/compile/variant_compiler.hpp"
#include "evaluation/devices/device.hpp"

namespace hone {

// The job of compiling a variant for a device type, as the first attempt; ids that nobody waits for
// are left out.
record<schema::CompileJob> make_compile_job(const schema::Variant::Reader& variant,
                                            std::string_view device_type);

// The whole way of one variant on one device, without actors: compile, verify, measure, and measure
// again where a score is surprising. What `hone eval` runs, and what tests judge with. Not for more
// than one thread.
class evaluator {
 public:
  explicit evaluator(device& on) : device_(&on) {}
  evaluator(device& on, const variant_compiler::limits& limits) : device_(&on), compiler_(limits) {}

  // `document` is the text of a variant document. `seed` 0: drawn anew for every check. Never
  // throws for anything that a variant may be; std::runtime_error when the machine cannot judge.
  record<schema::Evaluation> evaluate(const std::string& document, const task& t,
                                      std::uint64_t seed = 0);

 private:
  device* device_;
  variant_compiler compiler_;
};

}  // namespace hone
