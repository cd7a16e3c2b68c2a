#pragma once

#include <cstdint>
#include <functional>

namespace hone {

// The descriptor of a zygote's command socket.
inline constexpr int command_socket = 3;

// A zygote is a warm, single-threaded process that forks one session after another.
struct zygote_role {
  // Serves a session in a fresh fork and does not return. The arena is -1 if there is none;
  // `private_bytes` is that of schema::Fork.
  std::function<void(int socket, int arena, std::uint64_t private_bytes)> serve_session;
  // Returns a function that does what a session does for every call of a Python module in addition
  // to the module's work. Called in a fork. Empty: nothing.
  std::function<std::function<void()>()> make_trivial_call = nullptr;
};

// Obeys the commands that arrive on the command socket until it closes. Throws
// std::runtime_error.
void serve_zygote(const zygote_role& role);

}  // namespace hone
