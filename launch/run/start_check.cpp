#include "launch/run/start_check.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "launch/printing.hpp"
#include "launch/run/run_inputs.hpp"
#include "messages/record.hpp"
#include "policy/decoder_config.hpp"
#include "policy/tokenizer.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

// Documents of a task below which a policy mostly repeats them.
constexpr std::size_t few_documents = 8;

bool learns_from_corpus(const configuration& c) {
  return c.policy.kind == "model" && c.learner.plan.sft.updates > 0;
}

// Returns the memory that is free on this machine in bytes, or nullopt if it is unknown.
std::optional<double> free_memory() {
  std::ifstream in("/proc/meminfo");
  for (std::string key; in >> key; in.ignore(1000, '\n')) {
    double kilobytes = 0;
    if (key == "MemAvailable:" && in >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

// Collects what is wrong, step after step.
class start_check {
 public:
  explicit start_check(const configuration& c) : c_(c) {}

  start_findings examine() {
    const auto tasks = attempt([&] { return load_tasks(c_); });
    const auto corpus = attempt([&] { return read_corpus(c_); });
    std::vector<corpus_document> chosen;
    if (tasks && corpus) {
      chosen = choose_documents(c_, *tasks, *corpus);
      found_ = check_corpus(c_, *tasks, *corpus, chosen);
    }
    const auto prompts = attempt([&] { return load_prompts(c_); });
    if (tasks) found_.tasks = tasks->all().size();
    found_.documents = chosen.size();
    open_devices();
    if (c_.policy.kind == "model") {
      attempt([&] { return make_trainer(c_) != nullptr; });
      if (tasks && prompts)
        attempt([&] { return compare_with_context(*tasks, **prompts, chosen), true; });
    }
    return std::move(found_);
  }

 private:
  // Returns what a step makes, or nullopt with a problem if it fails.
  template <class Step>
  auto attempt(const Step& step) -> std::optional<decltype(step())> {
    try {
      return step();
    } catch (const std::exception& e) {
      found_.problems.emplace_back(e.what());
      return std::nullopt;
    }
  }

  void open_devices() {
    const auto planned = attempt([&] {
      return plan_devices(
          c_.node.devices,
          {.node = "node 0", .share_cores = c_.node.share_cores, .simulated = c_.simulated});
    });
    if (!planned) return;
    for (const planned_device& device : *planned) {
      attempt([&] { return device.make() != nullptr; });
      found_.notes.push_back("device " + device.name + ": " +
                             std::string(view(device.type->getName())));
    }
  }

  void compare_with_context(const task_table& tasks, const prompt_template& prompts,
                            const std::vector<corpus_document>& documents) {
    const std::filesystem::path folder = c_.policy.folder;
    const decoder_config policy = decoder_config::load(folder / "config.json");
    const tokenizer words = tokenizer::load(folder / "tokenizer.json");
    std::map<std::string, std::size_t> longest;  // document by task, in tokens
    for (const corpus_document& document : documents) {
      std::size_t& tokens = longest[document.task];
      tokens = std::max(tokens, words.encode(document.text).size() + 1);
    }
    const auto context = static_cast<std::size_t>(policy.context);
    const auto answer = static_cast<std::size_t>(c_.generation.options.max_new_tokens);
    std::size_t shortest_prompt = context;
    std::size_t longest_prompt = 0;
    for (const auto& t : tasks.all()) {
      record_builder<schema::Draw> draw;
      draw->setDeviceType("a device");
      const std::size_t prompt = words.encode(prompts.render(facts_for(*t, *draw.finish()))).size();
      shortest_prompt = std::min(shortest_prompt, prompt);
      longest_prompt = std::max(longest_prompt, prompt);
      const std::string lengths = t->name + ": its prompt has " + std::to_string(prompt) +
                                  " tokens without exemplars, the policy's context " +
                                  std::to_string(context);
      if (prompt + 1 >= context) found_.problems.push_back(lengths + ": no room for an answer");
      const std::size_t document = longest[t->name];
      if (document > answer)
        found_.notes.push_back(t->name + ": its longest document has " + std::to_string(document) +
                               " tokens, and generation.max_new_tokens is " +
                               std::to_string(answer) + ": the policy cannot write it");
      if (prompt + document > context)
        found_.notes.push_back(lengths + ": its longest document, of " + std::to_string(document) +
                               " tokens, is cut off");
    }
    found_.notes.push_back("prompts without exemplars have " + std::to_string(shortest_prompt) +
                           " to " + std::to_string(longest_prompt) + " tokens, answers at most " +
                           std::to_string(answer) + ", the context has " + std::to_string(context));
    compare_with_memory(policy);
  }

  // The learner holds the weights, the reference's, gradients and two moments; each generator holds
  // the weights.
  void compare_with_memory(const decoder_config& policy) {
    const double of_layer =
        static_cast<double>(policy.width) *
        static_cast<double>(2 * (policy.heads + policy.kv_heads) * policy.head_width +
                            3 * policy.feed_forward);
    const double parameters =
        static_cast<double>(policy.layers) * of_layer +
        static_cast<double>(policy.vocabulary * policy.width * (policy.tied_head ? 1 : 2));
    const double bytes = policy.dtype == "float32" ? 4 : 2;
    const double needed =
        parameters * (bytes * static_cast<double>(3 + c_.generation.replicas) + 2 * sizeof(float));
    const std::string said = "the policy has " + fixed(parameters / 1e6, 1) +
                             " million weights; with gradients, moments and copies it takes " +
                             fixed(needed / (1 << 30), 2) + " GiB, without activations";
    const auto available = free_memory();
    if (c_.policy.device == "cpu" && available && needed > *available) {
      found_.problems.push_back(said + "; " + fixed(*available / (1 << 30), 2) + " GiB are free");
    } else {
      found_.notes.push_back(said);
    }
  }

  const configuration& c_;
  start_findings found_;
};

}  // namespace

start_findings check_corpus(const configuration& c, const task_table& tasks,
                            const std::vector<corpus_document>& corpus,
                            const std::vector<corpus_document>& chosen) {
  start_findings found;
  if (c.corpus.folder.empty()) return found;
  std::set<std::string> strangers;
  for (const corpus_document& document : corpus) {
    const auto file = std::filesystem::path(c.tasks.folder) / (document.task + ".toml");
    if (tasks.find(document.task) == nullptr) {
      if (!std::filesystem::exists(file)) strangers.insert(document.task);
      continue;
    }
    const auto parsed = parse_variant_document(document.text);
    if (const auto* problem = std::get_if<parse_problem>(&parsed))
      found.problems.push_back(c.corpus.folder + "/" + document.task + "/" + document.name + ": " +
                               to_string(*problem));
  }
  for (const std::string& name : strangers)
    found.problems.push_back(c.corpus.folder + "/" + name +
                             ": the folder has documents, and there is no task of its name in " +
                             c.tasks.folder);
  if (!learns_from_corpus(c)) return found;
  std::map<std::string, std::size_t> counts;
  for (const corpus_document& document : chosen) ++counts[document.task];
  if (chosen.empty())
    found.problems.push_back(c.corpus.folder +
                             ": has no document of these tasks, and the sft stage learns from it");
  for (const auto& t : tasks.all()) {
    const std::size_t count = counts[t->name];
    if (count >= few_documents || chosen.empty()) continue;
    found.notes.push_back(t->name + ": the corpus has " + std::to_string(count) +
                          " documents of it; a policy that learns from so few mostly repeats "
                          "them. A sweep, or variants by people or another model, add more");
  }
  return found;
}

start_findings check_start(const configuration& c) { return start_check(c).examine(); }

}  // namespace hone
