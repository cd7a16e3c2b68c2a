#include "launch/serve/paths.hpp"

#include <algorithm>

namespace hone {

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<std::vector<std::string>> match_path(const std::vector<std::string>& pattern,
                                                   const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  std::vector<std::string> open;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (pattern[i] == "*") {
      open.push_back(path[i]);
    } else if (pattern[i] != path[i]) {
      return std::nullopt;
    }
  }
  return open;
}

}  // namespace hone
