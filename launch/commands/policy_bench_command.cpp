#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <random>

#include "evaluation/devices.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/model_options.hpp"
#include "launch/slow_notice.hpp"
#include "policy/network/decoder_weights.hpp"
#include "policy/policy_device.hpp"
#include "policy/policy_memory.hpp"
#include "policy/sampling/completion_sampler.hpp"
#include "policy/sampling/generation.hpp"
#include "policy/training/trainer.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;
using seconds = std::chrono::duration<double>;

struct policy_bench_options {
  std::string folder;
  std::string device;  // empty: a GPU if there is one, otherwise the CPU
  compute_dtype dtype = compute_dtype::automatic;
  bool random_weights = false;
  std::int64_t slots = 64;
  std::int64_t prompt_tokens = 512;
  std::int64_t new_tokens = 512;
  std::uint32_t group = 16;
  double share = 0.3;
  double seconds = 10;
  std::int64_t sft_batch = 0;
  std::int64_t grpo_batch = 0;
  std::int64_t length = 1024;
  std::int64_t micro_batch_tokens = 32768;
  bool recompute = false;
  std::vector<std::string> data_parallel;
  std::int64_t adapter_rank = 0;
  bool together = false;
  std::string hand_over_to;
  bool json = false;
};

// Measures what a policy does on a device, with prompts and answers of random tokens: what the
// tokens are has no influence on the time.
class policy_bench {
 public:
  explicit policy_bench(const policy_bench_options& options)
      : options_(options),
        folder_(options.folder),
        config_(load_config_for(options.device, folder_, options.dtype)),
        random_(1) {
    options_.group = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(options.group, 1, std::max<std::int64_t>(1, options.slots)));
    prepare_policy_device(options.device);
  }

  ordered_json run() {
    ordered_json results;
    if (options_.slots > 0) {
      const decoder_weights weights = load_or_draw();
      finish_policy_work(options_.device);
      results["sampling"] = sample(weights);
      results["reading"] = read_prompts(weights);
      if (options_.together) sampler_ = hold_sampler(weights);
    }
    if (options_.sft_batch > 0) results["sft"] = train(options_.sft_batch, true);
    if (options_.grpo_batch > 0) results["grpo"] = train(options_.grpo_batch, false);
    if (!options_.hand_over_to.empty()) results["hand_over"] = hand_over();
    return results;
  }

 private:
  using clock = std::chrono::steady_clock;
  static double since(clock::time_point begin) { return seconds(clock::now() - begin).count(); }

  decoder_weights load_or_draw() const {
    return options_.random_weights
               ? decoder_weights::random(config_, 1, options_.device)
               : decoder_weights::load_finite(folder_, config_).to(options_.device, config_.dtype);
  }
  std::vector<token_id> tokens(std::int64_t count) {
    std::vector<token_id> ids;
    for (std::int64_t i = 0; i < count; ++i)
      ids.push_back(
          static_cast<token_id>(random_() % static_cast<std::uint64_t>(config_.vocabulary)));
    return ids;
  }
  generation_options sampling(std::int64_t new_tokens) const {
    generation_options o;
    o.slots = options_.slots;
    o.max_new_tokens = new_tokens;
    o.memory_share = options_.share;
    return o;
  }
  void submit_groups(generation_engine& engine, std::int64_t samples) {
    for (std::int64_t left = samples; left > 0; left -= options_.group)
      engine.submit({next_ticket_++, tokens(options_.prompt_tokens),
                     static_cast<std::uint32_t>(std::min<std::int64_t>(left, options_.group))});
  }

  // Samples without an end token, so that every answer has the same length. The time begins before
  // the engine takes its weights, and so has its kernels compiled.
  ordered_json sample(const decoder_weights& weights) {
    const auto begin = clock::now();
    generation_engine engine(config_, sampling(options_.new_tokens));
    engine.set_weights(weights, 0);
    submit_groups(engine, options_.slots);
    while (!engine.idle()) engine.step();
    const double first = since(begin);
    const std::uint64_t first_tokens = engine.tokens_generated();
    // Then as in a run: finished samples are replaced. Where the first tokens took all of the time,
    // the later ones are still measured.
    while (since(begin) < options_.seconds || engine.tokens_generated() == first_tokens) {
      const auto room =
          options_.slots - static_cast<std::int64_t>(engine.active() + engine.waiting());
      submit_groups(engine, room / options_.group * options_.group);
      engine.step();
    }
    const double all = since(begin);
    const auto rate = [](std::uint64_t count, double time) {
      return static_cast<double>(count) / time;
    };
    return {{"slots", options_.slots},
            {"prompt_tokens", options_.prompt_tokens},
            {"new_tokens", options_.new_tokens},
            {"group", options_.group},
            {"first_tokens_per_s", rate(first_tokens, first)},
            {"later_tokens_per_s", rate(engine.tokens_generated() - first_tokens, all - first)},
            {"tokens_per_s", rate(engine.tokens_generated(), all)},
            {"seconds", all}};
  }

  ordered_json read_prompts(const decoder_weights& weights) {
    generation_engine engine(config_, sampling(1));
    engine.set_weights(weights, 0);
    const auto read = [&](double time) {
      std::int64_t prompts = 0;
      const auto begin = clock::now();
      do {
        for (std::int64_t i = 0; i < options_.slots; ++i, ++prompts)
          engine.submit({next_ticket_++, tokens(options_.prompt_tokens), 1});
        while (!engine.idle()) engine.step();
      } while (since(begin) < time);
      return static_cast<double>(prompts * options_.prompt_tokens) / since(begin);
    };
    read(0.5);
    return {{"prompt_tokens", options_.prompt_tokens},
            {"tokens_per_s", read(options_.seconds / 3)}};
  }

  // Measures the way from the end of a trainer's update to the first token of its weights in a
  // sampler that is writing, as a learner and a generator of one process go it.
  ordered_json hand_over() {
    trainer::options o;
    o.device = options_.device;
    trainer learner(folder_, options_.random_weights, o);
    const bool is_distant = !are_same_device(options_.device, options_.hand_over_to);
    const auto sampler = make_model_sampler(folder_, options_.hand_over_to, options_.dtype,
                                            sampling(options_.new_tokens), {});
    const std::vector<sft_example> examples = {{tokens(32), tokens(32)}};
    std::vector<double> ms;
    for (std::uint64_t version = 1; version <= 7; ++version) {
      learner.sft_update(examples, 1e-6, 1.0);
      finish_policy_work(options_.device);
      const auto begin = clock::now();
      const decoder_weights weights = learner.copy_weights();
      sampler->take(is_distant ? weights.on_host() : weights, version);
      if (version == 1)
        sampler->submit({.ticket = 1,
                         .text = "Write a CUDA kernel.",
                         .samples = static_cast<std::uint32_t>(options_.group)});
      for (const std::uint64_t before = sampler->tokens_generated();
           sampler->tokens_generated() == before;)
        sampler->step();
      if (version > 2) ms.push_back(since(begin) * 1000);  // the first ones compile and allocate
    }
    std::sort(ms.begin(), ms.end());
    return {{"to", options_.hand_over_to}, {"ms", ms[ms.size() / 2]}, {"max_ms", ms.back()}};
  }

  // Returns an engine with these weights that has sampled, and so holds what sampling needs.
  std::unique_ptr<generation_engine> hold_sampler(const decoder_weights& weights) {
    auto engine = std::make_unique<generation_engine>(config_, sampling(options_.new_tokens));
    engine->set_weights(weights, 0);
    submit_groups(*engine, options_.slots);
    for (int i = 0; i < 10; ++i) engine->step();
    return engine;
  }

  // Updates by `batch` sequences, a quarter of whose tokens are prompt. Those of a GRPO step are
  // twelve groups, or fewer of at least two.
  ordered_json train(std::int64_t batch, bool supervised) {
    trainer::options o;
    o.device = options_.device;
    o.dtype = options_.dtype;
    o.micro_batch_tokens = options_.micro_batch_tokens;
    o.recompute = options_.recompute ? recomputation::logits_and_layers : recomputation::logits;
    o.more_devices = options_.data_parallel;
    o.adapters.rank = options_.adapter_rank;
    trainer learner(folder_, options_.random_weights, o);
    const std::int64_t prompt = options_.length / 4;
    std::vector<sft_example> examples;
    for (std::int64_t i = 0; i < batch; ++i)
      examples.push_back({tokens(prompt), tokens(options_.length - prompt)});
    std::vector<rollout_group_example> groups;
    for (std::int64_t i = 0; i < batch && !supervised; ++i) {
      const sft_example& example = examples[static_cast<std::size_t>(i)];
      if (i % std::max<std::int64_t>(2, (batch + 11) / 12) == 0)
        groups.push_back({example.prompt, {}});
      rollout_group_example::rollout one;
      one.tokens = example.completion;
      one.log_probabilities.assign(one.tokens.size(), -10.0F);
      one.reward = static_cast<double>(i);
      groups.back().rollouts.push_back(std::move(one));
    }
    const auto update = [&] {
      if (supervised) {
        learner.sft_update(examples, 1e-6, 1.0);
      } else {
        learner.grpo_update(groups, 1e-6, {});
      }
      finish_policy_work(options_.device);
    };
    for (int i = 0; i < 2; ++i) update();
    const std::uint64_t before = learner.tokens_trained_on();
    const auto begin = clock::now();
    int updates = 0;
    for (; since(begin) < options_.seconds; ++updates) update();
    const double rate = static_cast<double>(learner.tokens_trained_on() - before) / since(begin);
    ordered_json memory = ordered_json::array();
    if (options_.device != "cpu") memory.push_back(gpu_memory_in_use(options_.device));
    for (const std::string& device : options_.data_parallel) {
      if (device != "cpu") memory.push_back(gpu_memory_in_use(device));
    }
    return {{"sequences", batch},        {"memory_in_use", memory},
            {"length", options_.length}, {"updates", updates},
            {"tokens_per_s", rate},      {"flops", 6 * memory_of(config_).parameters * rate}};
  }

  policy_bench_options options_;
  std::filesystem::path folder_;
  decoder_config config_;
  std::mt19937_64 random_;
  std::uint64_t next_ticket_ = 0;
  std::unique_ptr<generation_engine> sampler_;
};

