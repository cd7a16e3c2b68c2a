#include <filesystem>
#include <iostream>
#include <map>

#include "launch/commands/commands.hpp"
#include "launch/commands/document_judge.hpp"
#include "launch/files.hpp"
#include "launch/importing.hpp"
#include "launch/slow_notice.hpp"
#include "results/printing.hpp"
#include "tasks/corpus.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct eval_options {
  std::string task;
  std::vector<std::string> variants;
  judge_options judge;
  bool translates = true;
  bool json = false;
};

// Reads a file in Python: as the document into which it is translated for the task or, if that is
// not possible or not wanted, as a Python module.
corpus_document read_module(const std::string& path, const task& t, bool translates) {
  if (translates) {
    std::string why;
    const slow_notice notice([&] { return "translating " + path; });
    const fs::path file = fs::absolute(path);
    try {
      const auto found =
          program_translator({}, {file.parent_path()}).translate(file, t, file.filename());
      for (const std::string& note : found.notes) std::cerr << path << ": " << note << "\n";
      if (found.error.empty()) return {"", path, found.document};
      why = found.error;
    } catch (const std::runtime_error& e) {
      why = e.what();
    }
    std::cerr << path << ": judged as a Python module, because it is not translated: " << why
              << "\n";
  }
  return {"", path, document_of_module(read_text(path))};
}

// Reads the documents of a file: one, or all documents of the sweep with which the file begins.
std::vector<corpus_document> read_documents(const std::string& path, const task& t,
                                            bool translates) {
  if (path.ends_with(".py")) return {read_module(path, t, translates)};
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

int judge_named(const eval_options& options) {
  loaded_tasks tasks(options.task);
  std::vector<document_of_task> documents;
  for (const std::string& path : options.variants) {
    const task* const t = tasks.of(path);
    for (corpus_document& one : read_documents(path, *t, options.translates))
      documents.push_back({t, std::move(one)});
  }
  bool all_ok = true;
  judge_documents(options.judge, documents, [&](const document_of_task& one, const auto& found) {
    all_ok = all_ok && found.getOutcome() == Outcome::OK;
    if (options.json) {
      nlohmann::ordered_json object = {{"document", one.document.name}};
      object.update(to_json(found, one.of->name));
      std::cout << one_line(object) << std::endl;
    } else {
      std::cout << one.document.name << ": " << describe(found) << std::endl;
    }
  });
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
                   "variant documents, corpus files with a sweep, or Python files with a ModelNew "
                   "(hone variant import); - is standard input")
      ->required();
  add_judge_options(*command, options->judge);
  command->add_flag(
      "!--as-module", options->translates,
      "judge Python files as modules, and do not try to translate them into documents "
      "first");
  command->add_flag("--json", options->json, "print one JSON object per document");
  command->callback([options, &action] { action = [options] { return judge_named(*options); }; });
}

}  // namespace hone
