#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hone {

// Splits "/v1/tasks" into its parts.
std::vector<std::string> split_path(const std::string& path);

// Returns the parts that a pattern leaves open by "*", or nullopt if the path is another one.
std::optional<std::vector<std::string>> match_path(const std::vector<std::string>& pattern,
                                                   const std::vector<std::string>& path);

}  // namespace hone
