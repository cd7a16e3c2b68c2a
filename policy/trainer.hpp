#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "policy/checkpoint.hpp"
#include "policy/objectives.hpp"
#include "policy/optimizer.hpp"
#include "policy/tokenizer.hpp"

namespace hone {

struct sft_example {
  std::vector<token_id> prompt;
  std::vector<token_id> completion;  // its end token included
};

// One prompt's completions with what became of them.
struct rollout_group_example {
  struct rollout {
    std::vector<token_id> tokens;
    std::vector<float> log_probabilities;  // when they were written
    double reward = 0;
    bool counts = true;  // false: left out of the group (nobody's fault)
  };
  std::vector<token_id> prompt;
  std::vector<rollout> rollouts;
};

struct grpo_step_options {
  grpo_options objective;
  double advantage_limit = 1.5;
  double temperature = 1.0;      // at which the completions were sampled
  std::int64_t minibatches = 1;  // optimiser updates a step
};

// The network, its optimiser, and one step of each objective. Sequences longer than the context are
// cut at their end. One thread; numbers that are not finite leave the weights as they were.
class trainer {
 public:
  struct options {
    std::string device = "cpu";
    optimizer_options optimiser;
    std::int64_t micro_batch_tokens = 8192;  // tokens in the network at a time
    std::uint64_t seed = 0;
  };
  // `policy` is a Hugging Face folder; weights are drawn anew, or loaded from it.
  trainer(const std::filesystem::path& policy, bool random_weights, const options& o);
  ~trainer();

  const tokenizer& tokens() const;
  std::int64_t context() const;
  token_id end_token() const;

  // Mean negative log-likelihood of the batch before the update. Prompt tokens weigh
  // `prompt_weight`, the others 1.
  double sft_update(std::span<const sft_example> batch, double rate, double prompt_weight);

  // A GRPO step over some groups. Returns numbers for the metrics: loss, entropy, clipped share,
  // KL, gradient norm, groups used.
  std::map<std::string, double> grpo_update(std::span<const rollout_group_example> groups,
                                            double rate, const grpo_step_options& o);

  // The weights of now are what a KL term pulls towards.
  void keep_reference();
  // The optimiser forgets its moments: a stage of another objective begins.
  void restart_optimiser();

  // To be written before the next step: what is on the CPU is not copied.
  taken_checkpoint take_checkpoint(const trainer_numbers& numbers) const;
  trainer_numbers load(const std::filesystem::path& checkpoint);  // throws policy_error

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
