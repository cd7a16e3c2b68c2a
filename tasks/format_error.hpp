#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace hone {

// A file that a person wrote is wrong. The message reads "FILE:LINE: KEY: what was found, what was
// expected".
struct format_error : std::runtime_error {
  format_error(const std::string& file, std::size_t line, const std::string& key,
               const std::string& problem)
      : std::runtime_error(file + (line > 0 ? ":" + std::to_string(line) : "") + ": " +
                           (key.empty() ? "" : key + ": ") + problem) {}
};

// A file whole. Throws format_error.
std::string read_source_file(const std::filesystem::path& path);

}  // namespace hone
