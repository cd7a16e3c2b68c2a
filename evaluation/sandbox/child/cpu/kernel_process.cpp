#include "evaluation/sandbox/child/cpu/kernel_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "evaluation/sandbox/child/cpu/confinement.hpp"
#include "evaluation/sandbox/child/cpu/kernel_server.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/names.hpp"
#include "messages/record.hpp"
#include "process/framing.hpp"
#include "process/throw_errno.hpp"

namespace hone {
namespace {

kernel_queue* shared_queue() {
  void* mapped = mmap(nullptr, sizeof(kernel_queue), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw_errno("cannot share memory with kernels");
  return static_cast<kernel_queue*>(mapped);
}

constexpr int kernels_socket = 3;
constexpr int kernels_object = 4;

// Moves the two descriptors to their numbers and closes all others. The object has the higher
// number, as confine() requires.
void keep_only(int socket, int object) {
  constexpr int above_all = 64;
  const int moved_socket = fcntl(socket, F_DUPFD, above_all);
  const int moved_object = fcntl(object, F_DUPFD, above_all);
  for (int fd = kernels_socket; fd < above_all; ++fd) close(fd);
  if (dup2(moved_socket, kernels_socket) < 0 || dup2(moved_object, kernels_object) < 0) _exit(1);
  close(moved_socket);
  close(moved_object);
}

}  // namespace

kernel_process::kernel_process(int object, arena_head& head, std::uint64_t private_bytes)
    : queue_(shared_queue()), head_(&head) {
  auto [ours, theirs] = socket_pair();
  const pid_t session = getpid();
  pid_ = fork();
  if (pid_ < 0) throw_errno("cannot fork a process for kernels");
  if (pid_ == 0) {
    try {
      if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != session) _exit(1);
      keep_only(theirs.release(), object);
      munmap(head_, arena_head_bytes);
      confine(kernels_socket, 0, kernels_object, private_bytes, &queue_->refused_call);
      serve_kernels(kernels_socket, *queue_);
    } catch (const std::exception&) {
      _exit(1);
    }
  }
  socket_ = std::move(ours);
}

void kernel_process::await_kernels() {
  std::optional<received_message> message;
  try {
    message = receive_message(socket_.get());
  } catch (const connection_lost&) {
    end_alike();
  }
  const auto loaded = record<schema::LoadedKernels>::from_bytes(std::move(message->bytes));
  if (loaded->getProblem().size() > 0) throw std::runtime_error(loaded->getProblem().cStr());
  kernels_ = kernel_table(*loaded);
  socket_.reset();
  await_stop();
}

void kernel_process::launch(const std::string& kernel, const std::vector<std::int64_t>& grid,
                            const std::vector<std::int64_t>& block, std::int64_t shared_bytes,
                            const std::vector<c10::IValue>& arguments) {
  const auto launch = kernels_.check(kernel, grid, block, shared_bytes, arguments);
  if (!launch) return;
  const std::uint64_t words = kernel_queue::words_per_launch + launch->arguments.size();
  if (words > kernel_queue::capacity - used_) synchronize();
  std::uint64_t* at = &queue_->words[used_];
  std::memcpy(at, &launch->what, sizeof launch->what);
  std::copy(launch->arguments.begin(), launch->arguments.end(),
            at + kernel_queue::words_per_launch);
  used_ += words;
}

void kernel_process::synchronize() {
  if (used_ == 0) return;
  queue_->used = std::exchange(used_, 0);
  run_queue();
  queue_->begins_run = 0;
  if (queue_->problem.front() == '\0') return;
  queue_->problem.back() = '\0';
  throw program_error(Outcome::CRASH, queue_->problem.data());
}

void kernel_process::begin_run(unsigned char poison) {
  used_ = 0;
  queue_->begins_run = 1;
  queue_->poison = poison;
}

// The process stops itself when it has run the queue, and so says that it has. A stop that came too
// early would leave the rest of the work undone.
void kernel_process::run_queue() {
  kill(pid_, SIGCONT);
  await_stop();
}

void kernel_process::await_stop() {
  int status = 0;
  if (waitpid(pid_, &status, WUNTRACED) != pid_) _exit(1);
  if (!WIFSTOPPED(status)) end_alike(status);
}

void kernel_process::end_alike() {
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) _exit(1);
  end_alike(status);
}

void kernel_process::end_alike(int status) {
  if (WIFSIGNALED(status)) {
    raise(WTERMSIG(status));
    _exit(1);
  }
  if (WEXITSTATUS(status) == refused_call_exit_code) head_->refused_call = queue_->refused_call;
  _exit(WEXITSTATUS(status));
}

}  // namespace hone
