#include "launch/core_wait.hpp"

#include <iostream>
#include <stdexcept>

namespace hone {

std::function<void(const std::string&)> core_wait(bool waits) {
  return [waits](const std::string& why) {
    if (!waits)
      throw std::runtime_error(why +
                               "; with --wait, hone run, eval and bench wait until they are free");
    std::cerr << "hone: waiting for a processor core or a GPU: " << why << std::endl;
  };
}

}  // namespace hone
