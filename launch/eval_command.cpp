#include <iostream>

#include "evaluation/evaluator.hpp"
#include "launch/commands.hpp"
#include "launch/devices.hpp"
#include "launch/files.hpp"
#include "launch/printing.hpp"

namespace hone {
namespace {

struct eval_options {
  std::string task;
  std::vector<std::string> variants;
  std::string device = "cpu";
  std::uint64_t seed = 0;
  bool json = false;
};

int evaluate(const eval_options& options) {
  const task t = load_task(find_task_file(options.task));
  std::vector<std::string> documents;
  for (const std::string& path : options.variants) documents.push_back(read_text(path));
  const auto device = open_device(options.device, "eval");
  evaluator judge(*device);
  bool all_ok = true;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto evaluation = judge.evaluate(documents[i], t, options.seed);
    all_ok = all_ok && evaluation->getOutcome() == Outcome::OK;
    if (options.json) {
      std::cout << one_line(to_json(*evaluation, t.name)) << std::endl;
    } else {
      std::cout << options.variants[i] << ": " << describe(*evaluation) << std::endl;
    }
  }
  return all_ok ? 0 : 1;
}

}  // namespace

void add_eval_command(CLI::App& app, command_action& action) {
  auto options = std::make_shared<eval_options>();
  CLI::App* command = app.add_subcommand("eval", "Judge variant documents without a run; exit code 0 only if all are ok");
  command->add_option("task", options->task, "a task file, or the name of one under configs/tasks")->required();
  command->add_option("variant", options->variants, "variant documents; - is standard input")->required();
  command->add_option("--device", options->device, "cpu, cuda or cuda:NUMBER")->capture_default_str();
  command->add_option("--seed", options->seed, "draw inputs from this seed, to repeat an evaluation");
  command->add_flag("--json", options->json, "one object a line");
  command->callback([options, &action] { action = [options] { return evaluate(*options); }; });
}

}  // namespace hone
