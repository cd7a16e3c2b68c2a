#include "launch/cluster/cluster_head.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "launch/cluster/detached_process.hpp"
#include "launch/cluster/programs.hpp"
#include "process/replace_file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds stop_limit{60};  // a run ends within 25 s (run.cpp)

struct head_record {
  process_mark process;
  std::string machine;
};

fs::path record_file(const fs::path& run) { return run / "cluster" / "head.node"; }

std::string this_machine() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::optional<head_record> read_record(const fs::path& run) {
  std::ifstream in(record_file(run));
  std::string line;
  head_record record;
  if (!std::getline(in, line)) return std::nullopt;
  const auto mark = parse_process_mark(line);
  if (!mark) return std::nullopt;
  record.process = *mark;
  std::getline(in, record.machine);
  return record;
}

// Returns an override of the configuration whose value is a string.
std::string string_setting(const std::string& key, const std::string& value) {
  // Strings of JSON are strings of TOML as well.
  return key + "=" + nlohmann::json(value).dump();
}

}  // namespace

std::vector<std::string> head_command(const cluster_plan& plan, const std::string& program,
                                      const fs::path& identity, bool resume) {
  std::vector<std::string> command = {program, "run", plan.config.string(), "--dir",
                                      plan.directory.string()};
  command.insert(command.end(), {"--set", string_setting("node.listen", plan.head.listen)});
  if (!identity.empty())
    command.insert(command.end(), {"--set", string_setting("node.identity", identity.string())});
  for (const std::string& setting : plan.head.set)
    command.insert(command.end(), {"--set", setting});
  if (resume) command.emplace_back("--resume");
  return command;
}

fs::path head_log(const fs::path& run) { return run / "logs" / "head.log"; }

std::string start_head(const fs::path& run, const std::vector<std::string>& command,
                       std::chrono::milliseconds limit) {
  fs::create_directories(run / "logs");
  const fs::path address_file = run / "address";
  fs::remove(address_file);  // of a run that was killed
  const process_mark head = start_detached(command, head_log(run));
  record_start(head, [&] {
    replace_file(record_file(run), print(head) + "\n" + this_machine() + "\n", 0600);
  });
  const auto is_decided = [&] { return fs::exists(address_file) || !is_running(head); };
  const bool is_in_time = wait_until(is_decided, limit);
  if (!is_in_time) stop_head(run);
  if (!is_in_time || !fs::exists(address_file)) {
    fs::remove(record_file(run));
    throw std::runtime_error(
        (is_in_time ? "the head has ended"
                    : "the head did not listen after " + std::to_string(limit.count() / 1000) +
                          " s and was stopped") +
        (";\n" + head_log(run).string() + " ends with:\n" + last_lines(head_log(run))));
  }
  std::ifstream in(address_file);
  std::string address;
  std::getline(in, address);
  return address;
}

void stop_head(const fs::path& run) {
  const auto record = read_record(run);
  if (record) stop_processes({record->process}, stop_limit);
  fs::remove(record_file(run));
}

launched_node describe_head(const fs::path& run) {
  launched_node head;
  head.name = "head";
  head.phase = node_phase::ended;
  if (const auto record = read_record(run)) {
    head.where = "process " + std::to_string(record->process.pid) + " on " + record->machine;
    if (is_running(record->process)) head.phase = node_phase::running;
  }
  if (head.phase == node_phase::ended) head.detail = last_lines(head_log(run));
  return head;
}

void require_own_machine(const fs::path& run) {
  const auto record = read_record(run);
  if (record && record->machine != this_machine())
    throw std::runtime_error("the cluster of " + run.string() + " was started on " +
                             record->machine + "; run this command there");
}

}  // namespace hone
