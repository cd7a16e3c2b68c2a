#include "tests/launch/cluster/launcher_bed.hpp"

#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "launch/cluster/programs.hpp"
#include "process/find_program.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace hone::testing_support {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds box_limit{60};

const fs::path& sources() {
  static const fs::path folder = fs::path(HONE_SOURCE_DIR) / "tests" / "launch" / "cluster";
  return folder;
}

// Returns the command that makes or removes what a kind of bed needs; none if it needs nothing.
std::vector<std::string> box_command(bed_kind kind, const char* what, const fs::path& folder,
                                     const std::string& prefix) {
  if (kind == bed_kind::ssh_hosts)
    return {(sources() / "ssh_box.sh").string(), what, folder.string(), prefix, "n1", "n2"};
  if (kind == bed_kind::slurm_box)
    return {(sources() / "slurm_box.sh").string(), what, folder.string(), prefix};
  if (kind == bed_kind::kubernetes || kind == bed_kind::kubernetes_box)
    return {(sources() / "kubernetes_api.py").string(), what, folder.string()};
  return {};
}

bool has_real_programs(bed_kind kind) {
  return kind == bed_kind::ssh_hosts || kind == bed_kind::slurm_box ||
         kind == bed_kind::kubernetes_box;
}

launcher_kind launcher_of(bed_kind kind) {
  switch (kind) {
    case bed_kind::local:
      return launcher_kind::local;
    case bed_kind::slurm:
    case bed_kind::slurm_box:
      return launcher_kind::slurm;
    case bed_kind::kubernetes:
    case bed_kind::kubernetes_box:
      return launcher_kind::kubernetes;
    default:
      return launcher_kind::ssh;
  }
}

void make_executable(const fs::path& file, const std::string& text) {
  write_file(file, text);
  fs::permissions(file, fs::perms::owner_all);
}

}  // namespace

const char* name_of(bed_kind kind) {
  switch (kind) {
    case bed_kind::local:
      return "local";
    case bed_kind::ssh:
      return "ssh";
    case bed_kind::ssh_hosts:
      return "ssh_hosts";
    case bed_kind::slurm:
      return "slurm";
    case bed_kind::slurm_box:
      return "slurm_box";
    case bed_kind::kubernetes:
      return "kubernetes";
    case bed_kind::kubernetes_box:
      return "kubernetes_box";
  }
  return "";
}

std::string launcher_bed::problem_of(bed_kind kind) {
  std::vector<std::string> programs;
  if (kind == bed_kind::ssh_hosts) programs = {"ip", "ssh", "ssh-keygen", "/usr/sbin/sshd"};
  if (kind == bed_kind::slurm_box)
    programs = {"ip", "sbatch", "/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged"};
  if (kind == bed_kind::kubernetes_box) programs = {"kubectl"};
  if (programs.empty()) return "";
  try {
    for (const std::string& program : programs) find_program(program);
    if (kind == bed_kind::kubernetes_box) return "";
    if (geteuid() != 0) return "network namespaces need root";
    const std::string name = "hone-try-" + std::to_string(getpid());
    run_program({"ip", "netns", "add", name}, "", box_limit);
    run_program({"ip", "netns", "del", name}, "", box_limit);
    run_program({"unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/run"}, "", box_limit);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

launcher_bed::launcher_bed(bed_kind kind)
    : kind_(kind), old_path_(std::getenv("PATH")), prefix_("hone-" + std::to_string(getpid())) {
  fs::create_directories(notes());
  // A path with characters that a shell would act on.
  const fs::path program = folder_ / "it's a $program" / "hone";
  make_executable(program, "#!/bin/sh\nexport HONE_BED=" + shell_quoted(notes().string()) +
                               "\nexec " + shell_quoted((sources() / "stand_ins/hone").string()) +
                               " \"$@\"\n");
  pool.name = "cpus";
  pool.launcher = launcher_of(kind);
  pool.devices = {"cpu"};
  pool.compilers = 2;
  pool.hone = program.string();
  pool.hosts = {"n1", "n2"};
  pool.per_host = 20;
  pool.kubernetes.image = "hone:1";
  context.run = folder_ / "my run";
  context.join = "127.0.0.1:4242";
  context.identity = folder_ / "identity";
  for (const char* file : {"ca.pem", "certificate.pem", "key.pem"})
    write_file(context.identity / file, "key of cpus\n");
  setenv("HONE_BED", notes().c_str(), 1);
  setenv("KUBECONFIG", path("box/config").c_str(), 1);
  const auto make_box = box_command(kind, "up", folder_ / "box", prefix_);
  if (!make_box.empty()) run_program(make_box, "", box_limit);
  std::string first = path("box/bin").string() + ":";
  if (!has_real_programs(kind)) first += (sources() / "stand_ins").string() + ":";
  setenv("PATH", (first + old_path_).c_str(), 1);
}

launcher_bed::~launcher_bed() {
  // A test that failed may leave its nodes. They are known by their environment, because another
  // process may have got the number.
  for (const auto& entry : fs::directory_iterator(notes())) {
    pid_t left = 0;
    if (entry.path().extension() != ".pid" || !(std::ifstream(entry.path()) >> left)) continue;
    const std::string environment = read_file("/proc/" + std::to_string(left) + "/environ");
    if (environment.find("HONE_BED=" + notes().string()) != std::string::npos)
      ::kill(left, SIGKILL);
  }
  setenv("PATH", old_path_.c_str(), 1);
  unsetenv("HONE_BED");
  unsetenv("KUBECONFIG");
  const auto remove_box = box_command(kind_, "down", folder_ / "box", prefix_);
  if (!remove_box.empty()) {
    try {
      run_program(remove_box, "", box_limit);
    } catch (const std::runtime_error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

std::string launcher_bed::head_host() const {
  if (kind_ == bed_kind::ssh_hosts) return "198.18.1.1";
  return kind_ == bed_kind::slurm_box ? "198.18.9.1" : "127.0.0.1";
}

std::vector<std::string> launcher_bed::at_head(std::vector<std::string> command) const {
  const bool is_ssh = kind_ == bed_kind::ssh_hosts;
  if (!is_ssh && kind_ != bed_kind::slurm_box) return command;
  const std::string ip = find_program("ip");
  command.insert(command.begin(), {ip, "netns", "exec", prefix_ + (is_ssh ? "-head" : "-slurm1")});
  return command;
}

pid_t launcher_bed::process_of(const std::string& node, pid_t before) const {
  pid_t process = 0;
  const bool is_there = eventually([&] {
    process = 0;
    return (std::ifstream(notes() / (node + ".pid")) >> process) && process != before;
  });
  return is_there ? process : 0;
}

std::vector<std::string> launcher_bed::note(const std::string& node,
                                            const std::string& kind) const {
  process_of(node);
  std::ifstream in(notes() / (node + "." + kind));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace hone::testing_support
