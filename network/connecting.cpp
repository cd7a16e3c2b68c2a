#include "network/connecting.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "network/tls.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

// Throws unless the socket has become a connection.
void finish_connecting(channel& to, const network_address& head, steady::time_point deadline) {
  if (!to.wait(channel_result::wants_write, deadline))
    throw nobody_listens(to_string(head) + ": does not answer");
  int problem = 0;
  socklen_t size = sizeof problem;
  getsockopt(to.descriptor(), SOL_SOCKET, SO_ERROR, &problem, &size);
  if (problem == ECONNREFUSED)
    throw nobody_listens(to_string(head) + ": cannot be reached (nothing listens there)");
  if (problem != 0)
    throw nobody_listens(to_string(head) + ": cannot be reached (" + std::strerror(problem) + ")");
  const int yes = 1;
  setsockopt(to.descriptor(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// Repeats `attempt` until it is done. Throws at the deadline, and `closed()` if the connection
// ends.
template <class Attempt, class Closed>
void repeat(channel& on, const network_address& head, steady::time_point deadline,
            const Attempt& attempt, const Closed& closed) {
  for (;;) {
    const channel_result result = attempt();
    if (result == channel_result::done) return;
    if (result == channel_result::closed) throw network_error(to_string(head) + ": " + closed());
    if (!on.wait(result, deadline))
      throw network_error(to_string(head) + ": does not answer as a run of Hone does");
  }
}

}  // namespace

std::shared_ptr<channel> connect_to(const network_address& head, const preface& says,
                                    const std::filesystem::path& identity,
                                    std::chrono::milliseconds limit) {
  const auto deadline = steady::now() + limit;
  std::optional<tls_side> tls;
  if (!identity.empty()) tls.emplace(identity, identity_role::node);
  const auto made = std::make_shared<channel>(begin_to_connect(head), tls ? tls->open() : nullptr);
  channel& connection = *made;
  finish_connecting(connection, head, deadline);
  repeat(
      connection, head, deadline, [&] { return connection.shake_hands(); },
      [&] { return "the TLS handshake failed: " + connection.handshake_problem(); });
  const auto ended = [&]() -> std::string {
    if (!tls)
      return "the connection was closed; the run may want an identity (--identity), or is not "
             "Hone's";
    return "the head refuses this identity: " + connection.handshake_problem();
  };
  const std::string text = to_text(says);
  for (std::size_t sent = 0; sent < text.size();) {
    std::size_t count = 0;
    repeat(
        connection, head, deadline,
        [&] { return connection.write(text.data() + sent, text.size() - sent, count); }, ended);
    sent += count;
  }
  std::string answer;
  while (!is_whole(answer) && answer.size() < longest_preface) {
    char next = 0;  // byte by byte, so that nothing of what follows is read
    std::size_t count = 0;
    repeat(
        connection, head, deadline, [&] { return connection.read(&next, 1, count); }, ended);
    answer += next;
  }
  const std::optional<std::string> problem = parse_answer(answer);
  if (!problem) throw network_error(to_string(head) + ": is not a run of Hone");
  if (!problem->empty())
    throw refused_by_head(to_string(head) + ": the run refused the node: " + *problem);
  return made;
}

}  // namespace hone
