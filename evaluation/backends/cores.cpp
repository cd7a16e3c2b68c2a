#include "evaluation/backends/cores.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace hone {
namespace {

// Least number of cores that must remain beside a launch core. With fewer, compilers and the policy
// need the core more than a GPU's launches do.
constexpr std::size_t least_other_cores = 4;

// Returns the core and the hyper-threads that share it. The kernel's list reads "3,11" or "2-3". A
// virtual machine often hides hyper-threads; then the core's neighbour is taken, which is usually
// right.
std::vector<int> siblings_of(int core) {
  std::vector<int> all;
  std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(core) +
                   "/topology/thread_siblings_list");
  int first = 0;
  while (in >> first) {
    int last = first;
    if (in.peek() == '-') in.ignore() >> last;
    for (int sibling = first; sibling <= last; ++sibling) all.push_back(sibling);
    if (in.peek() == ',') in.ignore();
  }
  if (all.size() < 2) all = {core, core ^ 1};
  return all;
}

// Returns the lock of this name; empty if another process holds it.
unique_fd lock(const std::string& what) {
  const auto path = std::filesystem::temp_directory_path() / ("hone-" + what + ".lock");
  // A file that another user has made can be read, which is enough to lock it.
  unique_fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) file.reset(open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) throw std::runtime_error(path.string() + ": cannot be opened, to reserve " + what);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return file;
}

// Returns the allowed cores that no other process of Hone has reserved.
std::vector<int> free_cores() {
  std::vector<int> cores = allowed_cores();
  std::erase_if(cores, [](int core) { return !lock_core(core); });
  return cores;
}

}  // namespace

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error("cannot read this process's processor cores");
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

void bind_thread(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error("cannot bind to the processor's cores");
}

unique_fd lock_core(int core) { return lock("core-" + std::to_string(core)); }
unique_fd lock_gpu(const std::string& uuid) { return lock(uuid); }

std::vector<int> reserve_cores(std::size_t devices, bool share_cores) {
  if (share_cores) return std::vector<int>(devices, -1);
  std::vector<int> cores = free_cores();
  const std::size_t allowed = allowed_cores().size();
  if (devices >= cores.size()) {
    const std::string problem =
        std::to_string(devices) + " CPU devices need " + std::to_string(devices + 1) +
        " processor cores; this process may use " + std::to_string(allowed) +
        ", of which other processes of Hone have reserved " +
        std::to_string(allowed - cores.size()) +
        " (where times need not be trustworthy, commands share cores with --share-cores, and a run "
        "with node.share_cores = true)";
    if (devices >= allowed) throw std::runtime_error(problem);
    throw hardware_taken(problem);
  }
  std::vector<int> reserved(cores.rbegin(), cores.rbegin() + static_cast<std::ptrdiff_t>(devices));
  cores.resize(cores.size() - devices);
  if (devices > 0) bind_thread(cores);
  return reserved;
}

int reserve_launch_core() {
  const std::vector<int> cores = allowed_cores();
  const std::vector<int> free = free_cores();
  if (free.empty()) return -1;
  const int core = free.back();
  const std::vector<int> siblings = siblings_of(core);
  std::vector<int> others = cores;
  std::erase_if(others, [&](int other) {
    return std::find(siblings.begin(), siblings.end(), other) != siblings.end();
  });
  if (others.size() < least_other_cores) {
    others = cores;
    std::erase(others, core);
  }
  if (others.size() < least_other_cores) return -1;
  bind_thread(others);
  return core;
}

}  // namespace hone
