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
#include "policy/sft_sampler.hpp"
#include "policy/trainer.hpp"
#include "tasks/task_table.hpp"

namespace hone {

struct sft_stage_options {
  std::int64_t updates = 1300;          // optimiser updates in all; 0 skips the stage
  std::int64_t updates_per_step = 100;  // between two versions
  std::int64_t batch = 4;
  rate_schedule rate{6e-3, 50, 1300, 0.05};
  double exemplar_share = 0.5;
  double prompt_weight = 1.0;  // of the loss on prompt tokens
  double begin_with =
      0.3;  // share of the corpus that must have been judged before the first update
};

struct self_supervised_stage_options {
  std::int64_t steps = 4;    // 0 skips the stage
  std::int64_t groups = 10;  // a step
  std::int64_t batch = 4;
  double rate = 3e-4;
  std::int64_t passes = 1;  // over a step's working completions
};

struct contrastive_stage_options {
  std::int64_t steps = 10;  // 0 skips the stage
  double minutes =
      0;  // after which the stage ends as well, counted from its start or a resumption; 0: no limit
  std::int64_t groups = 10;  // a step
  bool one_per_task = true;  // each of them of another task; with fewer tasks, even over them
  double rate = 1e-3;
  grpo_step_options grpo;
};

struct curriculum_options {
  sft_stage_options sft;
  self_supervised_stage_options self_supervised;
  contrastive_stage_options contrastive;
  std::uint32_t comparison_samples = 16;  // a task and version; 0 skips the comparison
};

// What the learner learns and in which order: CUDA-L1's stages over whatever trains. Knows nothing
// of actors: scored groups go in, updated weights and numbers come out. One thread.
class curriculum {
 public:
  using numbers = std::map<std::string, double>;

  // `learns` may be null: a policy that is scripted goes through the stages and learns nothing.
  curriculum(const curriculum_options& o, std::unique_ptr<trainer> learns,
             std::shared_ptr<const prompt_template> prompts, const task_table& tasks,
             std::uint64_t seed);

  Stage stage() const { return stage_; }
  std::int64_t step() const { return step_; }  // finished in this stage
  std::int64_t steps() const;                  // planned for this stage
  std::optional<double> seconds_left()
      const;  // until the stage ends at its next step, where it has a limit
  // Ends the stage if its steps are done, skipping stages of no steps. True when a stage ended.
  bool advance();

  // Supervised: working documents join the data set; updates draw from it. A step is some updates.
  void admit(const schema::ScoredGroup::Reader& scored);
  std::size_t documents() const { return sampler_ ? sampler_->size() : 0; }
  bool can_update() const { return !trainer_ || documents() > 0; }
  double sft_update();
  std::int64_t sft_updates_left_in_step() const;
  numbers end_sft_step();

  // One step over a batch of the current stage.
  numbers learn(const schema::TrainingBatch::Reader& batch);

  // To be written before the next update.
  taken_checkpoint take_checkpoint() const;
  void load(const std::filesystem::path& checkpoint);

 private:
  bool is_over() const;
  numbers learn_from_working(const schema::TrainingBatch::Reader& batch);
  numbers learn_by_contrast(const schema::TrainingBatch::Reader& batch);

  curriculum_options options_;
  std::unique_ptr<trainer> trainer_;
  std::shared_ptr<const prompt_template> prompts_;
  const task_table* tasks_;
  std::optional<sft_sampler> sampler_;
  std::mt19937_64 random_;
  Stage stage_ = Stage::SFT;
  std::chrono::steady_clock::time_point stage_began_ = std::chrono::steady_clock::now();
  std::int64_t step_ = 0;
  std::int64_t sft_updates_ = 0;
  std::int64_t updates_at_step_begin_ = 0;
  double loss_sum_ = 0;
  bool has_reference_ = false;
};

// What a batch says of itself, for the metrics: share of each outcome, mean reward, mean log
// speed-up of what is ok.
curriculum::numbers describe_batch(const schema::TrainingBatch::Reader& batch);

}  // namespace hone
