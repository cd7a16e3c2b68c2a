#include <algorithm>
#include <cmath>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "ui/html/numbers.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"
#include "ui/parts/token_text.hpp"
#include "ui/parts/variant_parts.hpp"
#include "ui/plots/plot.hpp"

namespace hone {
namespace {

using html::element;

constexpr std::size_t max_texts_bytes = 2U << 20U;  // of HTML, after which no answer begins

struct answer {
  std::uint32_t index = 0;
  std::optional<record<schema::Evaluation>> evaluation;
  double score() const {
    return evaluation && has_score(**evaluation) ? (*evaluation)->getScore() : 0;
  }
};

// The answers with the evaluations that the group waited for, the fastest first.
std::vector<answer> answers_of(const snapshot& of, const schema::RolloutGroup::Reader& group) {
  std::vector<answer> answers;
  for (std::uint32_t i = 0; i < group.getRollouts().size(); ++i) {
    answer made{i, std::nullopt};
    for (const auto& e :
         of.pool.evaluations_of(variant_id(group.getRollouts()[i].getVariantId()))) {
      if (e->getScope() == scope_of(group) &&
          view(e->getDeviceType()) == view(group.getDraw().getDeviceType()))
        made.evaluation = e;  // the newest judge's comes last
    }
    answers.push_back(std::move(made));
  }
  std::stable_sort(answers.begin(), answers.end(),
                   [](const answer& a, const answer& b) { return a.score() > b.score(); });
  return answers;
}

element answers_table(const std::vector<answer>& answers,
                      const schema::RolloutGroup::Reader& group) {
  std::vector<plots::table_row> rows;
  for (const answer& one : answers) {
    const auto rollout = group.getRollouts()[one.index];
    const variant_id id(rollout.getVariantId());
    rows.push_back(
        {{short_id(id), std::to_string(one.index + 1),
          one.evaluation ? std::string(name_of((*one.evaluation)->getOutcome())) : "not judged",
          one.score() > 0 ? speedup_text(one.score()) : "-",
          count_text(rollout.getLogProbabilities().size()), parts::mean_log_text(rollout),
          rollout.getTruncated() ? "yes" : "no"},
         parts::variant_link(id)});
  }
  return plots::wide_table(
      {"variant", "answer", "outcome", "speed-up", "tokens", "mean log-probability", "truncated"},
      rows, 3);
}

std::string state_text(const std::optional<record<schema::GroupProgress>>& progress,
                       schema::RolloutGroup::Origin origin) {
  using State = schema::GroupProgress::State;
  if (!progress) return "unknown";
  switch ((*progress)->getState()) {
    case State::PENDING:
      return "waits for evaluations";
    case State::READY:
      return "is judged and waits for the learner";
    case State::TRAINED:
      return (origin == schema::RolloutGroup::Origin::COMPARISON ? "was compared for version "
                                                                 : "was trained into version ") +
             std::to_string((*progress)->getTrainedBy());
    case State::DROPPED:
      return "was dropped";
  }
  return "unknown";
}

// Adds the answers' texts, with shaded tokens where those are known.
void add_texts(element& body, const snapshot& of, const schema::RolloutGroup::Reader& group,
               const std::vector<answer>& answers) {
  std::vector<element> texts;
  std::size_t bytes = 0;
  std::size_t left_out = 0;
  bool has_shaded = false;
  for (const answer& one : answers) {
    const auto rollout = group.getRollouts()[one.index];
    if (rollout.getText().size() == 0) continue;
    if (bytes > max_texts_bytes) {
      ++left_out;
      continue;
    }
    const bool is_shaded = rollout.getTokens().size() > 0 && of.words() != nullptr &&
                           parts::has_shades(rollout, *of.words());
    has_shaded = has_shaded || is_shaded;
    element text = parts::folded("Answer " + std::to_string(one.index + 1),
                                 {is_shaded ? parts::token_text(rollout, *of.words())
                                            : parts::prose(view(rollout.getText()))});
    bytes += text.str().size();
    texts.push_back(std::move(text));
  }
  if (has_shaded) body.add(parts::shade_legend());
  for (element& text : texts) body.add(std::move(text));
  if (left_out > 0)
    body.add(parts::paragraph("The texts of " + counted(left_out, "slower answer") +
                              " are left out: their variants' pages have them."));
}

}  // namespace

page group_page(const snapshot& of, const page_request& request) {
  if (request.segments.size() != 1) throw not_found("a group's page is /group/ID");
  const auto group = group_named(of.pool, request.segments[0]);
  const group_id id(group->getId());
  const auto draw = group->getDraw();
  const task_id task(draw.getTaskId());
  const auto answers = answers_of(of, *group);
  element body;
  body.add(parts::paragraph("A prompt for " + name_or_id(of.pool, task) + " on " +
                            text(draw.getDeviceType()) + ", stage " +
                            std::string(name_of(draw.getStage())) + ", for version " +
                            std::to_string(draw.getPolicyVersion()) + " of the policy. The group " +
                            state_text(of.pool.progress(id), group->getOrigin()) + "."));
  const bool differ = !answers.empty() && answers.front().score() != answers.back().score();
  if (!differ && answers.size() > 1)
    body.add(parts::paragraph("All scores are equal, so the group has no signal to train on."));
  body.add(parts::section("Answers", {answers_table(answers, *group)}));
  std::vector<plots::table_row> exemplars;
  for (const auto e : draw.getExemplars())
    exemplars.push_back({{short_id(variant_id(e.getVariantId())), speedup_text(e.getScore())},
                         parts::variant_link(variant_id(e.getVariantId()))});
  if (!exemplars.empty())
    body.add(parts::section("Exemplars in the prompt",
                            {plots::wide_table({"variant", "speed-up shown"}, exemplars)}));
  body.add(parts::folded("The prompt", {parts::prose(view(group->getPrompt()))}));
  add_texts(body, of, *group, answers);
  return {"Group " + short_id(id), std::move(body)};
}

}  // namespace hone
