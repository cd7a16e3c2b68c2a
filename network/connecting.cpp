#include "network/connecting.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

// Repeats `attempt` until it is done. Throws at the deadline, and `closed()` if the connection
// ends.
template <class Attempt, class Closed>
void repeat(channel& on, const network_address& to, steady::time_point deadline,
            const Attempt& attempt, const Closed& closed) {
  for (;;) {
    const channel_result result = attempt();
    if (result == channel_result::done) return;
    if (result == channel_result::closed) closed();
    if (!on.wait(result, deadline))
      throw connection_failed(to_string(to) + ": does not answer as a run of Hone does");
  }
}

}  // namespace

std::shared_ptr<channel> connect_to(const network_address& to, const preface& says,
                                    const std::filesystem::path& identity,
                                    std::chrono::milliseconds limit, tls_role role) {
  const auto deadline = steady::now() + limit;
  std::optional<tls_side> tls;
  if (!identity.empty()) tls.emplace(identity, role);
  unique_fd socket = connect_socket(to, deadline);
  const int yes = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const auto made = std::make_shared<channel>(std::move(socket), tls ? tls->open() : nullptr);
  channel& connection = *made;
  const auto ended = [&]() {
    if (!tls)
      throw connection_failed(to_string(to) +
                              ": the connection was closed; the run may want an identity "
                              "(--identity), or is not Hone's");
    const std::string problem = connection.handshake_problem();
    if (connection.is_refused())
      throw refused_by_head(to_string(to) + ": this identity is refused: " + problem);
    throw connection_failed(to_string(to) + ": the TLS connection failed: " + problem);
  };
  repeat(
      connection, to, deadline, [&] { return connection.shake_hands(); }, ended);
  const std::string text = to_text(says);
  for (std::size_t sent = 0; sent < text.size();) {
    std::size_t count = 0;
    repeat(
        connection, to, deadline,
        [&] { return connection.write(text.data() + sent, text.size() - sent, count); }, ended);
    sent += count;
  }
  std::string answer;
  while (!is_whole(answer) && answer.size() < max_preface) {
    char next = 0;  // byte by byte, so that nothing of what follows is read
    std::size_t count = 0;
    repeat(
        connection, to, deadline, [&] { return connection.read(&next, 1, count); }, ended);
    answer += next;
  }
  const std::optional<preface_answer> answered = parse_answer(answer);
  if (!answered) throw connection_failed(to_string(to) + ": is not a run of Hone");
  if (answered->what == preface_answer::kind::refused)
    throw refused_by_head(to_string(to) + ": the run refused the node: " + answered->reason);
  if (answered->what == preface_answer::kind::later)
    throw connection_failed(to_string(to) + ": " + answered->reason);
  return made;
}

}  // namespace hone
