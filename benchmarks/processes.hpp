#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

// Resources that a process uses, from /proc.
namespace hone {

inline double resident_bytes(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/status");
  std::string key;
  for (double kb = 0; in >> key; in.ignore(1000, '\n')) {
    if (key == "VmRSS:" && in >> kb) return kb * 1024;
  }
  return 0;
}

// Of all its threads, those that have ended included.
inline double cpu_seconds(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(in, line);
  std::istringstream words(line.substr(line.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) words >> skipped;
  double user = 0;
  double system = 0;
  words >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace hone
