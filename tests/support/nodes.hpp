#pragma once

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/small_run.hpp"

namespace hone::testing_support {

// Returns a loopback port that nothing uses.
inline std::uint16_t free_port() {
  const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  EXPECT_EQ(bind(s, reinterpret_cast<const sockaddr*>(&at), size), 0);
  EXPECT_EQ(getsockname(s, reinterpret_cast<sockaddr*>(&at), &size), 0);
  close(s);
  return ntohs(at.sin_port);
}

// Tests of a run that nodes join from other processes.
class Nodes : public small_run_test {
 protected:
  // A run that cannot compile anything itself.
  std::vector<std::string> helpless(std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {"--set", "node.devices=[\"simulated:a\"]", "--set", "node.compilers=0"});
    return endless(more);
  }
  static std::vector<std::string> node(const std::string& address, const std::string& name,
                                       std::vector<std::string> more = {}) {
    std::vector<std::string> all = {hone_program(), "node",        "--join", address,
                                    "--devices",    "simulated:a", "--name", name};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static int lines_with(const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++count;
    return count;
  }
  static bool says(const program& p, const std::string& text) {
    return eventually([&] { return p.out().find(text) != std::string::npos; });
  }
};

}  // namespace hone::testing_support
