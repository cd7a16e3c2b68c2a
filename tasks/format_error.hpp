#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace hone {

// Reports an error in a file that a person wrote. The message reads "FILE:LINE: KEY: what was
// found, what was expected", without the line if it is 0 and without the key if it is empty.
struct format_error : std::runtime_error {
  format_error(const std::string& file, std::size_t line, const std::string& key,
               const std::string& problem)
      : std::runtime_error(file + (line > 0 ? ":" + std::to_string(line) : "") + ": " +
                           (key.empty() ? "" : key + ": ") + problem),
        at_key(key),
        what_is_wrong(problem) {}

  std::string at_key;
  std::string what_is_wrong;
};

// Returns the bytes of a whole file. Throws format_error if it cannot be opened or read.
std::string read_source_file(const std::filesystem::path& path);

}  // namespace hone