void print(const ordered_json& results) {
  const auto rate = [](const ordered_json& of, const char* key) {
    return fixed(of.at(key).get<double>(), 0) + " tokens/s";
  };
  if (results.contains("sampling")) {
    const ordered_json& s = results.at("sampling");
    std::cout << "sampling  " << rate(s, "tokens_per_s") << " in "
              << fixed(s.at("seconds").get<double>(), 1) << " s; the first answers "
              << rate(s, "first_tokens_per_s") << ", then " << rate(s, "later_tokens_per_s") << "\n"
              << "reading   " << rate(results.at("reading"), "tokens_per_s") << "\n";
  }
  if (results.contains("hand_over")) {
    const ordered_json& h = results.at("hand_over");
    std::cout << "hand-over " << fixed(h.at("ms").get<double>(), 1) << " ms to "
              << h.at("to").get<std::string>() << ", at most "
              << fixed(h.at("max_ms").get<double>(), 1) << " ms\n";
  }
  for (const char* stage : {"sft", "grpo"}) {
    if (!results.contains(stage)) continue;
    const ordered_json& t = results.at(stage);
    std::cout << pad(stage, 10) << rate(t, "tokens_per_s") << ", "
              << fixed(t.at("flops").get<double>() / 1e12, 1)
              << " TFLOP/s in matrix products with weights";
    for (const ordered_json& bytes : t.at("memory_in_use"))
      std::cout << ", " << fixed(bytes.get<double>() / (1 << 30), 1) << " GiB";
    std::cout << "\n";
  }
}

}  // namespace

