#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "messages/names.hpp"
#include "messages/record.hpp"
#include "messages/schema/training.capnp.h"
#include "policy/training/advantages.hpp"
#include "policy/training/pair_stream.hpp"
#include "policy/training/rewards.hpp"
#include "policy/training/sft_data_set.hpp"
#include "policy/training/trainer.hpp"
#include "tasks/task_table.hpp"

namespace hone {

struct sft_stage_options {
  std::int64_t updates = 1300;  // updates in the whole stage; 0 skips the stage
  // Time limit of the stage in minutes, interruptions left out; 0: no limit. The learning rate then
  // decays with the time or the updates, whichever is further.
  double minutes = 0;
  std::int64_t updates_per_step = 100;  // updates between two versions
  std::int64_t batch = 4;               // documents per update
  rate_schedule rate{6e-3, 50, 1300, 0.05};
  double exemplar_share = 0.5;  // share of the prompts that show exemplars
  std::size_t exemplars = 2;    // that these show, as the pool's draws do
  double prompt_weight = 0.1;   // weight of prompt tokens in the loss; completion tokens weigh 1
  // Share of the corpus's groups that must be evaluated before the first update.
  double begin_with = 0.3;
};

struct self_supervised_stage_options {
  std::int64_t steps = 4;    // 0 skips the stage
  std::int64_t groups = 10;  // groups per step
  std::int64_t batch = 4;    // completions per update
  double rate = 0;           // must be set: none suits policies of all sizes
  std::int64_t passes = 1;   // passes over the `ok` completions of a step
};

struct contrastive_stage_options {
  std::int64_t steps = 10;  // 0 skips the stage
  // Time limit of the stage in minutes, interruptions left out; 0: no limit. The stage ends with
  // the first step that ends after the limit.
  double minutes = 0;
  std::int64_t groups = 10;  // groups per step
  // Most groups that a step takes. Those whose rewards do not differ are replaced until `groups`
  // others are there or the step has taken so many (dynamic sampling: DAPO, arXiv 2503.14476,
  // section 3.2). Replaces none if it is not above `groups`.
  std::int64_t max_groups = 0;
  // Spreads the groups of a step evenly over the tasks: one group per task, or an equal share per
  // task if there are fewer tasks than groups.
  bool one_per_task = true;
  double rate = 0;  // must be set: none suits policies of all sizes
  // Updates of linear warm-up to `rate`, because the optimizer's moments begin anew.
  std::int64_t warm_up = 3;
  reward_options reward;
  // Whether completions that the length limit has cut count in their group, as failures, or are
  // left out of it (overlong filtering: DAPO, arXiv 2503.14476, section 3.4). A small policy that
  // is not punished for it writes in circles.
  bool counts_truncated = true;
  grpo_step_options grpo;
};

// Samples per task and policy; none at all skips the comparison.
struct comparison_stage_options {
  std::uint32_t samples = 16;           // at the run's temperature, with exemplars
  std::uint32_t bare_samples = 8;       // at the run's temperature, without exemplars
  std::uint32_t greedy_samples = 4;     // greedy, with exemplars
  std::uint32_t held_out_samples = 16;  // at the run's temperature, on held-out tasks
  // The same without exemplars, where held-out tasks have any.
  std::uint32_t held_out_bare_samples = 0;
  std::uint32_t tasks = 0;  // most tasks that the run learns from; 0 for all
  bool untrained = true;    // whether the policy as it was before the run writes as well
  // Versions within each stage that write for held-out tasks, besides those at its ends.
  std::int64_t curve = 0;
  bool is_empty() const { return samples + bare_samples + greedy_samples + held_out_samples == 0; }
};

// Greedy answers to held-out tasks while the policy trains.
struct validation_options {
  double every_s =
      0;  // from the start of one validation to the next, at the end of a step; 0: none
  std::uint32_t tasks = 100;  // at most so many, spread evenly; 0 for all
};

struct curriculum_options {
  sft_stage_options sft;
  self_supervised_stage_options self_supervised;
  contrastive_stage_options contrastive;
  comparison_stage_options comparison;
  validation_options validation;
};

// Returns the number of steps that are planned for a stage.
std::int64_t steps_of(const curriculum_options& plan, Stage stage);
// Returns true if the version after `step` steps of a stage is one of the evenly spaced ones of
// `comparison.curve`. A stage's first and last versions are not.
bool is_on_curve(const curriculum_options& plan, Stage stage, std::int64_t step);

// Trains a policy in the stages of CUDA-L1 (arXiv 2507.14111): `sft`, `self_supervised` and
// `contrastive`, followed by the `comparison`. Scored groups go in; updated weights and metrics
// come out. Independent of actors. Must be used by one thread at a time.
class curriculum {
 public:
  // Metrics by name.
  using numbers = std::map<std::string, double>;

  // A null `learns` means a scripted policy, which passes through the stages without learning.
  // `tasks` must outlive the curriculum.
  curriculum(const curriculum_options& o, std::unique_ptr<trainer> learns,
             std::shared_ptr<const prompt_template> prompts, const task_table& tasks,
             std::uint64_t seed);

  // Has supervised fine-tuning draw pairs from a stream instead of the data set. Its context is the
  // trainer's. Must come before load(). Does nothing for a scripted policy.
  void read_stream(pair_stream::open_source open, pair_stream::options o);

