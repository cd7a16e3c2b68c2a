#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

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

 protected:
  explicit format_error(const std::string& lines) : std::runtime_error(lines) {}
};

// Collects errors, so that a person receives all of them at once.
class format_problems {
 public:
  template <class Read>
  void attempt(const Read& read);
  void add(const format_error& e);
  // Throws the only error as it is, several as a format_errors, or nothing.
  void throw_if_any() const;

 private:
  std::vector<format_error> all_;
};

// Several errors. The message has a line for each.
struct format_errors : format_error {
  explicit format_errors(std::vector<format_error> errors);
  std::vector<format_error> all;
};

template <class Read>
void format_problems::attempt(const Read& read) {
  try {
    read();
  } catch (const format_error& e) {
    add(e);
  }
}

// Returns the bytes of a whole file. Throws format_error if it cannot be opened or read.
std::string read_source_file(const std::filesystem::path& path);

}  // namespace hone
