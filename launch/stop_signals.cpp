#include "launch/stop_signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace hone {
namespace {

std::atomic<int> signals = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a handler of signals uses it");

constexpr int exit_code = 130;

void end(int /*number*/) { _exit(exit_code); }

void ask_to_stop(int /*number*/) {
  if (++signals > 1) _exit(exit_code);
}

void handle_with(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

void end_at_stop_signals() { handle_with(end); }
void catch_stop_signals() { handle_with(ask_to_stop); }
bool was_asked_to_stop() { return signals > 0; }

}  // namespace hone
