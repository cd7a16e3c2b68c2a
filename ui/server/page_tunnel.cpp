#include "ui/server/page_tunnel.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "messages/ids.hpp"
#include "messages/versions.hpp"
#include "network/blocking_io.hpp"
#include "network/byte_relay.hpp"
#include "network/connecting.hpp"
#include "network/connection_threads.hpp"

namespace hone {
namespace {

constexpr std::chrono::seconds connect_limit{10};
constexpr std::chrono::minutes idle_limit{10};
constexpr std::size_t max_token = 256;
constexpr std::size_t max_connections = 64;

std::string read_token(channel& from) {
  std::string token;
  for (char c = 0; token.size() < max_token; token += c) {
    read_all(from, &c, 1, connect_limit);
    if (c == '\n') return token;
  }
  throw connection_failed("the head does not answer with a token");
}

}  // namespace

struct page_tunnel::state {
  // A reader's connection, and the one to the head once there is one.
  struct passed {
    unique_fd client;
    std::mutex lock{};  // guards the next one
    std::shared_ptr<channel> head{};

    void end() {
      const std::lock_guard hold(lock);
      shutdown(client.get(), SHUT_RDWR);
      if (head) head->shut_down();
    }
  };

  options chosen;
  preface says;
  std::string token;
  unique_fd listener;
  unique_fd stop;
  connection_threads connections{max_connections};
  std::thread worker;

  explicit state(options given)
      : chosen(std::move(given)),
        says{pages_purpose,
             "hone ui",
             random_bits(),
             {{"schema", schema_version}, {"judge", judge_version}}} {
    if (!is_loopback(chosen.head) && chosen.identity.empty())
      throw network_error(to_string(chosen.head) +
                          " is not on this machine, and other machines ask for an identity "
                          "(--identity; `hone identity` makes one)");
    if (chosen.socket.empty() && !is_loopback(chosen.listen))
      throw network_error(to_string(chosen.listen) +
                          " is not an address of this machine alone: pages are served on loopback "
                          "addresses; to read them elsewhere, forward the port with ssh -L");
    token = read_token(*connect_to(chosen.head, says, chosen.identity, connect_limit));
    listener = chosen.socket.empty() ? listen_on(chosen.listen) : listen_on(chosen.socket);
    stop.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    worker = std::thread([this] { accept_all(); });
  }
  ~state() {
    const std::uint64_t one = 1;
    (void)!write(stop.get(), &one, sizeof one);
    worker.join();
    connections.end_all();
    std::error_code ignored;
    if (!chosen.socket.empty()) std::filesystem::remove(chosen.socket, ignored);
  }

  void accept_all() {
    for (;;) {
      std::array<pollfd, 2> both = {{{listener.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}}};
      (void)poll(both.data(), both.size(), -1);
      if (both[1].revents != 0) return;
      unique_fd client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) continue;
      auto next = std::make_shared<passed>(std::move(client));
      connections.start([this, next] { pass(*next); }, [next] { next->end(); });
    }
  }

  void pass(passed& one) {
    try {
      auto head = connect_to(chosen.head, says, chosen.identity, connect_limit);
      {
        const std::lock_guard hold(one.lock);
        one.head = head;
      }
      (void)read_token(*head);
      relay_bytes(*head, one.client.get(), idle_limit);
    } catch (const std::exception&) {  // a reader's browser says that there is no answer
    }
    shutdown(one.client.get(), SHUT_RDWR);
  }
};

page_tunnel::page_tunnel(options chosen) : state_(std::make_unique<state>(std::move(chosen))) {}
page_tunnel::~page_tunnel() = default;

std::string page_tunnel::link() const {
  const std::string host =
      state_->chosen.socket.empty() ? to_string(state_->chosen.listen) : "localhost";
  return "http://" + host + "/?token=" + state_->token;
}

}  // namespace hone
