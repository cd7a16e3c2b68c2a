#include "launch/run/start_check.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "evaluation/evaluate.hpp"
#include "launch/run/duration_estimate.hpp"
#include "launch/run/length_check.hpp"
#include "launch/run/run_inputs.hpp"
#include "launch/slow_notice.hpp"
#include "messages/names.hpp"
#include "messages/record.hpp"
#include "policy/decoder_config.hpp"
#include "policy/endpoint/endpoint_check.hpp"
#include "policy/policy_device.hpp"
#include "policy/policy_memory.hpp"
#include "policy/training/trainer.hpp"
#include "results/printing.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

// Documents of a task below which a policy mostly repeats them.
constexpr std::size_t few_documents = 8;
// Share of the documents that must have others of the same task, so that prompts show them.
constexpr double min_share_with_others = 0.1;
// Tasks of which a dry run judges a document.
constexpr std::size_t tried_tasks = 3;
constexpr std::size_t read_documents = 50;  // whose lengths a dry run counts
constexpr std::int64_t max_timed = 4;       // documents in an update that a dry run times
// A dry run tries a short update first, of this many tokens. If a longer one would take more
// seconds than this, it is not made: its time is taken to be in proportion to its tokens.
constexpr std::size_t short_update = 128;
constexpr double max_update_s = 5;

