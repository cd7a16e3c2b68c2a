#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "launch/chat_templates.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/model_options.hpp"
#include "launch/files.hpp"
#include "launch/slow_notice.hpp"
#include "policy/network/decoder_weights.hpp"
#include "policy/policy_memory.hpp"
#include "policy/sampling/completion_sampler.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

// CLI11's ranges admit NaN.
std::string is_finite(const std::string& number) {
  return std::isfinite(std::strtod(number.c_str(), nullptr)) ? "" : "expected a finite number";
}

using nlohmann::ordered_json;

struct policy_options {
  std::string folder;
  std::string format = "auto";
  bool json = false;
  // What follows is of `hone policy sample`.
  std::string prompt;
  std::string device = "cpu";
  compute_dtype dtype = compute_dtype::automatic;
  std::uint32_t samples = 1;
  bool stops_at_program = false;
  generation_options generation;
};

// Tensors of one name in the layers of a policy.
struct tensor_row {
  std::size_t count = 0;
  std::vector<std::int64_t> shape;
};

// What `hone policy check` says of a folder.
struct policy_facts {
  decoder_config config;
  std::int64_t parameters = 0;
  text_codec codec;
  std::map<std::string, tensor_row> tensors;  // by name, with * for the number of a layer
};

std::map<std::string, tensor_row> rows_of(const decoder_weights& weights) {
  std::map<std::string, tensor_row> rows;
  for (const auto& [name, shape] : weights.shapes()) {
    constexpr std::string_view layers = "model.layers.";
    std::string key = name;
    if (key.starts_with(layers))
      key = std::string(layers) + "*" + key.substr(key.find('.', layers.size()));
    tensor_row& row = rows[key];
    ++row.count;
    row.shape = shape;
  }
  return rows;
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text;
}

policy_facts read_policy(const policy_options& options) {
  const std::filesystem::path folder = options.folder;
  const auto config = decoder_config::load(folder / "config.json");
  const decoder_weights weights = decoder_weights::load_finite(folder, config);
  return {config, weights.parameters(),
          text_codec::load(folder, find_chat_format(folder, options.format)), rows_of(weights)};
}

// With one generator on the learner's device.
double bytes_of_training(const policy_memory& memory) {
  return memory.of_learner + memory.of_generator;
}

std::vector<std::string> end_texts(const text_codec& codec) {
  std::vector<std::string> texts;
  for (const token_id id : codec.end_tokens()) texts.push_back(codec.words().spelling(id));
  return texts;
}

// Returns the kinds of devices and the types that they compute in, unless policy.dtype is set.
std::map<std::string, std::string> dtypes_of_devices(const decoder_config& c) {
  return {{"CPU", "float32"}, {"GPU", c.dtype}};
}

policy_memory memory_in(decoder_config c, const std::string& dtype) {
  c.dtype = dtype;
  return memory_of(c);
}

ordered_json policy_to_json(const policy_facts& p) {
  const decoder_config& c = p.config;
  ordered_json memory;
  for (const auto& [where, dtype] : dtypes_of_devices(c)) {
    const policy_memory needed = memory_in(c, dtype);
    memory[where] = {{"dtype", dtype},
                     {"bytes_of_training_and_sampling", bytes_of_training(needed)},
                     {"bytes_of_keys_and_values_of_a_token", needed.of_token}};
  }
  ordered_json tensors = ordered_json::array();
  for (const auto& [name, row] : p.tensors)
    tensors.push_back({{"name", name}, {"count", row.count}, {"shape", row.shape}});
  return {{"parameters", p.parameters},
          {"tensors", tensors},
          {"dtype", c.dtype},
          {"layers", c.layers},
          {"width", c.width},
          {"heads", c.heads},
          {"kv_heads", c.kv_heads},
          {"context", c.context},
          {"vocabulary", p.codec.words().vocabulary_size()},
          {"bytes_without_token", p.codec.words().missing_bytes()},
          {"end_tokens", end_texts(p.codec)},
          {"chat",
           p.codec.chat().is_plain() ? ordered_json() : ordered_json(p.codec.chat().around("..."))},
          {"memory", memory}};
}

