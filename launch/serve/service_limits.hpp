#pragma once

#include <cstdint>

namespace hone {

// Limits on what clients have a server do.
struct service_limits {
  std::uint32_t max_programs = 20000;    // accepted and not judged yet, of all clients
  std::uint32_t client_programs = 5000;  // the same of one client
  std::uint32_t client_rate = 0;         // programs per minute of one client; 0: any number
};

}  // namespace hone
