#include "launch/run/page_door.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "network/blocking_io.hpp"
#include "network/byte_relay.hpp"
#include "network/identity.hpp"
#include "network/thread_priority.hpp"
#include "process/child_process.hpp"

namespace hone {
namespace {

constexpr std::size_t max_connections = 64;
constexpr std::chrono::seconds start_limit{10};
constexpr std::chrono::seconds pause_after_end{1};
constexpr std::chrono::minutes idle_limit{10};

// Returns the token in the link that hone-ui prints first, or an empty text at the deadline.
std::string read_token(int from) {
  const auto end = std::chrono::steady_clock::now() + start_limit;
  std::string line;
  for (char c = 0; line.size() < 4096;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd one{from, POLLIN, 0};
    if (left.count() <= 0 || poll(&one, 1, static_cast<int>(left.count())) != 1 ||
        read(from, &c, 1) != 1)
      return "";
    if (c == '\n') break;
    line += c;
  }
  const std::string key = "token=";
  const std::size_t at = line.find(key);
  return at == std::string::npos ? "" : line.substr(at + key.size());
}

unique_fd connect_to_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  unique_fd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made ||
      connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  return made;
}

}  // namespace

page_door::page_door(std::filesystem::path run)
    : run_(std::move(run)), socket_(folder_.path() + "/ui.sock"), connections_(max_connections) {}

page_door::~page_door() {
  {
    const std::lock_guard hold(lock_);
    stops_ = true;
  }
  changed_.notify_all();
  connections_.end_all();
  if (keeper_.joinable()) keeper_.join();
}

void page_door::serve(std::shared_ptr<channel> connection) {
  try {
    const std::lock_guard hold(lock_);
    if (!stops_ && !keeper_.joinable()) keeper_ = std::thread([this] { keep_viewer(); });
  } catch (const std::system_error&) {  // no thread is left
    return;
  }
  connections_.start(
      [this, connection] {
        let_messages_pass(thread_work::strangers_and_files);
        relay(*connection);
        connection->shut_down();
      },
      [connection] { connection->shut_down(); });
}

void page_door::keep_viewer() {
  let_messages_pass(thread_work::strangers_and_files);
  std::unique_lock hold(lock_);
  while (!stops_) {
    hold.unlock();
    std::string token;
    child_process viewer;
    try {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
      const unique_fd ours(ends[0]);
      unique_fd theirs(ends[1]);
      const unique_fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
      child_options options;
      options.ignores_stop_signals = true;
      options.arguments = {companion_program("hone-ui", "HONE_UI"), run_.string(), "--listen",
                           "unix:" + socket_};
      inherit(options.environment, {"LD_LIBRARY_PATH", "TMPDIR", "HOME"});
      options.descriptors = {{null.get(), 0}, {theirs.get(), 1}, {null.get(), 2}};
      viewer = child_process(options);
      theirs.reset();
      token = read_token(ours.get());
    } catch (const std::exception&) {  // it is tried again
    }
    hold.lock();
    token_ = token;
    changed_.notify_all();
    while (!stops_ && !token_.empty()) {
      hold.unlock();
      const bool has_ended =
          viewer.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(1)).has_value();
      hold.lock();
      if (has_ended) token_.clear();
      changed_.wait_for(hold, pause_after_end, [this] { return stops_; });
    }
    if (!stops_ && token.empty())
      changed_.wait_for(hold, pause_after_end, [this] { return stops_; });
  }
}

std::string page_door::wait_for_token() {
  std::unique_lock hold(lock_);
  changed_.wait_for(hold, start_limit, [this] { return stops_ || !token_.empty(); });
  return token_;
}

void page_door::relay(channel& connection) {
  try {
    const std::string token = wait_for_token();
    const unique_fd viewer = token.empty() ? unique_fd() : connect_to_socket(socket_);
    if (!viewer) return;
    const std::string line = token + "\n";
    write_all(connection, line.data(), line.size(), start_limit);
    relay_bytes(connection, viewer.get(), idle_limit);
  } catch (const std::exception&) {  // the other end has left
  }
}

}  // namespace hone
