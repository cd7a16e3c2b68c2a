#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "policy/generation.hpp"

namespace hone {

// What completes prompts: the model, or a script that stands in for one where only the system
// around it is of interest. One thread.
class writer {
 public:
  struct written {
    std::string text;
    completion how;
  };
  struct finished {
    std::uint64_t ticket = 0;
    std::vector<written> completions;
  };
  virtual ~writer() = default;

  // From the next token on. `checkpoint` is a folder as save_checkpoint makes it. Throws
  // policy_error.
  virtual void load(const std::filesystem::path& checkpoint, std::uint64_t version) = 0;
  // Throws policy_error for a prompt that is too long.
  virtual void submit(std::uint64_t ticket, const std::string& prompt, std::uint32_t samples) = 0;
  virtual std::vector<finished> step() = 0;

  virtual std::uint64_t version() const = 0;
  virtual std::size_t busy_with() const = 0;  // samples under way or waiting
  virtual std::size_t room() const = 0;       // samples that could be taken on without waiting
  virtual std::uint64_t tokens_written() const = 0;
};

// `policy` is a Hugging Face folder; `options.end_token` is taken from its config.json.
std::unique_ptr<writer> make_model_writer(const std::filesystem::path& policy,
                                          const std::string& device, generation_options options);

// Writes variant documents of about a kilobyte at once, most of them programs of their own.
std::unique_ptr<writer> make_scripted_writer(std::uint64_t seed);

}  // namespace hone