  Stage stage() const { return stage_; }
  // Returns the number of steps that are finished in this stage.
  std::int64_t step() const { return step_; }
  // Returns the number of steps that are planned for this stage.
  std::int64_t steps() const { return steps_of(options_, stage_); }
  // Returns the seconds until the stage's time limit (negative after it), or nullopt without a
  // limit.
  std::optional<double> seconds_left() const;
  // Enters the next stage if this one is over: all its steps (of `sft`, all its updates) are
  // finished, or its time limit has passed and at least one step is finished. Skips stages without
  // steps. At the start of the contrastive stage, restarts the optimizer and keeps the weights as
  // the reference policy of the KL term. Returns true if a stage ended.
  bool advance();

  // Adds the `ok` documents of a group to the data set of supervised fine-tuning. Does nothing
  // for a group of an unknown or held-out task or for a scripted policy.
  void admit(const schema::ScoredGroup::Reader& scored);
  // Returns the number of documents in the data set; 0 for a scripted policy.
  std::size_t documents() const { return sft_data_ ? sft_data_->size() : 0; }
  // Returns true if sft_update() may be called: the data set has a document, there is a stream, or
  // the policy is scripted.
  bool can_update() const { return !trainer_ || stream_ || documents() > 0; }
  // Makes one update on documents drawn from the data set or the stream. Returns the loss before
  // the update; 0 for a scripted policy.
  double sft_update();
  std::int64_t sft_updates_left_in_step() const;
  std::int64_t sft_updates() const { return sft_updates_; }
  // Returns the share of the current step's updates that have been made.
  double part_of_sft_step() const;
  // Returns the tokens that this process has trained on; 0 without a trainer.
  std::uint64_t tokens_trained_on() const;
  // Returns true if an update was made since the last version.
  bool has_new_updates() const { return sft_updates_ > updates_at_version_; }
  // Ends a step of the `sft` stage, or interrupts it if updates are left: it then goes on after
  // load(). Returns the metrics since the last version: mean loss, learning rate, updates in the
  // stage so far, tokens trained on, and documents in the data set.
  numbers end_sft_step();

  // Returns true if the rewards of a group differ by more than what says nothing, so that the
  // contrastive stage can learn from it.
  bool has_signal(const schema::ScoredGroup::Reader& scored) const;
  // Returns how many more groups a step of the contrastive stage needs that has taken these
  // batches: `groups` if none, and then replacements for those without a signal.
  std::size_t missing_groups(const std::vector<record<schema::TrainingBatch>>& taken) const;

  // Trains on a batch with the objective of the current stage and ends the step. `version` is that
  // of the current weights. Returns the metrics of describe_batch() and of the training.
  numbers learn(const schema::TrainingBatch::Reader& batch, std::uint64_t version);

  // Takes a checkpoint: copies in the host's memory, which its function writes on any thread.
  taken_checkpoint take_checkpoint() const;
  // Returns a copy of the current weights on their device; none of a policy without weights.
  std::optional<decoder_weights> copy_weights() const;
  // Continues from a checkpoint: weights, optimizer state, random streams, stage, step and number
  // of updates. If the documents of the data set are then admitted again in the order of before,
  // and load_reference() is called in the contrastive stage, training continues as if it had not
  // been interrupted. Throws policy_error.
  void load(const std::filesystem::path& checkpoint);
  // Takes the weights of a checkpoint, the one at the start of the contrastive stage, as the
  // reference policy of the KL term. Does nothing if there is no such term. Throws policy_error.
  void load_reference(const std::filesystem::path& checkpoint);

 private:
  bool is_over() const;
  numbers learn_from_working(const schema::TrainingBatch::Reader& batch);
  numbers learn_by_contrast(const schema::TrainingBatch::Reader& batch, std::uint64_t version);
  std::vector<judged_completion> judged(const schema::ScoredGroup::Reader& scored) const;
  // Returns what the contrastive stage pays the completions of a group.
  rewarded_group rewarded(const schema::ScoredGroup::Reader& scored) const;
  // True if a completion of a group was cut and is left out for that.
  bool is_masked(const schema::ScoredGroup::Reader& scored, unsigned i) const;
  // True if a completion of a group takes part in training.
  bool counts(const schema::ScoredGroup::Reader& scored, unsigned i) const;
  // Adds the tokens trained on and the updates skipped since the last call to a step's metrics.
  void count_work(numbers& n);
  double seconds_in_stage() const;
  bool is_out_of_time() const { return seconds_left().value_or(1) < 0; }
  double sft_rate() const;
  bool has_kl() const { return options_.contrastive.grpo.objective.kl_coefficient > 0; }

  curriculum_options options_;
  std::unique_ptr<trainer> trainer_;
  std::shared_ptr<const prompt_template> prompts_;
  const task_table* tasks_;
  std::optional<sft_data_set> sft_data_;
  std::unique_ptr<pair_stream> stream_;  // null: pairs come from the data set
  std::mt19937_64 random_;
  Stage stage_ = Stage::SFT;
  // When this object began to train in the stage: with the first update of `sft`, which may have to
  // wait for documents, and at the start of later stages.
  std::optional<std::chrono::steady_clock::time_point> stage_began_;
  double seconds_before_ = 0;  // in the stage, before load()
  std::int64_t step_ = 0;
  std::int64_t sft_updates_ = 0;
  std::int64_t updates_at_step_begin_ = 0;
  std::int64_t updates_at_version_ = 0;
  double loss_sum_ = 0;
  std::uint64_t tokens_before_ = 0;  // the trainer's counts at the end of the last step
  std::uint64_t skipped_before_ = 0;
};

// Returns the metrics of a batch: number of groups and samples, share of each outcome, mean score
// of all samples (the speed-up; 0 unless `ok`), and mean natural logarithm of the speed-up of the
// `ok` samples (0 without any).
curriculum::numbers describe_batch(const schema::TrainingBatch::Reader& batch);

}  // namespace hone
