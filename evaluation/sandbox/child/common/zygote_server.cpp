#include "evaluation/sandbox/child/common/zygote_server.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

constexpr int session_socket = 4;
constexpr int session_arena = 5;
constexpr std::size_t cache_bytes = 4U << 20U;  // of a core's caches, at least

void reply_number(schema::Reply::Which which, int number) {
  record_builder<schema::Reply> reply;
  if (which == schema::Reply::FORKED) {
    reply->setForked(number);
  } else {
    reply->setEnded(number);
  }
  send_message(command_socket, reply.finish().bytes());
}

void fork_session(const zygote_role& role, const schema::Fork::Reader& request,
                  std::vector<unique_fd>& descriptors) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || descriptors.empty())
      _exit(1);
    const bool has_arena = descriptors.size() > 1;
    // The passed descriptors are greater than 3. The arena moves first, so that dup2 overwrites no
    // descriptor that is still needed.
    const int arena = has_arena ? fcntl(descriptors[1].get(), F_DUPFD, 10) : -1;
    if (dup2(descriptors[0].get(), session_socket) < 0 ||
        (has_arena && dup2(arena, session_arena) < 0))
      _exit(1);
    for (int fd = 0; fd < 64; ++fd) {
      if (fd != session_socket && fd != session_arena && fd != 2) close(fd);
    }
    // Standard output and error lead nowhere.
    const int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
      dup2(null, 1);
      dup2(null, 2);
      if (null > 2) close(null);
    }
    if (!has_arena) close(session_arena);
    role.serve_session(session_socket, has_arena ? session_arena : -1, request.getPrivateBytes());
    _exit(0);
  }
  reply_number(schema::Reply::FORKED, pid);
}

void reap(pid_t pid) {
  int status = 0;
  if (pid <= 0) return reply_number(schema::Reply::ENDED, 0);  // the parent only asks for a reply
  kill(pid, SIGKILL);
  if (waitpid(pid, &status, 0) != pid) status = -1;
  reply_number(schema::Reply::ENDED, status);
}

// Returns the processor time of a clock in nanoseconds.
double processor_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

clockid_t clock_of(pid_t pid) {
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  clock_getcpuclockid(pid, &clock);
  return clock;
}

// Returns the least mean, over batches, of what `spent_ns` grows by when `turn` is made once.
double cost_of_turn(const std::function<void()>& turn, const std::function<double()>& spent_ns) {
  constexpr int batches = 8;
  constexpr int turns = 32;
  double least = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < batches; ++batch) {
    const double before = spent_ns();
    for (int i = 0; i < turns; ++i) turn();
    least = std::min(least, (spent_ns() - before) / turns);
  }
  return least;
}

// Forks a process that calls `turn` indefinitely, and measures the cost of a turn.
template <class Turn, class Measure>
double with_child(Turn turn, const Measure& measure) {
  const pid_t pid = fork();
  if (pid == 0) {
    while (true) turn();
  }
  const double cost = measure(pid);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return cost;
}

// Returns what receiving a call's turn, a call, and passing the turn back take. `make_call` runs in
// the child, once, and `before_turn` in this process.
double cost_of_call(const std::function<std::function<void()>()>& make_call,
                    const std::function<void()>& before_turn) {
  auto [ours, theirs] = socket_pair();
  return with_child(
      [&, call = std::function<void()>()]() mutable {
        receive_message(theirs.get());
        if (!call) call = make_call();
        call();
        send_message(theirs.get(), {});
      },
      [&](pid_t pid) {
        return cost_of_turn(
            [&] {
              before_turn();
              send_message(ours.get(), {});
              receive_message(ours.get());
            },
            [clock = clock_of(pid)] { return processor_ns(clock); });
      });
}

std::function<void()> no_call() {
  return [] {};
}

// Returns what a session does for a call of a module in addition to passing the turn. The judge
// writes a call's inputs before its turn, which leaves little of the process in the caches.
double cost_of_harness(const zygote_role& role) {
  std::vector<char> other_data(cache_bytes);
  const auto cool = [&, value = char{0}]() mutable {
    std::fill(other_data.begin(), other_data.end(), ++value);
  };
  return std::max(0.0, cost_of_call(role.make_trivial_call, cool) - cost_of_call(no_call, cool));
}

void measure_turns(const zygote_role& role) {
  const double of_call = cost_of_call(no_call, [] {});
  const double of_kernels =
      with_child([] { raise(SIGSTOP); },
                 [](pid_t pid) {
                   int status = 0;
                   waitpid(pid, &status, WUNTRACED);
                   return cost_of_turn(
                       [&] {
                         kill(pid, SIGCONT);
                         waitpid(pid, &status, WUNTRACED);
                       },
                       [clock = clock_of(pid)] {
                         return processor_ns(clock) + processor_ns(CLOCK_PROCESS_CPUTIME_ID);
                       });
                 });
  record_builder<schema::Reply> reply;
  auto costs = reply->initTurnCosts();
  costs.setOfCall(of_call);
  costs.setOfKernels(of_kernels);
  if (role.make_trivial_call) costs.setOfHarness(cost_of_harness(role));
  send_message(command_socket, reply.finish().bytes());
}

}  // namespace

void serve_zygote(const zygote_role& role) {
  try {
    while (true) {
      received_message message = receive_with_descriptors(command_socket);
      const auto command = record<schema::Command>::from_bytes(std::move(message.bytes));
      if (command->isFork()) fork_session(role, command->getFork(), message.descriptors);
      if (command->isReap()) reap(command->getReap());
      if (command->isMeasureTurns()) measure_turns(role);
    }
  } catch (const connection_lost&) {
  }
}

}  // namespace hone