void add_policy_bench_command(CLI::App& policy, command_action& action) {
  auto options = std::make_shared<policy_bench_options>();
  CLI::App* bench = policy.add_subcommand(
      "bench", "Measure how fast a model samples, reads prompts and is trained on a device");
  add_model_folder(*bench, options->folder);
  bench->add_option("--device", options->device,
                    "cpu, cuda or cuda:NUMBER; by default a GPU if there is one");
  add_dtype_option(*bench, options->dtype);
  bench->add_flag("--random-weights", options->random_weights,
                  "draw the weights, for a folder that has only a shape");
  bench->add_option("--slots", options->slots, "sequences sampled at once; 0: no sampling");
  bench->add_option("--prompt-tokens", options->prompt_tokens, "of each prompt");
  bench->add_option("--new-tokens", options->new_tokens, "of each answer");
  bench->add_option("--group", options->group, "answers to a prompt")->check(CLI::Range(1, 4096));
  bench->add_option("--memory-share", options->share, "of the GPU's memory for keys and values");
  bench->add_option("--seconds", options->seconds, "of each measurement");
  bench->add_option("--sft", options->sft_batch, "sequences of an update of supervised training");
  bench->add_option("--grpo", options->grpo_batch, "completions of a GRPO step");
  bench->add_option("--length", options->length, "tokens of a sequence that is trained on");
  bench->add_option("--micro-batch-tokens", options->micro_batch_tokens, "as the policy's key");
  bench->add_flag("--recompute", options->recompute, "as the policy's key");
  bench->add_option("--data-parallel", options->data_parallel,
                    "devices that train together with --device, as the policy's key");
  bench->add_option("--adapter-rank", options->adapter_rank, "as the policy's key");
  bench->add_flag("--together", options->together,
                  "keep the sampler's memory while training is measured");
  bench->add_option("--hand-over-to", options->hand_over_to,
                    "device of a sampler: measure the way of new weights to it");
  bench->add_flag("--json", options->json, "print a JSON object");
  bench->callback([options, &action] {
    action = [options] {
      if (options->device.empty()) options->device = find_devices().gpus.empty() ? "cpu" : "cuda";
      const slow_notice notice([&] {
        return "measuring " + options->folder + " on " + options->device + ", about " +
               fixed(options->seconds, 0) +
               " s for each measurement and as long as a step may take";
      });
      const ordered_json results = policy_bench(*options).run();
      if (options->json) {
        std::cout << one_line(results) << "\n";
      } else {
        print(results);
      }
      return 0;
    };
  });
}

}  // namespace hone
