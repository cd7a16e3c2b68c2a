#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace hone::testing_support {

struct process_facts {
  pid_t parent = 0;
  char state = '?';  // as in /proc/PID/stat: 'R', 'S', 'Z', ...
  std::string name;
};

// Returns all processes that /proc lists.
inline std::map<pid_t, process_facts> all_processes() {
  std::map<pid_t, process_facts> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "stat");
    std::string line;
    std::getline(in, line);
    const std::size_t open = line.find('(');
    const std::size_t close = line.rfind(')');
    if (close == std::string::npos || close + 4 > line.size()) continue;
    all[std::stoi(name)] = {std::stoi(line.substr(close + 4)), line[close + 2],
                            line.substr(open + 1, close - open - 1)};
  }
  return all;
}

// Returns the children of a process, their children, and so on.
inline std::set<pid_t> descendants_of(pid_t root) {
  const auto all = all_processes();
  std::set<pid_t> found = {root};
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [pid, facts] : all)
      grew = (found.contains(facts.parent) && found.insert(pid).second) || grew;
  }
  found.erase(root);
  return found;
}

// Returns true if the process runs. A zombie, which waits for its parent to collect it, is not
// alive.
inline bool is_alive(pid_t pid) {
  const auto all = all_processes();
  const auto found = all.find(pid);
  return found != all.end() && found->second.state != 'Z' && found->second.state != 'X';
}

}  // namespace hone::testing_support
