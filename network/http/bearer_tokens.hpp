#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace hone {

// The clients of a server and the SHA-256 of their tokens, as a file lists them: a line "NAME HASH"
// each, blank lines and lines that begin with '#' aside. The file is read again when it has
// changed. May be used by several threads.
class bearer_tokens {
 public:
  // Throws network_error if the file cannot be read or has a line of another form.
  explicit bearer_tokens(std::filesystem::path file);
  // Returns the name of the client with this token, or nullopt. Keeps to the file as it was while
  // it cannot be read.
  std::optional<std::string> find_client(const std::string& token);

 private:
  void read();

  std::filesystem::path file_;
  std::mutex lock_;  // guards the rest
  std::filesystem::file_time_type read_at_{};
  std::chrono::steady_clock::time_point checked_at_{};
  std::map<std::string, std::string> hashes_;  // by client
};

// Returns a new token, which nobody can guess. Throws network_error.
std::string make_token();
// Compares secrets in a time that does not depend on where they differ.
bool is_same_secret(const std::string& a, const std::string& b);

// Adds a client to such a file, which only its owner may read, and returns its token. Throws
// network_error if it has a client of this name, or cannot be written.
std::string add_client(const std::filesystem::path& file, const std::string& client);

}  // namespace hone
