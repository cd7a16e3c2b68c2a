// The contrastive stage of the curriculum: what its groups are worth, and its updates.
#include <algorithm>
#include <utility>

#include "messages/ids.hpp"
#include "policy/training/curriculum.hpp"

namespace hone {
namespace {

// Returns the speed-up over the fastest baseline that has the task's precision.
double over_best_baseline(const schema::ScoredGroup::Result::Reader& result, bool admits_tf32) {
  double least = result.getScore();
  for (const auto over : result.getSpeedupsOver()) {
    const std::string_view name = view(over.getName());
    if (admits_tf32 || name == "graph" || name == "inductor")
      least = std::min(least, over.getValue());
  }
  return least;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

std::vector<judged_completion> curriculum::judged(const schema::ScoredGroup::Reader& scored) const {
  const auto draw = scored.getGroup().getDraw();
  const auto t = tasks_->find(task_id(draw.getTaskId()));
  double best_shown = 0;
  for (const auto exemplar : draw.getExemplars())
    best_shown = std::max(best_shown, exemplar.getScore());
  std::vector<judged_completion> group;
  for (unsigned i = 0; i < scored.getResults().size(); ++i) {
    const auto result = scored.getResults()[i];
    const auto rollout = scored.getGroup().getRollouts()[i];
    group.push_back({result.getOutcome() == Outcome::OK && !rollout.getTruncated(),
                     result.getScore(), over_best_baseline(result, t != nullptr && t->relaxed),
                     result.getIsCopy(), best_shown});
  }
  return group;
}

rewarded_group curriculum::rewarded(const schema::ScoredGroup::Reader& scored) const {
  const std::vector<judged_completion> completions = judged(scored);
  return {group_rewards(completions, options_.contrastive.reward),
          reward_noise(completions, options_.contrastive.reward,
                       scored.getGroup().getScreened() ? noise_of_screenings : noise_of_speedups)};
}

bool curriculum::is_masked(const schema::ScoredGroup::Reader& scored, unsigned i) const {
  return scored.getGroup().getRollouts()[i].getTruncated() &&
         !options_.contrastive.counts_truncated;
}

bool curriculum::counts(const schema::ScoredGroup::Reader& scored, unsigned i) const {
  return !is_masked(scored, i) && !is_inconclusive(scored.getResults()[i].getOutcome());
}

bool curriculum::has_signal(const schema::ScoredGroup::Reader& scored) const {
  const rewarded_group group = rewarded(scored);
  std::vector<double> counted;
  for (unsigned i = 0; i < group.rewards.size(); ++i) {
    if (counts(scored, i)) counted.push_back(group.rewards[i]);
  }
  if (counted.empty()) return false;
  const auto [least, most] = std::minmax_element(counted.begin(), counted.end());
  return *most - *least > group.noise;
}

std::size_t curriculum::missing_groups(
    const std::vector<record<schema::TrainingBatch>>& taken) const {
  if (taken.empty()) return static_cast<std::size_t>(options_.contrastive.groups);
  if (taken.back()->getGroups().size() == 0) return 0;  // no task has any left
  const auto most = static_cast<std::size_t>(options_.contrastive.max_groups);
  std::size_t all = 0;
  std::size_t useful = 0;
  for (const auto& batch : taken) {
    for (const auto scored : batch->getGroups()) {
      ++all;
      useful += has_signal(scored) ? 1 : 0;
    }
  }
  const std::size_t wanted = taken.front()->getGroups().size();
  return std::min(wanted - std::min(wanted, useful), most - std::min(most, all));
}

curriculum::numbers curriculum::learn_by_contrast(const schema::TrainingBatch::Reader& batch,
                                                  std::uint64_t version) {
  const contrastive_stage_options& o = options_.contrastive;
  std::vector<rollout_group_example> groups;
  std::vector<double> counted;
  double masked = 0;
  for (const auto scored : batch.getGroups()) {
    const rewarded_group paid = rewarded(scored);
    rollout_group_example group;
    group.noise = paid.noise;
    group.prompt = trainer_->codec().encode_prompt(view(scored.getGroup().getPrompt()));
    for (unsigned i = 0; i < scored.getResults().size(); ++i) {
      const auto rollout = scored.getGroup().getRollouts()[i];
      rollout_group_example::rollout r;
      for (const token_id token : rollout.getTokens()) r.tokens.push_back(token);
      for (const float p : rollout.getLogProbabilities()) r.log_probabilities.push_back(p);
      for (const auto run : rollout.getVersions())
        r.current = run.getVersion() == version ? run.getTokens() : 0;
      r.reward = paid.rewards[i];
      r.counts = counts(scored, i);
      if (r.counts) counted.push_back(r.reward);
      masked += is_masked(scored, i) ? 1 : 0;
      group.rollouts.push_back(std::move(r));
    }
    groups.push_back(std::move(group));
  }
  // The last update of the warm-up has the full rate.
  const double updates = static_cast<double>(trainer_->updates() + 1);
  const double rate =
      o.rate * std::min(1.0, updates / static_cast<double>(std::max<std::int64_t>(1, o.warm_up)));
  numbers n = trainer_->grpo_update(groups, rate, o.grpo);
  n["reward"] = mean(counted);
  n["masked_samples"] = masked;
  n["rate"] = rate;
  return n;
}

}  // namespace hone
