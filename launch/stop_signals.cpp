#include "launch/stop_signals.hpp"

#include <signal.h>
#include <unistd.h>

namespace hone {
namespace {

volatile sig_atomic_t signals = 0;

void on_signal(int /*number*/) {
  signals = signals + 1;
  if (signals > 1) _exit(130);
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool was_asked_to_stop() { return signals > 0; }

}  // namespace hone
