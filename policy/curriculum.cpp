#include "policy/curriculum.hpp"

#include <algorithm>
#include <cmath>

#include "messages/ids.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

std::map<std::string, prompt_facts> facts_by_task(const task_table& tasks) {
  std::map<std::string, prompt_facts> facts;
  record_builder<schema::Draw> empty;
  const auto draw = empty.finish();
  for (const auto& t : tasks.all()) facts[t->name] = facts_for(*t, *draw);
  return facts;
}

double reward_of(const schema::ScoredGroup::Result::Reader& result) {
  return result.getOutcome() == Outcome::OK ? result.getScore() : 0;
}

}  // namespace

curriculum::curriculum(const curriculum_options& o, std::unique_ptr<trainer> learns,
                       std::shared_ptr<const prompt_template> prompts, const task_table& tasks,
                       std::uint64_t seed)
    : options_(o),
      trainer_(std::move(learns)),
      prompts_(std::move(prompts)),
      tasks_(&tasks),
      random_(seed) {
  if (trainer_)
    sft_data_.emplace(trainer_->tokens(), trainer_->end_token(), *prompts_, facts_by_task(tasks),
                      sft_data_set::options{o.sft.exemplar_share, 2});
}

std::int64_t curriculum::steps() const {
  switch (stage_) {
    case Stage::SFT:
      return options_.sft.updates_per_step > 0
                 ? (options_.sft.updates + options_.sft.updates_per_step - 1) /
                       options_.sft.updates_per_step
                 : 0;
    case Stage::SELF_SUPERVISED:
      return options_.self_supervised.steps;
    case Stage::CONTRASTIVE:
      return options_.contrastive.steps;
    case Stage::COMPARISON:
      return 1;
  }
  return 0;
}

std::optional<double> curriculum::seconds_left() const {
  if (stage_ != Stage::CONTRASTIVE || options_.contrastive.minutes <= 0) return std::nullopt;
  return 60 * options_.contrastive.minutes -
         std::chrono::duration<double>(std::chrono::steady_clock::now() - stage_began_).count();
}

bool curriculum::is_over() const {
  if (stage_ == Stage::COMPARISON) return false;
  return step_ >= steps() || (step_ > 0 && seconds_left().value_or(1) < 0);
}

bool curriculum::advance() {
  bool ended = false;
  while (is_over()) {
    stage_ = static_cast<Stage>(static_cast<int>(stage_) + 1);
    stage_began_ = std::chrono::steady_clock::now();
    step_ = 0;
    ended = true;
    if (stage_ == Stage::CONTRASTIVE && trainer_) trainer_->restart_optimiser();
  }
  return ended;
}

void curriculum::admit(const schema::ScoredGroup::Reader& scored) {
  const auto group = scored.getGroup();
  const auto t = tasks_->find(task_id(group.getDraw().getTaskId()));
  if (t == nullptr || !sft_data_) return;
  for (unsigned i = 0; i < group.getRollouts().size(); ++i) {
    const auto result = scored.getResults()[i];
    if (result.getOutcome() != Outcome::OK) continue;
    const std::string text(view(group.getRollouts()[i].getText()));
    const auto parsed = parse_variant_document(text);
    const auto* document = std::get_if<variant_document>(&parsed);
    if (document == nullptr) continue;
    sft_data_->add(
        {t->name, std::string(view(group.getDraw().getDeviceType())), text,
         show_variant(result.getScore(), document->options, document->cuda, document->python)});
  }
}

std::int64_t curriculum::sft_updates_left_in_step() const {
  return std::min(options_.sft.updates, updates_at_step_begin_ + options_.sft.updates_per_step) -
         sft_updates_;
}

double curriculum::sft_update() {
  if (!trainer_) {
    ++sft_updates_;
    return 0;
  }
  std::vector<sft_example> batch;
  for (std::int64_t i = 0; i < options_.sft.batch; ++i) batch.push_back(sft_data_->next(random_));
  const double loss =
      trainer_->sft_update(batch, options_.sft.rate.at(sft_updates_), options_.sft.prompt_weight);
  ++sft_updates_;
  loss_sum_ += loss;
  return loss;
}

curriculum::numbers curriculum::end_sft_step() {
  const auto updates =
      static_cast<double>(std::max<std::int64_t>(1, sft_updates_ - updates_at_step_begin_));
  numbers n = {{"loss", loss_sum_ / updates},
               {"rate", options_.sft.rate.at(sft_updates_)},
               {"updates", static_cast<double>(sft_updates_)},
               {"documents", static_cast<double>(documents())}};
  loss_sum_ = 0;
  updates_at_step_begin_ = sft_updates_;
  ++step_;
  return n;
}

curriculum::numbers curriculum::learn(const schema::TrainingBatch::Reader& batch) {
  numbers n = describe_batch(batch);
  numbers learned;
  if (trainer_ && stage_ == Stage::SELF_SUPERVISED) learned = learn_from_working(batch);
  if (trainer_ && stage_ == Stage::CONTRASTIVE) learned = learn_by_contrast(batch);
  n.insert(learned.begin(), learned.end());
  ++step_;
  return n;
}

