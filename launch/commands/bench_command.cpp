#include <chrono>
#include <iostream>

#include "evaluation/devices.hpp"
#include "launch/bench/bench_plan.hpp"
#include "launch/bench/bench_results.hpp"
#include "launch/bench/bench_runner.hpp"
#include "launch/bench/bench_summary.hpp"
#include "launch/commands/commands.hpp"
#include "launch/core_wait.hpp"
#include "launch/files.hpp"
#include "messages/measurements.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct bench_options {
  std::vector<std::string> tasks;
  std::string variants;
  std::string out;
  std::vector<std::string> devices = {"cpu"};
  bool references = false;
  std::string inductor;
  bool verify = false;
  bool screen = false;
  bool share_cores = false;
  bool wait = false;
};

// Returns "4 min left", from the mean time of the documents so far.
std::string time_left(std::chrono::steady_clock::time_point begin, std::size_t done,
                      std::size_t total) {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  const double seconds =
      spent.count() / static_cast<double>(done) * static_cast<double>(total - done);
  return seconds < 90 ? fixed(seconds, 0) + " s left" : fixed(seconds / 60, 0) + " min left";
}

// Describes the outcome of a document in a few words: "ok 1.25x".
std::string describe_outcome(const schema::Evaluation::Reader& result) {
  const std::string outcome(name_of(result.getOutcome()));
  return has_score(result) ? outcome + " " + fixed(result.getScore(), 2) + "x" : outcome;
}

// Describes a summary in one line. Without a timed document, it has no speed-ups.
std::string describe_summary(const bench_summary& s) {
  std::string line = s.device_type + " " + s.group + ": " + std::to_string(s.correct) + " of " +
                     std::to_string(s.tasks) + " tasks correct";
  if (s.left_out > 0) line += ", " + counted(s.left_out, "task") + " without a result left out";
  const auto& eager = s.against.at("eager");
  if (eager.tasks == 0) return line;
  return line + ", geometric mean " + fixed(eager.geometric_mean, 2) + ", median " +
         fixed(eager.median, 2) + ", fast_1 " + percent(eager.fast.at(1));
}

int bench(const bench_options& options) {
  const bench_plan plan = plan_bench(options.tasks, options.variants, options.references);
  const auto devices = plan_devices(options.devices, {.node = "bench",
                                                      .share_cores = options.share_cores,
                                                      .compiled_references = options.inductor,
                                                      .begin_to_wait = core_wait(options.wait)});
  bench_results results(options.out);
  const evaluation_depth depth = options.verify   ? evaluation_depth::verdict
                                 : options.screen ? evaluation_depth::screening
                                                  : evaluation_depth::full;
  const auto begin = std::chrono::steady_clock::now();
  run_bench(plan, devices, results, depth,
            [&](std::size_t done, std::size_t total, const bench_task& t,
                const bench_document& document, const schema::Evaluation::Reader& result) {
              std::cerr << "[" << done << "/" << total << "] " << t.of.name << " " << document.name
                        << ": " << describe_outcome(result) << "  ("
                        << time_left(begin, done, total) << ")\n";
            });
  const auto all = results.of(plan, device_types_of(devices), depth);
  write_text(fs::path(options.out) / "results.csv", print_csv(all));
  write_text(fs::path(options.out) / "results.md", print_markdown(all));
  for (const bench_summary& s : summarize(all)) std::cout << describe_summary(s) << "\n";
  std::cout << "results: " << options.out << "/results.{jsonl,csv,md}\n";
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, command_action& action) {
  auto options = std::make_shared<bench_options>();
  CLI::App* command = app.add_subcommand(
      "bench",
      "Judge many tasks and documents on all devices, and print tables; goes on where it "
      "was stopped");
  command
      ->add_option("task", options->tasks,
                   "task files, folders of them, or names of tasks under configs/tasks")
      ->required();
  command->add_option("--variants", options->variants,
                      "folder of variant documents: TASK/*.md or TASK.md");
  command->add_flag("--references", options->references,
                    "judge each task's reference against itself, with its baselines");
  command->add_option("--inductor", options->inductor,
                      "folder from `hone task compile`: also time its references on GPUs");
  auto* verify = command->add_flag("--verify", options->verify, "verify only: nothing is timed");
  command
      ->add_flag("--screen", options->screen,
                 "time briefly: enough to order the documents of a task, not to quote a speed-up")
      ->excludes(verify);
  command->add_option("--out", options->out, "folder for results.jsonl, results.csv and results.md")
      ->required();
  command->add_option("--devices", options->devices, "cpu, cuda (every GPU) or cuda:NUMBER")
      ->delimiter(',')
      ->capture_default_str();
  command->add_flag("--share-cores", options->share_cores,
                    "judge on cores that others use as well, which makes times meaningless");
  command->add_flag("--wait", options->wait,
                    "wait until a run or another command releases processor cores");
  command->callback([options, &action] { action = [options] { return bench(*options); }; });
}

}  // namespace hone
