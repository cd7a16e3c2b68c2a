#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "evaluation/evaluate.hpp"
#include "evaluation/variant_compiler.hpp"
#include "tests/support/raw_messages.hpp"

namespace hone::testing_support {

// Compiles and judges documents on one device, which must outlive it. Confined to the device's
// thread.
class evaluator {
 public:
  explicit evaluator(device& on, const variant_compiler::limits& limits = {})
      : device_(&on), compiler_(limits) {}

  record<schema::Evaluation> evaluate(const std::string& document, const task& t,
                                      std::uint64_t seed = 0) {
    return evaluate_to(evaluation_depth::full, document, t, seed);
  }
  record<schema::Evaluation> verify(const std::string& document, const task& t) {
    return evaluate_to(evaluation_depth::verdict, document, t);
  }
  record<schema::Evaluation> screen(const std::string& document, const task& t) {
    return evaluate_to(evaluation_depth::screening, document, t);
  }
  // Judges up to three times, as long as the outcome is `unstable`. The pool also measures such a
  // variant again when it is written again.
  record<schema::Evaluation> evaluate_until_stable(const std::string& document, const task& t) {
    auto evaluation = evaluate(document, t);
    for (int again = 1; again < 3 && evaluation->getOutcome() == Outcome::UNSTABLE; ++again)
      evaluation = evaluate(document, t);
    return evaluation;
  }
  // Judges once, and twice more if the score is above `limit`. Returns the evaluation of the median
  // score: another program may take the machine from one side of one measurement.
  record<schema::Evaluation> evaluate_below(double limit, const std::string& document,
                                            const task& t) {
    std::vector<record<schema::Evaluation>> all = {evaluate(document, t)};
    if (all.front()->getScore() <= limit) return all.front();
    while (all.size() < 3) all.push_back(evaluate(document, t));
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a->getScore() < b->getScore(); });
    return all[1];
  }

 private:
  record<schema::Evaluation> evaluate_to(evaluation_depth depth, const std::string& document,
                                         const task& t, std::uint64_t seed = 0) {
    auto evaluation = hone::evaluate(
        *device_, compile_document(document, t, *device_->type(), compiler_), t, depth, seed);
    if (is_raw(view(evaluation->getMessage())))
      throw std::logic_error("a message of a library: " +
                             std::string(view(evaluation->getMessage())));
    return evaluation;
  }

  device* device_;
  variant_compiler compiler_;
};

}  // namespace hone::testing_support
