#include "evaluation/sandbox/child/cpu/kernel_server.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>

#include "evaluation/sandbox/child/cpu/confinement.hpp"
#include "evaluation/sandbox/child/cpu/kernels.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

// Runs the launches of the queue in order, up to the first that cannot go on.
void run_launches(cpu_kernels& kernels, kernel_queue& queue) {
  queue.problem.front() = '\0';
  if (queue.begins_run != 0) kernels.poison_shared(queue.poison);
  try {
    for (std::uint64_t at = 0; at < queue.used;) {
      queued_launch launch{};
      std::memcpy(&launch, &queue.words[at], sizeof launch);
      kernels.run(launch, &queue.words[at + kernel_queue::words_per_launch]);
      at += kernel_queue::words_per_launch + launch.arguments;
    }
  } catch (const std::exception& e) {
    const std::size_t length = std::min(std::strlen(e.what()), queue.problem.size() - 1);
    std::memcpy(queue.problem.data(), e.what(), length);
    queue.problem[length] = '\0';
  }
  queue.shared_overrun = kernels.shared_overrun() ? 1 : 0;
}

std::unique_ptr<cpu_kernels> load(int socket) {
  try {
    auto kernels = std::make_unique<cpu_kernels>(artifact_path());
    close_door();
    send_message(socket, kernels->facts().bytes());
    close(socket);
    return kernels;
  } catch (const std::exception& e) {
    record_builder<schema::LoadedKernels> problem;
    problem->setProblem(e.what());
    send_message(socket, problem.finish().bytes());
    _exit(1);
  }
}

}  // namespace

void serve_kernels(int socket, kernel_queue& queue) {
  const auto kernels = load(socket);
  while (raise(SIGSTOP) == 0) run_launches(*kernels, queue);
  _exit(0);
}

}  // namespace hone
