#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "evaluation/device.hpp"
#include "evaluation/variant_compiler.hpp"

namespace hone {

// Makes the first attempt at compiling a variant for a device type, for use without a pool: ids that
// only the pool needs are left out.
record<schema::CompileJob> make_compile_job(const schema::Variant::Reader& variant,
                                            std::string_view device_type);

// Takes one variant through the whole pipeline on one device, without actors: compile, verify,
// measure, and measure again if the score is surprising. `hone eval` runs it. Confined to one thread;
// the device must outlive it.
class evaluator {
 public:
  explicit evaluator(device& on) : device_(&on) {}
  evaluator(device& on, const variant_compiler::limits& limits) : device_(&on), compiler_(limits) {}

  // `document`: the text of a variant document. `seed` 0: drawn anew for every check. Whatever is
  // wrong with the variant is part of the result. Throws std::runtime_error if the machine cannot
  // judge.
  record<schema::Evaluation> evaluate(const std::string& document, const task& t,
                                      std::uint64_t seed = 0);

 private:
  device* device_;
  variant_compiler compiler_;
};

}  // namespace hone
