#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/network/adapters.hpp"
#include "policy/network/sampling_distribution.hpp"
#include "policy/text/text_codec.hpp"
#include "policy/training/checkpoint.hpp"
#include "policy/training/chunked_head.hpp"
#include "policy/training/distinct_rollouts.hpp"
#include "policy/training/objectives.hpp"
#include "policy/training/optimizer.hpp"

namespace hone {

struct sft_example {
  std::vector<token_id> prompt;
  std::vector<token_id> completion;  // ends with the end token
};

// The denominator of the objective's probability ratio.
enum class ratio_base {
  sampler,  // ln p that the sampler has recorded
  trainer,  // ln p under the trainer's weights before the step, with importance weights
};
// Returns the name in the configuration.
std::string_view name_of(ratio_base base);
// Returns nullopt for an unknown name.
std::optional<ratio_base> ratio_base_named(std::string_view name);

struct grpo_step_options {
  grpo_options objective;
  loss_mean mean = loss_mean::sequence;
  ratio_base base = ratio_base::sampler;
  double importance_limit = 2;       // of the importance weights
  std::size_t longest_answer = 256;  // tokens, for loss_mean::limit
  advantage_options advantages;
  sampling_distribution sampling;  // of the completions
  std::int64_t minibatches = 1;    // updates per step
};

// Owns the network and its optimizer and makes the updates of each objective. Sequences longer than
// the context are cut at their end. An update whose gradient is not finite is skipped: it leaves
// the weights unchanged and is counted. Must be used by one thread at a time, and no more once an
// update has thrown: gradients of it remain.
class trainer {
 public:
  struct options {
    std::string device = "cpu";
    compute_dtype dtype = compute_dtype::automatic;
    // Devices besides `device` that hold a copy of the weights and compute a part of every update.
    // The optimizer's state is divided among all of them. What an update computes differs from that
    // of one device by rounding alone.
    std::vector<std::string> more_devices;
    optimizer_options optimizer;
    // Updates run the network on micro batches. A micro batch is closed as soon as its prompts and
    // completions hold this many tokens. Gradients add up over the micro batches of an update.
    std::int64_t micro_batch_tokens = 8192;
    recomputation recompute = recomputation::logits;
    adapter_options adapters;  // with a rank, they are trained instead of the weights
    // Most elements of logits that are held at a time, with gradients of the same size on a CPU. 0:
    // 256 MiB of them there, and on a GPU a sixteenth of its memory.
    std::int64_t max_logits = 0;
    std::uint64_t seed = 0;
    chat_format chat;    // of the policy's prompts and answers
    bool trains = true;  // false: only keeps the weights, which may be in float16 then
  };
  // `policy` is a Hugging Face folder. The weights are loaded from it or, with `random_weights`,
  // drawn with `o.seed`. Throws policy_error.
  trainer(const std::filesystem::path& policy, bool random_weights, const options& o);
  ~trainer();

  const text_codec& codec() const;
  // Returns the length of the context in tokens.
  std::int64_t context() const;

  // Makes one update of supervised fine-tuning. Returns the weighted mean negative log-likelihood
  // of the batch before the update. Prompt tokens weigh `prompt_weight`, completion tokens 1.
  double sft_update(std::span<const sft_example> batch, double rate, double prompt_weight);

  // Makes a GRPO step over some groups. A group with fewer than two rollouts that count, or with
  // equal rewards, is not used. Returns metrics: groups_used and distinct_completions, and if there
  // was an update also loss, entropy, clipped_share, gradient_norm (of the last update), with a KL
  // term kl, and the mean absolute differences of ln p between trainer and sampler before the first
  // update: sampler_difference of tokens that these weights have sampled, lagged_difference of
  // tokens of earlier versions.
  std::map<std::string, double> grpo_update(std::span<const rollout_group_example> groups,
                                            double rate, const grpo_step_options& o);

  // Return the numbers of updates that were skipped and of tokens that updates have read since the
  // construction: tokens of prompts and completions as far as the context holds them, of a repeated
  // completion of a group once.
  std::uint64_t skipped_updates() const;
  std::uint64_t tokens_trained_on() const;
  // Returns the number of updates since the optimizer was restarted, checkpoints included.
  std::int64_t updates() const;

  // Takes the current weights, or those of a checkpoint, as the reference policy of the KL term.
  // Throw policy_error.
  void keep_reference();
  void load_reference(const std::filesystem::path& checkpoint);
  // Resets the optimizer's moments; called when a stage with another objective begins.
  void restart_optimizer();

  // Returns a copy of the current weights on the trainer's device, complete when this returns.
  decoder_weights copy_weights() const;

  // Takes a checkpoint of the current weights, the optimizer's state and the state of the random
  // stream, so that training continues from it as if it had not been interrupted. They are copies
  // in the host's memory; its function may be called on another thread, and after further updates.
  taken_checkpoint take_checkpoint(training_progress progress) const;
  // Continues from a checkpoint and returns its progress. Throws policy_error.
  training_progress load(const std::filesystem::path& checkpoint);

 private:
  struct state;
  class own_streams;
  std::unique_ptr<state> state_;
};

}  // namespace hone