bool learns_from_corpus(const configuration& c) {
  return c.policy.kind == "model" && c.learner.plan.sft.updates > 0 && c.stream.workers == 0;
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

// Returns the memory of the policy's GPU in bytes, less what a device takes if it judges there;
// nullopt without such a GPU.
std::optional<double> free_gpu_memory(const std::string& name, bool is_shared) {
  try {
    const std::vector<gpu_facts> gpus = gpus_named(name);
    if (gpus.empty()) return std::nullopt;
    return static_cast<double>(gpus.front().memory_bytes) * (is_shared ? share_beside_judge : 1);
  } catch (const std::runtime_error&) {  // opening the policy's device reports the problem
    return std::nullopt;
  }
}

// Returns what to say if later stages show exemplars and sft hardly does, or nothing. `counts`:
// documents of the corpus by task.
std::optional<std::string> describe_unseen_exemplars(
    const configuration& c, const std::map<std::string, std::size_t>& counts) {
  const curriculum_options& plan = c.learner.plan;
  const bool draws = plan.self_supervised.steps + plan.contrastive.steps > 0;
  if (counts.empty() || !draws || c.pool.storage.exemplars.method == exemplar_method::none)
    return std::nullopt;
  std::size_t documents = 0;
  std::size_t with_others = 0;  // of the same task
  for (const auto& [name, count] : counts) {
    documents += count;
    with_others += count > 1 ? count : 0;
  }
  const bool are_shown = c.corpus.timed && with_others > min_share_with_others * documents;
  if (are_shown) return std::nullopt;
  return std::string(c.corpus.timed ? "hardly any task has two documents"
                                    : "the corpus is not timed (corpus.timed)") +
         ", so the prompts of sft hardly show exemplars, while those of later stages do, and a "
         "policy that has seen none may write nothing after them: set pool.exemplars = \"none\", "
         "or " +
         (c.corpus.timed ? "add documents" : "have it timed");
}

// Collects the problems, step after step.
class start_check {
 public:
  start_check(const configuration& c, std::function<void(const std::string&)> begin_to_wait)
      : c_(c), begin_to_wait_(std::move(begin_to_wait)) {}

  start_findings examine() {
    const slow_notice notice([&] { return std::string("checking: ") + doing_.load(); });
    set_policy_threads(static_cast<int>(c_.policy.threads));  // as in a run, which is timed here
    const auto tasks = attempt([&] { return load_tasks(c_); });
    const auto corpus = attempt([&] { return read_corpus(c_, tasks ? *tasks : task_table()); });
    std::vector<corpus_document> chosen;
    if (tasks && corpus) {
      chosen = choose_documents(c_, *tasks, *corpus);
      found_ = check_corpus(c_, *tasks, *corpus, chosen);
    }
    const auto prompts = attempt([&] { return load_prompts(c_); });
    if (tasks) found_.tasks = tasks->all().size();
    found_.documents = chosen.size();
    doing_ = "judging documents";
    open_devices(tasks ? &*tasks : nullptr, chosen);
    if (c_.policy.kind == "endpoint") check_endpoints();
    if (c_.policy.kind == "model" && attempt([&] { return require_policy(c_), true; })) {
      if (const auto chat = attempt([&] { return find_chat_format(c_); })) c_.policy.chat = *chat;
      if (const auto said = attempt([&] { return describe_dtype(c_); }); said && !said->empty())
        found_.notes.push_back(*said);
      doing_ = "opening the policy";
      const auto learner = attempt([&] { return make_trainer(c_); });
      doing_ = "comparing documents with the policy's context";
      if (tasks && prompts)
        attempt([&] { return compare_with_context(*tasks, **prompts, chosen), true; });
      doing_ = "measuring an update of the policy";
      if (learner && tasks && found_.problems.empty())
        attempt([&] { return time_updates(**learner, chosen), true; });
    }
    if (tasks && found_.problems.empty()) {
      const expected_duration expected =
          estimate_duration(chosen.size(), c_.learner.plan.sft, c_.stream.workers > 0,
                            work_of_stages(c_, *tasks, 1), pace_);
      if (expected.minutes > 0) found_.notes.push_back(describe(expected));
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
      const std::string problem = e.what();
      auto& all = found_.problems;
      if (std::find(all.begin(), all.end(), problem) == all.end()) all.push_back(problem);
      return std::nullopt;
    }
  }

  void check_endpoints() {
    const auto keys = attempt([&] { return read_endpoint_keys(c_.endpoints); });
    if (!keys) return;
    for (const auto& [name, key] : *keys) {
      if (const auto said =
              attempt([&] { return check_endpoint(name, c_.endpoints.at(name), key); }))
        found_.notes.push_back(*said);
    }
  }

  void open_devices(const task_table* tasks, const std::vector<corpus_document>& documents) {
    auto planned = attempt([&] {
      return plan_devices(c_.node.devices, {.node = "node 0",
                                            .share_cores = c_.node.share_cores,
                                            .baselines = c_.node.baselines,
                                            .simulated = c_.simulated,
                                            .begin_to_wait = begin_to_wait_});
    });
    if (!planned) return;
    shares_gpu_ = find_device_on_gpu(*planned, c_.policy.device) != nullptr;
    for (const std::string& one : c_.policy.data_parallel) {
      if (find_device_on_gpu(*planned, one) != nullptr)
        found_.problems.push_back("policy.data_parallel names " + one +
                                  ", where a device of node.devices judges");
    }
    std::map<std::string, std::size_t> count;  // of devices by type
    for (const planned_device& one : *planned) ++count[std::string(view(one.type->getName()))];
    for (const planned_device& one : *planned) {
      const std::string type(view(one.type->getName()));
      auto opened = attempt([&] { return one.make(); });
      found_.notes.push_back("device " + one.name + ": " + type);
      if (opened && tasks != nullptr && count.contains(type))
        attempt([&] { return time_judging(**opened, one, count[type], *tasks, documents), true; });
      count.erase(type);
    }
  }

  // Judges a document of each of the first tasks, and says how long that takes.
  void time_judging(device& on, const planned_device& planned, std::size_t devices,
                    const task_table& tasks, const std::vector<corpus_document>& documents) {
    compile_ahead compiler(*planned.type);
    std::set<std::string> tried;
    std::string outcomes;
    const auto begin = std::chrono::steady_clock::now();
    for (const corpus_document& document : documents) {
      if (tried.size() == tried_tasks || !tried.insert(document.task).second) continue;
      const task& t = *tasks.find(document.task);
      const auto result = evaluate(on, compiler.submit(document.text, t).get(), t);
      outcomes += (outcomes.empty() ? "" : ", ") + document.task + "/" + document.name + " " +
                  std::string(name_of(result->getOutcome()));
    }
    if (tried.empty()) return;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    const double each = spent.count() / static_cast<double>(tried.size());
    pace_.judging_s = std::max(pace_.judging_s, each / static_cast<double>(devices));
    found_.notes.push_back("judging takes " + fixed(each, 1) + " s a variant here (" + outcomes +
                           ")");
  }

  // Times updates with documents of typical length.
  void time_updates(trainer& learner, const std::vector<corpus_document>& documents) {
    if (documents.empty() || !trains(c_)) return;
    std::size_t tokens = 0;
    const std::size_t read = std::min(documents.size(), read_documents);
    for (std::size_t i = 0; i < read; ++i)
      tokens += learner.codec().encode_answer(documents[i].text).size();
    const auto length = std::min<std::size_t>(longest_prompt_ + tokens / read,
                                              static_cast<std::size_t>(learner.context()));
    const auto examples =
        static_cast<std::size_t>(std::clamp<std::int64_t>(c_.learner.plan.sft.batch, 1, max_timed));
    // The first update makes buffers and kernels. A short one shows whether others take too long.
    const std::size_t tried = std::min(length, short_update);
    (void)time_update(learner, 1, tried);
    const double least = time_update(learner, 1, tried);
    const double tokens_each = static_cast<double>(length) / static_cast<double>(tried);
    pace_.update_s = least * tokens_each;
    if (pace_.update_s * static_cast<double>(examples) > max_update_s) return;
    std::vector<double> times_s;
    for (int i = 0; i < 3; ++i) times_s.push_back(time_update(learner, examples, length));
    pace_.update_s =
        *std::min_element(times_s.begin(), times_s.end()) / static_cast<double>(examples);
  }

  // Returns the seconds that an update takes with examples of a length in tokens.
  double time_update(trainer& learner, std::size_t examples, std::size_t length) const {
    const std::vector<sft_example> batch(examples, {std::vector<token_id>(length / 2, 1),
                                                    std::vector<token_id>(length - length / 2, 1)});
    const auto begin = std::chrono::steady_clock::now();
    learner.sft_update(batch, 0, 1);
    finish_policy_work(c_.policy.device);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  void compare_with_context(const task_table& tasks, const prompt_template& prompts,
                            const std::vector<corpus_document>& documents) {
    length_findings lengths = check_lengths(c_, tasks, prompts, documents);
    append(found_.problems, std::move(lengths.problems));
    append(found_.notes, std::move(lengths.warnings));
    append(found_.notes, std::move(lengths.notes));
    longest_prompt_ = lengths.max_prompt;
    compare_with_memory(load_config_for(c_.policy.device, c_.policy.folder, c_.policy.dtype),
                        static_cast<std::int64_t>(lengths.max_prompt));
  }

  static void append(std::vector<std::string>& to, std::vector<std::string>&& lines) {
    to.insert(to.end(), std::make_move_iterator(lines.begin()),
              std::make_move_iterator(lines.end()));
  }

  void compare_with_memory(const decoder_config& policy, std::int64_t max_prompt) {
    const policy_memory memory =
        memory_of(policy, c_.policy.adapters.rank, 1 + c_.policy.data_parallel.size());
    const auto of_generators = devices_of_generators(c_);
    const auto here = static_cast<double>(std::count_if(
        of_generators.begin(), of_generators.end(),
        [&](const std::string& one) { return are_same_device(one, c_.policy.device); }));
    for (const auto& [key, devices] :
         {std::pair{"generation.devices", &c_.generation.devices},
          std::pair{"policy.data_parallel", &c_.policy.data_parallel}}) {
      for (const std::string& one : *devices) {
        if (one != "cpu" && !free_gpu_memory(one, false))
          found_.problems.push_back(std::string(key) + " names " + one + ", which is not here");
      }
    }
    const double of_weights = memory.of_learner + here * memory.of_generator;
    const std::int64_t longest =
        std::min(policy.context, max_prompt + c_.generation.options.max_new_tokens);
    const auto available =
        c_.policy.device == "cpu" ? free_memory() : free_gpu_memory(c_.policy.device, shares_gpu_);
    double of_sequences =
        here * memory.of_token * static_cast<double>(c_.generation.options.slots * longest);
    // Where keys and values lie in pages, samples wait for their share of the whole memory.
    if (c_.policy.device != "cpu" && policy.dtype != "float32" && available)
      of_sequences = std::min(of_sequences, here * c_.generation.options.memory_share *
                                                *free_gpu_memory(c_.policy.device, false));
    const double needed = of_weights + of_sequences;
    const std::string said =
        "the policy has " + fixed(memory.parameters / 1e6, 1) +
        " million weights; with gradients, moments and copies it takes " +
        fixed(of_weights / (1 << 30), 2) + " GiB, and keys and values of " +
        counted(static_cast<std::size_t>(c_.generation.options.slots), "sequence") + " take " +
        fixed(of_sequences / (1 << 30), 2) + " GiB, without activations";
    if (available && needed > *available) {
      found_.problems.push_back(said + "; " + fixed(*available / (1 << 30), 2) + " GiB are free");
    } else {
      found_.notes.push_back(said);
    }
  }

  configuration c_;
  std::function<void(const std::string&)> begin_to_wait_;
  start_findings found_;
  std::atomic<const char*> doing_ = "reading tasks and documents";
  measured_pace pace_;
  std::size_t longest_prompt_ = 0;  // tokens
  bool shares_gpu_ = false;         // a device judges on the policy's GPU
};

}  // namespace

start_findings check_corpus(const configuration& c, const task_table& tasks,
                            const std::vector<corpus_document>& corpus,
                            const std::vector<corpus_document>& chosen) {
  start_findings found;
  if (c.corpus.folder.empty() && c.corpus.taught == 0) return found;
  std::set<std::string> strangers;
  for (const corpus_document& document : corpus) {
    const auto file = std::filesystem::path(c.tasks.folder) / (document.task + ".toml");
    if (tasks.find(document.task) == nullptr) {
      if (!std::filesystem::exists(file)) strangers.insert(document.task);
      continue;
    }
    const auto parsed = parse_variant_document(document.text);
    if (const auto* problem = std::get_if<parse_problem>(&parsed))
      found.problems.push_back(document.file + ": " + to_string(*problem));
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
  std::vector<std::string> sparse;
  for (const auto& t : tasks.all()) {
    const std::size_t count = counts[t->name];
    if (count >= few_documents || chosen.empty() || tasks.is_held_out(t->id)) continue;
    sparse.push_back(t->name + ": the corpus has " + counted(count, "document") +
                     " of it; a policy that learns from so few mostly repeats "
                     "them. A sweep, or variants by people or another model, add more");
  }
  for (std::string& line : shortened(std::move(sparse))) found.notes.push_back(std::move(line));
  if (auto note = describe_unseen_exemplars(c, counts)) found.notes.push_back(std::move(*note));
  return found;
}

start_findings check_start(const configuration& c,
                           const std::function<void(const std::string&)>& begin_to_wait) {
  return start_check(c, begin_to_wait).examine();
}

}  // namespace hone
