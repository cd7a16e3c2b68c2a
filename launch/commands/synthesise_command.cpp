#include <algorithm>
#include <iostream>
#include <map>
#include <thread>

#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "process/find_program.hpp"
#include "results/printing.hpp"
#include "tasks/synthesising/task_synthesis.hpp"

namespace hone {
namespace {

constexpr std::size_t nearest_shown = 20;

struct synthesise_options {
  std::size_t count = 100;
  std::uint64_t seed = 1;
  std::string out;
  std::vector<std::string> unlike;
  double bound = 0.5;
  double min_us = 20;
  double max_us = 5000;
  std::string device;
  std::string dtype = "float32";
  std::string precision = "strict";
  bool like_imports = false;
  unsigned workers = std::max(1U, std::thread::hardware_concurrency());
};

// Counts of the draws, for the report.
struct synthesis_counts {
  std::size_t programs = 0;
  std::size_t tasks = 0;
  std::map<std::string, std::size_t> unfit;
  std::vector<synthesised> nearest;              // tasks, without their contents
  std::map<std::string, std::size_t> too_close;  // by given task
};

std::string report_of(const synthesis_counts& counts, const synthesise_options& options) {
  std::string text = counted(counts.tasks, "task") + " of " + counted(counts.programs, "program") +
                     " that were drawn, seed " + std::to_string(options.seed) + "\n\nNo task:\n";
  for (const auto& [why, count] : counts.unfit)
    text += pad(std::to_string(count), 8, true) + "  " + why + "\n";
  if (options.unlike.empty()) return text;
  std::vector<synthesised> nearest = counts.nearest;
  std::stable_sort(nearest.begin(), nearest.end(),
                   [](const auto& a, const auto& b) { return a.similarity > b.similarity; });
  text += "\nSimilarity to the nearest given task, bound " + fixed(options.bound, 2) +
          " (1: the same graph):\n";
  if (!nearest.empty())
    text += "  median " + fixed(nearest[nearest.size() / 2].similarity, 2) + ", largest " +
            fixed(nearest.front().similarity, 2) + "\n";
  for (std::size_t i = 0; i < std::min(nearest_shown, nearest.size()); ++i)
    text += "  " + fixed(nearest[i].similarity, 2) + "  " + pad(nearest[i].made->name, 20) + "  " +
            nearest[i].nearest + "\n";
  text += "\nLeft out as too close, by given task:\n";
  for (const auto& [name, count] : counts.too_close)
    text += pad(std::to_string(count), 8, true) + "  " + name + "\n";
  return text;
}

int synthesise(const synthesise_options& options) {
  synthesis_options wanted{.python = find_python(),
                           .program = find_python_program("tasks/synthesising/synthesise.py"),
                           .count = options.count,
                           .seed = options.seed,
                           .workers = options.workers,
                           .min_us = options.min_us,
                           .max_us = options.max_us,
                           .device = options.device,
                           .type = *dtype_named(options.dtype),
                           .is_relaxed = options.precision == "relaxed",
                           .looks_imported = options.like_imports,
                           .given = {},
                           .bound = options.bound};
  for (const std::string& named : options.unlike) {
    for (const auto& file : find_task_files(named)) wanted.given.push_back(load_task(file));
  }
  const std::filesystem::path folder = options.out;
  std::filesystem::create_directories(folder);
  synthesis_counts counts;
  synthesise_tasks(wanted, [&](const synthesised& one) {
    ++counts.programs;
    if (!one.made) {
      ++counts.unfit[one.unfit];
      if (!one.nearest.empty()) ++counts.too_close[one.nearest];
      return;
    }
    ++counts.tasks;
    write_text(folder / (one.made->name + ".toml"), one.made->text);
    counts.nearest.push_back(one);
    counts.nearest.back().made->text.clear();
    std::cout << "[" << counts.tasks << "/" << options.count << "] " << one.made->name << ": "
              << counted(one.operators, "operator") << ", " << fixed(one.us, 0) << " us, "
              << one.made->summary << std::endl;
  });
  const std::string report = report_of(counts, options);
  write_text(folder / "synthesis.txt", report);
  std::cout << report << "tasks: " << folder.string()
            << ", this report: " << (folder / "synthesis.txt").string() << "\n";
  return 0;
}

}  // namespace

void add_synthesise_command(CLI::App& tasks, command_action& action) {
  auto options = std::make_shared<synthesise_options>();
  CLI::App* command = tasks.add_subcommand(
      "synthesise",
      "Draw tasks from a grammar of operators, for a policy to learn from, each checked to run and "
      "to be unlike given tasks");
  command->add_option("--out", options->out, "folder for the task files and synthesis.txt")
      ->required();
  command->add_option("--count", options->count, "tasks to make")->capture_default_str();
  command->add_option("--seed", options->seed, "of the draws: the same seed gives the same tasks")
      ->capture_default_str();
  command->add_option("--unlike", options->unlike,
                      "task files, or folders of them, to keep away from, such as those on which a "
                      "policy is to be evaluated");
  command
      ->add_option("--bound", options->bound,
                   "similarity to such a task from which on a program is left out: the share of "
                   "paths of up to three operators in common")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--least-us", options->min_us, "least microseconds of a call")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6));
  command->add_option("--most-us", options->max_us, "most microseconds of a call")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1e6));
  command->add_option("--device", options->device,
                      "time every task there: cpu or cuda:NUMBER; without it, times are estimated "
                      "for a GPU");
  command->add_option("--dtype", options->dtype, "type of floating-point tensors")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}));
  command->add_option("--precision", options->precision, "relaxed: the tasks admit TF32")
      ->capture_default_str()
      ->check(CLI::IsMember({"strict", "relaxed"}));
  command->add_flag("--like-imports", options->like_imports,
                    "write references as `hone task import` writes modules: a statement for each "
                    "operator, parameters named after modules");
  command->add_option("--workers", options->workers, "processes that draw and check")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->callback([options, &action] { action = [options] { return synthesise(*options); }; });
}

}  // namespace hone
