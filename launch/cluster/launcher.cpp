#include "launch/cluster/launcher.hpp"

#include <stdexcept>

#include "launch/cluster/launchers.hpp"

namespace hone {

const char* name_of(node_phase phase) {
  switch (phase) {
    case node_phase::waiting:
      return "waiting";
    case node_phase::running:
      return "running";
    case node_phase::ended:
      return "ended";
  }
  return "";
}

std::unique_ptr<launcher> make_launcher(const node_pool& pool, const launch_context& context) {
  switch (pool.launcher) {
    case launcher_kind::local:
      return make_local_launcher(pool, context);
    case launcher_kind::ssh:
      return make_ssh_launcher(pool, context);
    case launcher_kind::slurm:
      return make_slurm_launcher(pool, context);
    case launcher_kind::kubernetes:
      return make_kubernetes_launcher(pool, context);
  }
  throw std::logic_error("unknown launcher");
}

std::vector<std::string> node_command(const node_pool& pool, const launch_context& context,
                                      const std::string& name, const std::string& identity) {
  std::string program = pool.hone;
  if (program.empty()) program = pool.launcher == launcher_kind::local ? context.program : "hone";
  std::vector<std::string> command = {program, "node", "--join", context.join};
  if (!identity.empty()) command.insert(command.end(), {"--identity", identity});
  command.insert(command.end(), {"--name", name});
  const auto add_list = [&](const char* option, const std::vector<std::string>& values) {
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : ",") + value;
    if (!list.empty()) command.insert(command.end(), {option, list});
  };
  add_list("--devices", pool.devices);
  add_list("--generators", pool.generators);
  command.insert(command.end(), {"--compilers", std::to_string(pool.compilers)});
  command.insert(command.end(), pool.options.begin(), pool.options.end());
  return command;
}

void problem_list::add(const std::string& problem) {
  text_ += (text_.empty() ? "" : "\n") + problem;
}

void problem_list::throw_if_any() const {
  if (!text_.empty()) throw std::runtime_error(text_);
}

}  // namespace hone
