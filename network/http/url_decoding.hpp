#pragma once

#include <map>
#include <string>
#include <string_view>

namespace hone {

// Decodes %XX; if XX is not a hexadecimal number, the text stays as it is.
std::string decode_url(std::string_view text);

// Splits the target of a request, "/v1/tasks?limit=10", into its path and its query, decoded.
void split_target(std::string_view target, std::string& path,
                  std::map<std::string, std::string>& query);

}  // namespace hone
