#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/sandbox/child_process.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/names.hpp"

namespace hone {

// What a session's parent says and hears of programs, on every kind of device.

using time_point = std::chrono::steady_clock::time_point;

// How a command to a session ended when it did not succeed. `gone`: the session's process is dead.
struct session_failure {
  Outcome outcome = Outcome::INFRASTRUCTURE;
  std::string message;
  bool gone = false;
};

struct host_source {
  std::string python;
  std::size_t inputs = 0;
  std::size_t parameters = 0;
};

struct opened_programs {
  std::vector<std::string> launches;
  bool has_prepare = false;
};

void describe_programs(schema::Open::Builder open, const std::vector<host_source>& programs);
opened_programs read_opened(schema::Opened::Reader opened);

// What went wrong, as the session tells it: no longer than a message may be.
inline constexpr std::size_t max_failure_text = 2000;
std::string failure_text(schema::Failed::Reader failed);

// A file in memory with these bytes, to be passed to a session. Throws std::system_error.
unique_fd memory_file(std::string_view bytes);

}  // namespace hone
