#include <iostream>

#include "evaluation/devices.hpp"
#include "evaluation/evaluator.hpp"
#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "launch/printing.hpp"
#include "tasks/corpus.hpp"

namespace hone {
namespace {

struct eval_options {
  std::string task;
  std::vector<std::string> variants;
  std::string device = "cpu";
  std::uint64_t seed = 0;
  bool json = false;
};

// Reads the documents of a file: one, or all documents of the sweep with which the file begins.
std::vector<corpus_document> read_documents(const std::string& path) {
  const std::string text = read_text(path);
  if (!text.starts_with("sweep:")) return {{"", path, text}};
  return expand_corpus_text(text, path, "", path);
}

int evaluate(const eval_options& options) {
  const task t = load_task(find_task_file(options.task));
  std::vector<corpus_document> documents;
  for (const std::string& path : options.variants) {
    for (corpus_document& one : read_documents(path)) documents.push_back(std::move(one));
  }
  const auto device = open_device(options.device, "eval", documents.size());
  evaluator judge(*device);
  bool all_ok = true;
  for (const corpus_document& document : documents) {
    const auto evaluation = judge.evaluate(document.text, t, options.seed);
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
  command->add_option("task", options->task, "a task file, or the name of one under configs/tasks")
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
  command->callback([options, &action] { action = [options] { return evaluate(*options); }; });
}

}  // namespace hone
