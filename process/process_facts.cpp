#include "process/process_facts.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace hone {

process_facts facts_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(in, line);
  const std::size_t close = line.rfind(')');  // the name in parentheses may hold anything
  if (close == std::string::npos) return {};
  std::istringstream fields(line.substr(close + 1));
  process_facts facts;
  fields >> facts.state >> facts.parent;
  std::string skipped;
  for (int field = 5; field < 20; ++field) fields >> skipped;
  fields >> facts.threads >> skipped >> facts.start >> facts.address_space;
  return facts;
}

}  // namespace hone