// Trains on the policy's own `ok` completions as if they were the corpus. Their scores do not
// matter in this stage.
curriculum::numbers curriculum::learn_from_working(const schema::TrainingBatch::Reader& batch) {
  std::vector<sft_example> examples;
  for (const auto scored : batch.getGroups()) {
    const auto prompt = trainer_->tokens().encode(view(scored.getGroup().getPrompt()));
    for (unsigned i = 0; i < scored.getResults().size(); ++i) {
      const auto rollout = scored.getGroup().getRollouts()[i];
      if (scored.getResults()[i].getOutcome() != Outcome::OK || rollout.getTruncated()) continue;
      sft_example example{prompt, {}};
      for (const token_id token : rollout.getTokens()) example.completion.push_back(token);
      examples.push_back(std::move(example));
    }
  }
  double loss = 0;
  std::int64_t updates = 0;
  for (std::int64_t pass = 0; pass < options_.self_supervised.passes; ++pass) {
    std::shuffle(examples.begin(), examples.end(), random_);
    for (std::size_t at = 0; at < examples.size();
         at += static_cast<std::size_t>(options_.self_supervised.batch)) {
      const std::size_t count =
          std::min(static_cast<std::size_t>(options_.self_supervised.batch), examples.size() - at);
      loss += trainer_->sft_update(std::span(examples).subspan(at, count),
                                   options_.self_supervised.rate, 0);
      ++updates;
    }
  }
  return {{"loss", updates > 0 ? loss / static_cast<double>(updates) : 0},
          {"examples", static_cast<double>(examples.size())},
          {"rate", options_.self_supervised.rate}};
}

curriculum::numbers curriculum::learn_by_contrast(const schema::TrainingBatch::Reader& batch) {
  if (!has_reference_ && options_.contrastive.grpo.objective.kl_coefficient > 0) {
    trainer_->keep_reference();
    has_reference_ = true;
  }
  std::vector<rollout_group_example> groups;
  for (const auto scored : batch.getGroups()) {
    rollout_group_example group;
    group.prompt = trainer_->tokens().encode(view(scored.getGroup().getPrompt()));
    for (unsigned i = 0; i < scored.getResults().size(); ++i) {
      const auto rollout = scored.getGroup().getRollouts()[i];
      rollout_group_example::rollout r;
      for (const token_id token : rollout.getTokens()) r.tokens.push_back(token);
      for (const float p : rollout.getLogProbabilities()) r.log_probabilities.push_back(p);
      r.reward = reward_of(scored.getResults()[i]);
      r.counts = scored.getResults()[i].getOutcome() != Outcome::INFRASTRUCTURE;
      group.rollouts.push_back(std::move(r));
    }
    groups.push_back(std::move(group));
  }
  return trainer_->grpo_update(groups, options_.contrastive.rate, options_.contrastive.grpo);
}

taken_checkpoint curriculum::take_checkpoint() const {
  const trainer_numbers n = {{{"stage", static_cast<double>(stage_)},
                              {"step", static_cast<double>(step_)},
                              {"sft_updates", static_cast<double>(sft_updates_)}}};
  if (trainer_) return trainer_->take_checkpoint(n);
  return [n](const std::filesystem::path& folder) { save_checkpoint(folder, n); };
}

void curriculum::load(const std::filesystem::path& checkpoint) {
  const trainer_numbers n =
      trainer_ ? trainer_->load(checkpoint) : load_trainer_numbers(checkpoint);
  const auto value = [&](const char* name) {
    const auto found = n.values.find(name);
    return found != n.values.end() ? static_cast<std::int64_t>(found->second) : 0;
  };
  stage_ = static_cast<Stage>(value("stage"));
  step_ = value("step");
  sft_updates_ = value("sft_updates");
  updates_at_step_begin_ = sft_updates_;
}

curriculum::numbers describe_batch(const schema::TrainingBatch::Reader& batch) {
  curriculum::numbers n;
  double samples = 0;
  double reward = 0;
  double logs = 0;
  std::map<Outcome, double> outcomes;
  for (const auto scored : batch.getGroups()) {
    for (const auto result : scored.getResults()) {
      ++samples;
      ++outcomes[result.getOutcome()];
      reward += reward_of(result);
      if (result.getOutcome() == Outcome::OK) logs += std::log(std::max(1e-6, result.getScore()));
    }
  }
  n["samples"] = samples;
  n["groups"] = static_cast<double>(batch.getGroups().size());
  n["reward"] = samples > 0 ? reward / samples : 0;
  n["log_speedup"] = outcomes[Outcome::OK] > 0 ? logs / outcomes[Outcome::OK] : 0;
  for (const auto& [outcome, count] : outcomes)
    n["share_" + std::string(name_of(outcome))] = count / std::max(1.0, samples);
  return n;
}

}  // namespace hone
