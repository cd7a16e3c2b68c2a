#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace hone {

// Each function adds its subcommands to the command line. A subcommand that was chosen stores its
// work in `action`, which returns the exit code. Actions throw format_error, policy_error,
// pool_error and other std::runtime_error, with messages that can be shown to users.
using command_action = std::function<int()>;
void add_identity_command(CLI::App& app, command_action& action);
void add_init_command(CLI::App& app, command_action& action);
void add_run_command(CLI::App& app, command_action& action);
void add_eval_command(CLI::App& app, command_action& action);
void add_export_command(CLI::App& app, command_action& action);
void add_bench_command(CLI::App& app, command_action& action);
void add_task_commands(CLI::App& app, command_action& action);
void add_compile_command(CLI::App& tasks, command_action& action);  // `task compile`, below `task`
void add_synthesise_command(CLI::App& tasks, command_action& action);  // `task synthesise`
void add_import_command(CLI::App& tasks, command_action& action);      // `task import`, likewise
void add_corpus_commands(CLI::App& app, command_action& action);
void add_policy_commands(CLI::App& app, command_action& action);
void add_policy_bench_command(CLI::App& policy, command_action& action);  // `policy bench`
void add_report_command(CLI::App& app, command_action& action);
void add_ui_command(CLI::App& app, command_action& action);
void add_variant_commands(CLI::App& app, command_action& action);
void add_serve_command(CLI::App& app, command_action& action);
void add_status_command(CLI::App& app, command_action& action);
void add_node_command(CLI::App& app, command_action& action);
void add_cluster_commands(CLI::App& app, command_action& action);  // `up`, `down` and `scale`
void add_config_command(CLI::App& app, command_action& action);
void add_devices_command(CLI::App& app, command_action& action);
void add_pool_commands(CLI::App& app, command_action& action);

}  // namespace hone
