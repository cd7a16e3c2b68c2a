#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "network/address.hpp"
#include "tests/support/small_run.hpp"

namespace hone::testing_support {

// Returns a loopback port that nothing uses.
inline std::uint16_t free_port() {
  network_address any{"127.0.0.1", 0};
  (void)listen_on(any);
  return any.port;
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
