#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/sampling/endpoint_usage.hpp"
#include "policy/sampling/generation.hpp"
#include "policy/text/text_codec.hpp"
#include "tasks/teaching/teacher.hpp"

namespace hone {

// Turns prompts into completions. One implementation is the model. Another has models behind
// servers write (policy/endpoint). The teacher writes by rules and needs no prompt. A script is
// used instead of the model where only the system around it matters. A sampler must be used by one
// thread at a time.
class completion_sampler {
 public:
  struct sample {
    std::string text;
    completion how;
  };
  struct prompt {
    std::uint64_t ticket = 0;  // chosen by the caller and unique among unfinished prompts
    std::string text;
    std::uint32_t samples = 1;
    answer_room room = answer_room::any;
    bool is_greedy = false;
    std::shared_ptr<const task> about{};  // the task of the prompt
    std::string device_type{};            // on which completions will be judged
  };
  struct finished_prompt {
    std::uint64_t ticket = 0;
    std::vector<sample> completions;
  };
  virtual ~completion_sampler() = default;

  // Replaces the weights from the next token on. `checkpoint` is a folder that save_checkpoint()
  // wrote. Throws policy_error.
  virtual void load(const std::filesystem::path& checkpoint, std::uint64_t version) = 0;
  // Replaces the weights in the same way by a copy of `weights`. Throws policy_error.
  virtual void take(const decoder_weights& weights, std::uint64_t version) = 0;
  // Queues a prompt. Throws policy_error if it does not leave its room for a completion in the
  // context.
  virtual void submit(const prompt& asked) = 0;
  // Generates one token for every active sample; a script completes every prompt at once. Returns
  // the prompts that this step finished.
  virtual std::vector<finished_prompt> step() = 0;

  virtual std::uint64_t version() const = 0;
  // Returns the number of samples that are active or wait for a slot.
  virtual std::size_t unfinished_samples() const = 0;
  // Returns the number of samples that could start without waiting for a slot.
  virtual std::size_t free_slots() const = 0;
  virtual std::uint64_t tokens_generated() const = 0;

  // Returns what servers have been asked, by the name of the endpoint.
  virtual std::map<std::string, endpoint_usage> usage() const { return {}; }
};

// How a model's prompts and answers are written.
struct answer_format {
  chat_format chat;
  bool stops_at_program = false;  // an answer ends where ends_with_program() says so
};

// Makes a sampler that runs the model. `policy` is a Hugging Face folder, which sets
// `options.end_tokens`; `format` sets `options.is_complete`. Throws policy_error.
std::unique_ptr<completion_sampler> make_model_sampler(const std::filesystem::path& policy,
                                                       const std::string& device,
                                                       compute_dtype dtype,
                                                       generation_options options,
                                                       const answer_format& format);

// Makes a sampler that has the teacher write every completion, a task's next variants one after
// another. Completions have no tokens. Where the teacher has no more to say than it has said, it
// repeats itself. Throws std::runtime_error from step() if the teacher's process cannot answer.
std::unique_ptr<completion_sampler> make_teacher_sampler(teacher::settings settings);

// Makes a sampler without a model. Each completion is a document of about one kilobyte, and most
// documents are distinct variants.
std::unique_ptr<completion_sampler> make_scripted_sampler(std::uint64_t seed);

}  // namespace hone
