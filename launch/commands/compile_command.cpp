#include <iostream>
#include <thread>

#include "launch/commands/commands.hpp"
#include "launch/files.hpp"
#include "process/find_program.hpp"
#include "results/printing.hpp"
#include "tasks/compiling/compiled_references.hpp"

namespace hone {
namespace {

struct compile_options {
  std::vector<std::string> tasks;
  std::string out = "compiled";
  unsigned workers = std::max(1U, std::thread::hardware_concurrency());
  bool max_autotune = false;
};

int compile(const compile_options& options) {
  std::vector<task> tasks;
  for (const std::string& named : options.tasks) {
    for (const auto& file : find_task_files(named)) tasks.push_back(load_task(file));
  }
  const std::size_t failed = compile_references(
      tasks,
      {.python = find_python(),
       .program = find_python_program("tasks/compiling/compile_references.py"),
       .folder = options.out,
       .workers = options.workers,
       .max_autotune = options.max_autotune},
      [](const task& t, const task_case& at, double seconds, const std::string& error) {
        const std::string sizes = print_sizes(at);
        std::cout << t.name << (sizes.empty() ? "" : " ") << sizes << ": "
                  << (error.empty() ? "compiled in " + fixed(seconds, 1) + " s" : error)
                  << std::endl;
      });
  return failed == 0 ? 0 : 1;
}

}  // namespace

void add_compile_command(CLI::App& tasks, command_action& action) {
  auto options = std::make_shared<compile_options>();
  CLI::App* command = tasks.add_subcommand(
      "compile",
      "Compile references with PyTorch's Inductor for this machine's GPUs, as a baseline for "
      "`hone bench --inductor`; runs them in Python, so only for tasks that you trust");
  command
      ->add_option("task", options->tasks,
                   "task files, folders of them, or names of tasks under configs/tasks")
      ->required();
  command
      ->add_option("--out", options->out,
                   "folder for the compiled references; those that are there stay as they are")
      ->capture_default_str();
  command->add_option("--workers", options->workers, "references that are compiled at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->add_flag("--max-autotune", options->max_autotune,
                    "let Inductor measure its choices on the GPU, for one reference at a time");
  command->callback([options, &action] { action = [options] { return compile(*options); }; });
}

}  // namespace hone
