#include <unistd.h>

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "launch/cluster/detached_process.hpp"
#include "launch/cluster/launchers.hpp"
#include "launch/cluster/pool_folder.hpp"
#include "launch/cluster/programs.hpp"
#include "process/replace_file.hpp"

namespace hone {
namespace {

constexpr std::chrono::seconds command_limit{60};
constexpr std::chrono::seconds queue_pause{1};  // between two questions to slurmctld
constexpr std::chrono::seconds kill_wait{60};   // KillWait and the epilog, beyond the grace

// A job as squeue prints it.
struct queued_job {
  std::string state;  // "PENDING", "RUNNING", ...
  std::string nodes;
  std::string reason;
};

// Returns the user's jobs that are not over, by id.
std::map<std::string, queued_job> list_jobs() {
  std::istringstream lines(run_program(
      {"squeue", "-h", "-u", std::to_string(getuid()), "-o", "%i|%T|%N|%r"}, "", command_limit));
  std::map<std::string, queued_job> jobs;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id;
    queued_job job;
    std::getline(fields, id, '|');
    std::getline(fields, job.state, '|');
    std::getline(fields, job.nodes, '|');
    std::getline(fields, job.reason);
    jobs[id] = job;
  }
  return jobs;
}

node_phase phase_of(const queued_job& job) {
  static const std::set<std::string> running = {"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING",
                                                "COMPLETING"};
  static const std::set<std::string> waiting = {"PENDING",      "CONFIGURING", "REQUEUED",
                                                "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD",
                                                "SPECIAL_EXIT", "STAGE_OUT",   "RESIZING"};
  if (running.contains(job.state)) return node_phase::running;
  return waiting.contains(job.state) ? node_phase::waiting : node_phase::ended;
}

// Returns a word as sbatch reads it back in a #SBATCH line.
std::string quoted_for_sbatch(const std::string& word) {
  if (word.find_first_of(" \t\"'\\#") == std::string::npos) return word;
  std::string quoted = "\"";
  for (const char c : word)
    quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "\"";
}

// A node's record is the id of its job.
class slurm_launcher : public launcher {
 public:
  slurm_launcher(const node_pool& pool, const launch_context& context)
      : pool_(pool), context_(context), folder_(context.run, pool.name) {}

  void scale(std::int64_t count) override {
    folder_.set_count(count);
    const auto records = folder_.records();
    const auto jobs = records.empty() ? std::map<std::string, queued_job>{} : list_jobs();
    problem_list problems;
    std::vector<std::int64_t> unwanted;
    for (const auto& [node, id] : records) {
      if (node >= count) unwanted.push_back(node);
    }
    cancel(unwanted, problems);
    for (std::int64_t node = 0; node < count; ++node) {
      const auto record = records.find(node);
      const auto job = record == records.end() ? jobs.end() : jobs.find(record->second);
      if (job != jobs.end() && phase_of(job->second) != node_phase::ended) continue;
      try {
        submit(node);
      } catch (const std::runtime_error& e) {
        problems.add(folder_.node_name(node) + ": " + e.what());
      }
    }
    if (count == 0 && folder_.records().empty()) folder_.remove();
    problems.throw_if_any();
  }

  std::vector<launched_node> list() override {
    const auto records = folder_.records();
    if (records.empty()) return {};
    const auto jobs = list_jobs();
    std::vector<launched_node> nodes;
    for (const auto& [node, id] : records) {
      launched_node one;
      one.name = folder_.node_name(node);
      one.where = "job " + id;
      one.phase = node_phase::ended;
      if (const auto job = jobs.find(id); job != jobs.end()) {
        one.phase = phase_of(job->second);
        if (!job->second.nodes.empty()) one.where += " on " + job->second.nodes;
        if (one.phase == node_phase::waiting) one.detail = job->second.reason;
      }
      if (one.phase == node_phase::ended) one.detail = last_lines(folder_.log(node));
      nodes.push_back(one);
    }
    return nodes;
  }

  std::string plan(std::int64_t count) const override {
    std::string text;
    for (std::int64_t node = 0; node < count; ++node) {
      text += shell_line(submit_command(node)) + "\n";
      std::istringstream script(script_of(node));
      for (std::string line; std::getline(script, line);) text += "    " + line + "\n";
    }
    return text;
  }

 private:
  std::string script_file(std::int64_t node) const {
    return folder_.file(folder_.node_name(node) + ".sbatch").string();
  }

  std::vector<std::string> submit_command(std::int64_t node) const {
    return {"sbatch", "--parsable", script_file(node)};
  }

  std::string script_of(std::int64_t node) const {
    std::string log;
    for (const char c : folder_.log(node).string()) log += c == '%' ? "%%" : std::string(1, c);
    std::string text = "#!/bin/bash\n";
    const auto set = [&text](const std::string& option, const std::string& value) {
      if (!value.empty()) text += "#SBATCH --" + option + "=" + quoted_for_sbatch(value) + "\n";
    };
    set("job-name", folder_.node_name(node));
    set("output", log);
    set("open-mode", "append");
    set("ntasks", "1");
    // The batch shell alone gets SIGTERM, 30 s before its time is over; it is hone by then.
    set("signal", "B:TERM@30");
    set("partition", pool_.slurm.partition);
    set("account", pool_.slurm.account);
    set("gres", pool_.slurm.gres);
    set("time", pool_.slurm.time);
    for (const std::string& line : pool_.slurm.extra) text += line + "\n";
    if (!pool_.setup.empty())
      text += "{\n" + pool_.setup + "\n} || { echo \"hone: the setup of " +
              folder_.node_name(node) + " failed\" >&2; exit 1; }\n";
    return text + "exec " +
           shell_line(
               node_command(pool_, context_, folder_.node_name(node), context_.identity.string())) +
           "\n";
  }

  void submit(std::int64_t node) {
    replace_file(script_file(node), script_of(node), 0600);
    // --parsable prints "ID" or "ID;CLUSTER".
    std::string id = run_program(submit_command(node), "", command_limit);
    id = id.substr(0, id.find_first_of(";\n"));
    if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos)
      throw std::runtime_error("sbatch printed '" + id + "', expected the id of a job");
    folder_.write_record(node, id);
  }

  void cancel(const std::vector<std::int64_t>& nodes, problem_list& problems) {
    if (nodes.empty()) return;
    std::set<std::string> ids;
    const auto records = folder_.records();
    for (const std::int64_t node : nodes) ids.insert(records.at(node));
    const auto still_queued = [&ids] {
      std::vector<std::string> queued;
      for (const auto& [id, job] : list_jobs()) {
        if (ids.contains(id)) queued.push_back(id);
      }
      return queued;
    };
    std::vector<std::string> command = {"scancel"};
    const std::vector<std::string> queued = still_queued();
    command.insert(command.end(), queued.begin(), queued.end());
    try {
      if (!queued.empty()) run_program(command, "", command_limit);
      if (!wait_until([&] { return still_queued().empty(); }, context_.grace + kill_wait,
                      queue_pause))
        throw std::runtime_error("the jobs of pool " + pool_.name + " do not end");
    } catch (const std::runtime_error& e) {
      problems.add(e.what());
      return;
    }
    for (const std::int64_t node : nodes) {
      folder_.remove_record(node);
      std::filesystem::remove(script_file(node));
    }
  }

  node_pool pool_;
  launch_context context_;
  pool_folder folder_;
};

}  // namespace

std::unique_ptr<launcher> make_slurm_launcher(const node_pool& pool,
                                              const launch_context& context) {
  return std::make_unique<slurm_launcher>(pool, context);
}

}  // namespace hone
