#include "evaluation/backends/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "process/file_lock.hpp"

namespace hone {
namespace {

// Least number of cores that must remain for other work. With fewer, compilers and the policy
// need the core more than a GPU's launches do.
constexpr std::size_t min_other_cores = 4;

// Returns the core and the hyper-threads that share it. The kernel's list reads "3,11" or "2-3". A
// virtual machine often hides hyper-threads; then the core's neighbor is taken, which is usually
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

// The file of a lock that all processes of the machine know: TMPDIR differs between jobs.
std::filesystem::path lock_path(const std::string& what) { return "/tmp/hone-" + what + ".lock"; }
std::filesystem::path core_lock(int core) { return lock_path("core-" + std::to_string(core)); }

// Returns the lock that is kept, or else that of the file, which is empty if somebody holds it.
unique_fd take(const early_lock& kept, const std::filesystem::path& file) {
  return kept && *kept ? std::move(*kept) : try_lock_file(file);
}

// Returns what a process holds while it reserves hardware. Without it, processes that start at the
// same time would find what one of them looks at taken.
unique_fd wait_for_turn() { return lock_file(lock_path("reservation")); }

// Locks those of the allowed cores that no other device has. Returns them, lowest first.
std::vector<reserved_core> lock_free_cores() {
  std::vector<reserved_core> cores;
  for (const int core : allowed_cores()) {
    if (unique_fd lock = lock_core(core))
      cores.push_back({core, std::make_shared<unique_fd>(std::move(lock))});
  }
  return cores;
}

// Returns ": process 1 (hone run a.toml), process 2 (...)", the holders of cores that this process
// may use; empty if none is known.
std::string holders_of_cores() {
  std::set<std::string> holders;
  for (const int core : allowed_cores()) {
    if (std::string holder = describe_holder(core_lock(core)); !holder.empty())
      holders.insert(std::move(holder));
  }
  std::string all;
  for (const std::string& holder : holders) all += (all.empty() ? ": " : ", ") + holder;
  return all;
}

std::vector<int> numbers_of(const std::vector<reserved_core>& cores) {
  std::vector<int> numbers;
  for (const reserved_core& core : cores) numbers.push_back(core.number);
  return numbers;
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

unique_fd lock_core(int core) { return try_lock_file(core_lock(core)); }
unique_fd lock_gpu(const std::string& uuid) { return try_lock_file(lock_path(uuid)); }

unique_fd reserved_core::take_lock() const { return take(lock, core_lock(number)); }
unique_fd take_gpu_lock(const early_lock& kept, const std::string& uuid) {
  return take(kept, lock_path(uuid));
}

std::vector<reserved_core> reserve_cores(std::size_t devices, bool share_cores) {
  const unique_fd turn = wait_for_turn();
  std::vector<reserved_core> cores = lock_free_cores();
  const std::size_t allowed = allowed_cores().size();
  if (share_cores) {
    if (!cores.empty() && cores.size() < allowed) bind_thread(numbers_of(cores));
    return std::vector<reserved_core>(devices);
  }
  if (devices >= cores.size()) {
    const std::size_t taken = allowed - cores.size();
    cores.clear();  // or this process would be one of the holders
    const std::string problem =
        std::to_string(devices) + (devices == 1 ? " CPU device needs " : " CPU devices need ") +
        std::to_string(devices + 1) + " processor cores; this process may use " +
        std::to_string(allowed) + ", of which other processes of Hone have reserved " +
        std::to_string(taken) + holders_of_cores() +
        " (where times need not be trustworthy, commands share cores with --share-cores, and a run "
        "with node.share_cores = true)";
    if (devices >= allowed) throw std::runtime_error(problem);
    throw hardware_taken(problem);
  }
  std::vector<reserved_core> reserved(cores.rbegin(),
                                      cores.rbegin() + static_cast<std::ptrdiff_t>(devices));
  cores.resize(cores.size() - devices);
  if (devices > 0) bind_thread(numbers_of(cores));
  return reserved;
}

reserved_core reserve_launch_core() {
  const std::vector<int> cores = allowed_cores();
  const unique_fd turn = wait_for_turn();
  const std::vector<reserved_core> free = lock_free_cores();
  if (free.empty()) return {};
  const int core = free.back().number;
  const std::vector<int> siblings = siblings_of(core);
  std::vector<int> others = cores;
  std::erase_if(others, [&](int other) {
    return std::find(siblings.begin(), siblings.end(), other) != siblings.end();
  });
  if (others.size() < min_other_cores) {
    others = cores;
    std::erase(others, core);
  }
  if (others.size() < min_other_cores) return {};
  bind_thread(others);
  return free.back();
}

std::map<std::string, early_lock> reserve_gpus(const std::map<std::string, std::string>& names) {
  const unique_fd turn = wait_for_turn();
  std::map<std::string, early_lock> locks;
  for (const auto& [uuid, name] : names) {
    unique_fd lock = lock_gpu(uuid);
    if (!lock) {
      const std::string holder = describe_holder(lock_path(uuid));
      throw hardware_taken(name + " (" + uuid +
                           "): " + (holder.empty() ? "another process of Hone" : holder) +
                           " judges on this GPU (where times need not be trustworthy, "
                           "--share-cores or node.share_cores = true shares it)");
    }
    locks[uuid] = std::make_shared<unique_fd>(std::move(lock));
  }
  return locks;
}

}  // namespace hone
