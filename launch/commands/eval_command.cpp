#include <atomic>
#include <filesystem>
#include <future>
#include <iostream>
#include <map>

#include "evaluation/devices.hpp"
#include "evaluation/evaluate.hpp"
#include "launch/commands/commands.hpp"
#include "launch/core_wait.hpp"
#include "launch/files.hpp"
#include "launch/printing.hpp"
#include "launch/slow_notice.hpp"
#include "tasks/corpus.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct eval_options {
  std::string task;
  std::vector<std::string> variants;
  std::string device = "cpu";
  std::uint64_t seed = 0;
  bool json = false;
  bool share_cores = false;
  bool wait = false;
};

// Reads the documents of a file: one, or all documents of the sweep with which the file begins.
std::vector<corpus_document> read_documents(const std::string& path) {
  const std::string text = read_text(path);
  if (!text.starts_with("sweep:")) return {{"", path, text}};
  return expand_corpus_text(text, path, "", path);
}

// Finds the task file of a document in a folder of tasks. As in a corpus, a document lies in a
// folder that is named after its task, or has its task's name itself.
fs::path find_task_of(const std::string& document, const fs::path& tasks) {
  const fs::path path = fs::absolute(document);
  for (const fs::path& name : {path.parent_path().filename(), path.stem()}) {
    fs::path file = tasks / (name.string() + ".toml");
    if (fs::is_regular_file(file)) return file;
  }
  throw format_error(document, 0, "",
                     "neither its folder nor the file is named after a task of " + tasks.string());
}

// The tasks of the documents, each loaded once. Pointers stay valid.
class loaded_tasks {
 public:
  explicit loaded_tasks(const std::string& named) : named_(named) {}

  const task* of(const std::string& document) {
    const fs::path file =
        fs::is_directory(named_) ? find_task_of(document, named_) : find_task_file(named_);
    const auto found = tasks_.find(file);
    return found != tasks_.end() ? &found->second
                                 : &tasks_.emplace(file, load_task(file)).first->second;
  }

 private:
  std::string named_;
  std::map<fs::path, task> tasks_;
};

// Judges one document, and says on standard error what it is at if that takes long.
record<schema::Evaluation> judge_document(device& on, std::future<compiled_document>& compiled,
                                          const task& t, const std::string& name,
                                          std::uint64_t seed) {
  std::atomic<const char*> part = "compiling";
  const slow_notice notice([&] { return std::string(part.load()) + " " + name; });
  return evaluate(on, compiled.get(), t, evaluation_depth::full, seed,
                  [&](const char* begun) { part = begun; });
}

int judge_documents(const eval_options& options) {
  loaded_tasks tasks(options.task);
  std::vector<std::pair<const task*, corpus_document>> documents;
  for (const std::string& path : options.variants) {
    for (corpus_document& one : read_documents(path))
      documents.emplace_back(tasks.of(path), std::move(one));
  }
  const planned_device planned =
      plan_device(options.device, {.node = "eval",
                                   .share_cores = options.share_cores,
                                   .begin_to_wait = core_wait(options.wait),
                                   .programs = documents.size()});
  compile_ahead compiler(*planned.type);
  std::vector<std::future<compiled_document>> compiled;
  for (const auto& [of, document] : documents)
    compiled.push_back(compiler.submit(document.text, *of));
  const auto device = [&] {
    const slow_notice notice([&] { return "opening the device " + planned.name; });
    return planned.make();
  }();
  bool all_ok = true;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto& [of, document] = documents[i];
    const task& t = *of;
    const auto evaluation = judge_document(*device, compiled[i], t, document.name, options.seed);
    all_ok = all_ok && evaluation->getOutcome() == Outcome::OK;
    if (options.json) {
      nlohmann::ordered_json one = {{"document", document.name}};
      one.update(to_json(*evaluation, t.name));
      std::cout << one_line(one) << std::endl;
    } else {
      std::cout << document.name << ": " << describe(*evaluation) << std::endl;
    }
  }
  return all_ok ? 0 : 1;
}

}  // namespace

void add_eval_command(CLI::App& app, command_action& action) {
  auto options = std::make_shared<eval_options>();
  CLI::App* command = app.add_subcommand(
      "eval", "Judge variant documents without a run; exit code 0 only if all are ok");
  command
      ->add_option(
          "task", options->task,
          "a task file, the name of one under configs/tasks, or a folder of task files: each "
          "document then lies in a folder named after its task, or has its name")
      ->required();
  command
      ->add_option("variant", options->variants,
                   "variant documents, or corpus files with a sweep; - is standard input")
      ->required();
  command->add_option("--device", options->device, "cpu, cuda or cuda:NUMBER")
      ->capture_default_str();
  command->add_option("--seed", options->seed,
                      "draw the inputs from this seed, to repeat a verification");
  command->add_flag("--json", options->json, "print one JSON object per document");
  command->add_flag("--share-cores", options->share_cores,
                    "judge on a core that others use as well, which makes times meaningless");
  command->add_flag("--wait", options->wait,
                    "wait until a run or another command releases the GPU or a processor core");
  command->callback(
      [options, &action] { action = [options] { return judge_documents(*options); }; });
}

}  // namespace hone