void print(const policy_facts& p) {
  const decoder_config& c = p.config;
  const auto line = [](const char* name, const std::string& text) {
    std::cout << pad(name, 11) << text << "\n";
  };
  line("weights", fixed(static_cast<double>(p.parameters) / 1e6, 1) + " million in " + c.dtype +
                      ", all finite");
  if (c.dtype != "float32")
    line("",
         "computed in " + c.dtype + " on GPUs and in float32 on CPUs, unless policy.dtype is set");
  line("shape", std::to_string(c.layers) + " layers of " + std::to_string(c.width) + ", " +
                    std::to_string(c.heads) + " heads (" + std::to_string(c.kv_heads) +
                    " of keys and values), a context of " + std::to_string(c.context));
  const std::size_t missing = p.codec.words().missing_bytes();
  line("tokenizer", std::to_string(p.codec.words().vocabulary_size()) + " tokens" +
                        (missing > 0 ? "; " + std::to_string(missing) + " of 256 bytes have none"
                                     : std::string()));
  std::string ends;
  for (const std::string& text : end_texts(p.codec)) ends += (ends.empty() ? "" : " ") + text;
  line("ends with", ends);
  line("prompts", p.codec.chat().is_plain()
                      ? "plain text that it continues"
                      : "as a message: " + ordered_json(p.codec.chat().around("...")).dump());
  const char* first = "tensors";
  for (const auto& [name, row] : p.tensors) {
    const bool is_head = c.tied_head && name == "model.embed_tokens.weight";
    line(std::exchange(first, ""), (row.count > 1 ? std::to_string(row.count) + " of " : "") +
                                       name + ", " + text_of(row.shape) +
                                       (is_head ? ", which is the head as well" : ""));
  }
  line("", "all tensors of the folder have a place, or are copies of such");
  const char* memory_line = "memory";
  for (const auto& [where, dtype] : dtypes_of_devices(c)) {
    const policy_memory memory = memory_in(c, dtype);
    line(std::exchange(memory_line, ""),
         "on a " + std::string(where) + ", in " + dtype + ": " +
             fixed(bytes_of_training(memory) / (1U << 30U), 2) +
             " GiB for training and sampling, without activations; " +
             fixed(memory.of_token / (1U << 10U), 1) + " KiB of keys and values for each token");
  }
}

int check_policy(const policy_options& options) {
  const policy_facts facts = read_policy(options);
  if (options.json) {
    std::cout << one_line(policy_to_json(facts)) << "\n";
  } else {
    print(facts);
  }
  return 0;
}

int sample_policy(const policy_options& options) {
  const auto sampler = make_model_sampler(
      options.folder, options.device, options.dtype, options.generation,
      {find_chat_format(options.folder, options.format), options.stops_at_program});
  sampler->load(options.folder, 0);
  sampler->submit({.ticket = 0, .text = read_text(options.prompt), .samples = options.samples});
  const slow_notice notice([&] { return "sampling on " + options.device; });
  std::vector<completion_sampler::finished_prompt> done;
  while (done.empty()) done = sampler->step();
  const auto& completions = done.front().completions;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    const auto& [text, how] = completions[i];
    if (options.json) {
      std::cout << one_line({{"text", text},
                             {"tokens", how.tokens},
                             {"log_probabilities", how.log_probabilities},
                             {"truncated", how.truncated}})
                << "\n";
      continue;
    }
    if (completions.size() > 1)
      std::cout << (i > 0 ? "\n" : "") << "--- " << i + 1 << " of " << completions.size() << "\n";
    std::cout << text << (text.ends_with('\n') ? "" : "\n");
    if (how.truncated)
      std::cerr << "hone: the answer is cut off at --max-new-tokens "
                << options.generation.max_new_tokens << "\n";
  }
  return 0;
}

void add_folder(CLI::App* command, policy_options& options) {
  add_model_folder(*command, options.folder);
  command
      ->add_option("--format", options.format,
                   "how it reads prompts: plain, chat, or auto, which is chat if the folder has a "
                   "chat template")
      ->check(CLI::IsMember({"auto", "plain", "chat"}));
  command->add_flag("--json", options.json, "print JSON objects");
}

}  // namespace

void add_policy_commands(CLI::App& app, command_action& action) {
  CLI::App* group = app.add_subcommand("policy", "Look at language models and try them");
  group->require_subcommand(1);
  auto options = std::make_shared<policy_options>();

  CLI::App* check = group->add_subcommand(
      "check", "Load a model as a run would, and say what it is and what memory it takes");
  add_folder(check, *options);
  check->callback([options, &action] { action = [options] { return check_policy(*options); }; });

  CLI::App* sample = group->add_subcommand("sample", "Have a model answer a prompt");
  add_folder(sample, *options);
  sample->add_option("--prompt", options->prompt, "file of the prompt; - is standard input")
      ->required();
  sample->add_option("--samples", options->samples, "answers")->check(CLI::Range(1, 4096));
  sample
      ->add_option("--max-new-tokens", options->generation.max_new_tokens,
                   "most tokens of an answer")
      ->check(CLI::Range(1, 1000000));
  sample
      ->add_option("--temperature", options->generation.sampling.temperature,
                   "0: the most likely tokens")
      ->check(CLI::Range(0.0, 100.0))
      ->check(is_finite);
  sample
      ->add_option("--top-p", options->generation.sampling.top_p,
                   "share of the probability to draw from")
      ->check(CLI::Range(1e-6, 1.0))
      ->check(is_finite);
  sample->add_option("--top-k", options->generation.sampling.top_k, "tokens to draw from; 0: all")
      ->check(CLI::NonNegativeNumber);
  sample
      ->add_option("--min-p", options->generation.sampling.min_p,
                   "least probability, relative to the most likely token's")
      ->check(CLI::Range(0.0, 1.0));
  sample->add_flag("--stop-at-program", options->stops_at_program,
                   "end an answer behind its python block");
  sample->add_option("--seed", options->generation.seed, "of the draws");
  sample->add_option("--device", options->device, "cpu, cuda or cuda:NUMBER");
  add_dtype_option(*sample, options->dtype);
  sample->callback([options, &action] { action = [options] { return sample_policy(*options); }; });
  add_policy_bench_command(*group, action);
}

}  // namespace hone
