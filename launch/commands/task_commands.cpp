#include <algorithm>
#include <iostream>

#include "evaluation/devices.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/document_judge.hpp"
#include "launch/files.hpp"
#include "launch/slow_notice.hpp"
#include "messages/ids.hpp"

namespace hone {
namespace {

int list_tasks() {
  const auto folder = configs_folder() / "tasks";
  if (!std::filesystem::is_directory(folder))
    throw std::runtime_error(folder.string() + ": there is no such folder");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const task t = load_task(file);
    std::cout << t.name << std::string(t.name.size() < 28 ? 28 - t.name.size() : 1, ' ')
              << t.summary << "\n";
  }
  return 0;
}

// Parses each file and runs its reference on every case. A problem in one file does not keep the
// others from being checked, but a file that does not exist is an error. Returns the exit code.
int check_tasks(const std::vector<std::string>& files, const device_choice& choice) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& given : files) {
    for (const auto& path : find_task_files(given)) paths.push_back(path);
  }
  std::unique_ptr<device> judge;
  bool all_good = true;
  for (const auto& path : paths) {
    try {
      const task t = load_task(path);
      if (judge == nullptr) judge = plan_device(choice, "check", 1).make();
      const task_report report = [&] {
        const slow_notice notice([&] { return "running the reference of " + t.name; });
        return judge->check_task(t);
      }();
      if (report.failure) {
        all_good = false;
        std::cout << path.string() << ": the reference fails (" << name_of(report.failure->outcome)
                  << "): " << report.failure->message << std::endl;
        continue;
      }
      std::cout << path.string() << ": ok (" << t.name << ", " << to_string(t.id) << ")\n";
      for (const std::string& line : report.cases) std::cout << "    " << line << "\n";
      if (report.cases.empty())
        std::cout << "    no case is for this kind of device: nothing was run\n";
      std::cout.flush();
    } catch (const format_error& e) {
      all_good = false;
      std::cout << e.what() << std::endl;
    }
  }
  return all_good ? 0 : 1;
}

}  // namespace

void add_task_commands(CLI::App& app, command_action& action) {
  CLI::App* tasks = app.add_subcommand("task", "List, show, check, compile and import tasks");
  tasks->require_subcommand(1);
  tasks->add_subcommand("ls", "List the tasks under configs/tasks")->callback([&action] {
    action = list_tasks;
  });
  auto name = std::make_shared<std::string>();
  CLI::App* show = tasks->add_subcommand("show", "Print a task file");
  show->add_option("name", *name, "name of a task, or path of a task file")->required();
  show->callback([name, &action] {
    action = [name] {
      std::cout << load_task(find_task_file(*name)).text;
      return 0;
    };
  });
  auto files = std::make_shared<std::vector<std::string>>();
  auto choice = std::make_shared<device_choice>();
  CLI::App* check =
      tasks->add_subcommand("check", "Parse task files and run their references on every case");
  check->add_option("file", *files, "task files, folders of them, or names of tasks")->required();
  add_device_options(*check, *choice);
  check->callback([files, choice, &action] {
    action = [files, choice] { return check_tasks(*files, *choice); };
  });
  add_compile_command(*tasks, action);
  add_synthesise_command(*tasks, action);
  add_import_command(*tasks, action);
}

}  // namespace hone
