#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "launch/commands/commands.hpp"
#include "launch/version.hpp"
#include "messages/plain_message.hpp"
#include "messages/plain_text.hpp"
#include "policy/policy_device.hpp"
#include "process/inspection.hpp"
#include "process/temporary_folder.hpp"
#include "process/write_failure.hpp"
#include "tasks/similar_names.hpp"

namespace {

// Returns the message about the first word that should name a command and does not, or an empty
// string.
std::string describe_unknown_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    hone::choice_set names;
    const CLI::App* next = nullptr;
    for (const CLI::App* one : at->get_subcommands([](const CLI::App*) { return true; })) {
      names.insert(one->get_name());
      if (one->check_name(argv[i])) next = one;
    }
    if (names.empty()) return "";
    if (next == nullptr)
      return "'" + std::string(argv[i]) + "' is not a command" +
             hone::describe_choices(argv[i], names) + "; --help tells more";
    at = next;
  }
  return "";
}

// Has all options that count refuse negative numbers, which CLI11 would read modulo 2^64.
void refuse_negative_counts(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (!option->get_type_name().starts_with("UINT")) continue;
    option->check([](const std::string& text) {
      return text.starts_with("-") ? "'" + text + "' is negative, expected a number from 0"
                                   : std::string();
    });
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    refuse_negative_counts(*command);
}

// Returns how the command is used that was given.
std::string usage_of(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string name = app.get_name();
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  std::string usage = CLI::Formatter().make_usage(at, name);
  while (!usage.empty() && usage.front() == '\n') usage.erase(0, 1);
  while (!usage.empty() && usage.back() == '\n') usage.pop_back();
  return usage + "\n" + name + " --help tells more\n";
}

// Returns what an exception says, without the names of libraries and their types.
std::string message_of(const std::exception& e) {
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&e))
    return (file->path2().empty() ? file->path1() : file->path2()).string() + ": " +
           file->code().message();
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return "there is not enough memory";
  if (dynamic_cast<const nlohmann::json::exception*>(&e) != nullptr) return hone::plain_message(e);
  return hone::describe_failure(e);
}

// Has the allocator keep freed memory. Judges and learners free and allocate tensors of megabytes
// thousands of times, and the system would take each from the process and hand it back zeroed, page
// by page: that was a third of the CPU judge's own time.
void keep_freed_memory() {
  constexpr int kept_bytes = 256 << 20;
  constexpr int largest_kept = 32 << 20;  // the most that glibc takes
  mallopt(M_MMAP_THRESHOLD, largest_kept);
  mallopt(M_TRIM_THRESHOLD, kept_bytes);
}

int run(int argc, char** argv) {
  CLI::App app("Hone: a language model learns to write faster CUDA kernels.", "hone");
  app.require_subcommand(1);
  app.set_version_flag("--version", hone::describe_version);
  hone::command_action action;
  hone::add_identity_command(app, action);
  hone::add_init_command(app, action);
  hone::add_run_command(app, action);
  hone::add_eval_command(app, action);
  hone::add_bench_command(app, action);
  hone::add_export_command(app, action);
  hone::add_task_commands(app, action);
  hone::add_corpus_commands(app, action);
  hone::add_policy_commands(app, action);
  hone::add_pool_commands(app, action);
  hone::add_report_command(app, action);
  hone::add_ui_command(app, action);
  hone::add_variant_commands(app, action);
  hone::add_serve_command(app, action);
  hone::add_status_command(app, action);
  hone::add_node_command(app, action);
  hone::add_cluster_commands(app, action);
  hone::add_devices_command(app, action);
  hone::add_config_command(app, action);
  refuse_negative_counts(app);
  if (const std::string unknown = describe_unknown_command(app, argc, argv); !unknown.empty()) {
    std::cerr << "hone: " << unknown << "\n";
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help is not an error
    std::cerr << "hone: " << e.what() << "\n" << usage_of(app);
    return 2;
  }
  try {
    return action();
  } catch (const std::exception& e) {
    std::cerr << "hone: " << hone::plain_text(message_of(e)) << "\n";
    return 2;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (std::getenv("HONE_INSPECTABLE") == nullptr) hone::forbid_inspection();
  keep_freed_memory();
  hone::set_policy_environment();
  int code = run(argc, argv);
  std::cout.flush();
  // A reader such as `head` may have had enough (EPIPE).
  if ((!std::cout || std::fflush(stdout) != 0) && errno != EPIPE) {
    std::cerr << "hone: " << hone::write_failure("standard output") << "\n";
    if (code == 0) code = 2;
  }
  std::fflush(nullptr);
  hone::end_process(code);  // threads of an actor system may still run: see start_actor_system()
}
