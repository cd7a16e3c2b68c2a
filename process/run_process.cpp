#include "process/run_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "process/framing.hpp"
#include "process/throw_errno.hpp"
#include "process/unique_fd.hpp"

namespace hone {

bool process_result::succeeded() const {
  return !timed_out && !too_much && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

namespace {

using clock = std::chrono::steady_clock;

struct pipe_ends {
  unique_fd parent;
  unique_fd child;
};

pipe_ends output_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot make a pipe");
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

// Makes a socket instead of a pipe, because writing to a child that has ended must not raise
// SIGPIPE.
pipe_ends input_socket() {
  auto [parent, child] = socket_pair();
  return {std::move(parent), std::move(child)};
}

// The standard streams of a running child.
class conversation {
 public:
  conversation(std::string_view input, child_options& options) : input_(input) {
    options.descriptors.insert(
        options.descriptors.end(),
        {{in_.child.get(), 0}, {out_.child.get(), 1}, {err_.child.get(), 2}});
  }
  void child_has_started() {
    in_.child.reset();
    out_.child.reset();
    err_.child.reset();
    if (input_.empty()) in_.parent.reset();
  }
  bool is_open() const { return out_.parent || err_.parent; }
  // Transfers the bytes that are ready in either direction. Returns false if the deadline passes
  // first.
  bool advance(clock::time_point deadline, process_result& result) {
    std::vector<pollfd> waiting;
    if (in_.parent) waiting.push_back({in_.parent.get(), POLLOUT, 0});
    if (out_.parent) waiting.push_back({out_.parent.get(), POLLIN, 0});
    if (err_.parent) waiting.push_back({err_.parent.get(), POLLIN, 0});
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (left <= 0 || poll(waiting.data(), waiting.size(), static_cast<int>(left)) == 0)
      return false;
    for (const pollfd& ready : waiting) {
      if (ready.revents == 0) continue;
      if (in_.parent && ready.fd == in_.parent.get()) {
        write_input();
      } else if (out_.parent && ready.fd == out_.parent.get()) {
        read_output(out_.parent, result.out);
      } else {
        read_output(err_.parent, result.err);
      }
    }
    return true;
  }

 private:
  void write_input() {
    const ssize_t n =
        send(in_.parent.get(), input_.data(), input_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) input_.remove_prefix(static_cast<std::size_t>(n));
    if ((n < 0 && errno != EAGAIN) || input_.empty()) in_.parent.reset();
  }
  void read_output(unique_fd& from, std::string& to) {
    const ssize_t n = read(from.get(), buffer_.data(), buffer_.size());
    if (n <= 0) {
      from.reset();
    } else {
      to.append(buffer_.data(), static_cast<std::size_t>(n));
    }
  }

  std::string_view input_;  // not yet written
  pipe_ends in_ = input_socket();
  pipe_ends out_ = output_pipe();
  pipe_ends err_ = output_pipe();
  std::vector<char> buffer_ = std::vector<char>(64U << 10U);
};

}  // namespace

process_result run_process(child_options options, std::string_view input,
                           std::chrono::milliseconds time_limit, std::size_t max_output_bytes) {
  const auto deadline = clock::now() + time_limit;
  conversation streams(input, options);
  child_process child(options);
  streams.child_has_started();
  process_result result;
  while (streams.is_open()) {
    result.timed_out = !streams.advance(deadline, result);
    result.too_much = result.out.size() + result.err.size() > max_output_bytes;
    if (result.timed_out || result.too_much) {
      child.kill();
      return result;
    }
  }
  const auto status = child.wait(deadline);
  result.timed_out = !status;
  result.status = status.value_or(0);
  return result;
}

}  // namespace hone
