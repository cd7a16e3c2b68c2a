#pragma once

#include <memory>
#include <random>
#include <string>
#include <utility>

#include "network/files/file_server.hpp"
#include "network/files/folder_copy.hpp"
#include "tests/support/connected_channels.hpp"

namespace hone::testing_support {

// A file server without a network: connections are pairs of sockets.
class served_files {
 public:
  explicit served_files(file_server::find_folder find) : server_(std::move(find)) {}

  std::shared_ptr<channel> connect() {
    auto [served, mine] = connected_channels();
    server_.serve(std::move(served));
    ++connections;
    newest = mine;
    return mine;
  }

  int connections = 0;
  std::weak_ptr<channel> newest;

 private:
  file_server server_;
};

inline std::string random_text(std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// Returns a file whose bytes are in memory.
inline offered_file text_file(const std::string& name, std::string text) {
  const auto bytes = std::make_shared<const std::string>(std::move(text));
  return {name, bytes->size(), [bytes](std::uint64_t offset, char* to, std::size_t size) {
            bytes->copy(to, size, offset);
          }};
}

}  // namespace hone::testing_support
