#include "launch/run/duration_estimate.hpp"

#include <algorithm>

#include "messages/names.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

using part = expected_duration::part;

part limited(std::string name, double minutes, double limit) {
  const bool is_limited = limit > 0 && minutes > limit;
  return {std::move(name), is_limited ? limit : minutes, is_limited};
}

}  // namespace

expected_duration estimate_duration(std::size_t documents, const sft_stage_options& sft,
                                    bool is_stream, const std::map<Stage, stage_work>& stages,
                                    const measured_pace& pace) {
  expected_duration expected;
  const auto add = [&](part&& one) {
    expected.minutes += one.minutes;
    if (one.minutes > 0) expected.parts.push_back(std::move(one));
  };
  const double of_corpus = static_cast<double>(documents) * pace.judging_s / 60;
  const double of_updates =
      is_stream ? sft.minutes : static_cast<double>(sft.updates * sft.batch) * pace.update_s / 60;
  part supervised = limited("sft", of_updates, sft.minutes);
  if (of_corpus > supervised.minutes) supervised = {"judging the corpus", of_corpus, false};
  add(std::move(supervised));
  for (const auto& [stage, work] : stages) {
    const double training = stage == Stage::COMPARISON ? 0 : pace.update_s;
    add(limited(std::string(name_of(stage)), work.samples * std::max(pace.judging_s, training) / 60,
                work.limit_s.value_or(0) / 60));
  }
  return expected;
}

std::string describe(const expected_duration& expected) {
  std::string parts;
  for (const part& one : expected.parts)
    parts += (parts.empty() ? "" : ", ") + one.name + " " + fixed(one.minutes, 1) +
             (one.is_limited ? " (its limit)" : "");
  return "expected duration here: about " + fixed(expected.minutes, 0) + " minutes (" + parts +
         "); programs that are known already or cannot be judged take less, and the time in which "
         "the policy writes comes on top";
}

}  // namespace hone
