#include "network/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "network/identity.hpp"

namespace hone {
namespace {

using found_addresses =
    std::unique_ptr<addrinfo, decltype([](addrinfo* found) { freeaddrinfo(found); })>;

found_addresses resolve(const network_address& address, int flags) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  const int code = getaddrinfo(host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (code != 0) throw connection_failed(to_string(address) + ": " + gai_strerror(code));
  return found_addresses(found);
}

unique_fd make_socket(const addrinfo& of) {
  return unique_fd(socket(of.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Returns 0, or the number of the error.
int try_to_connect(const unique_fd& socket, const addrinfo& to,
                   std::chrono::steady_clock::time_point deadline) {
  if (!socket) return errno;
  if (connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd one{socket.get(), POLLOUT, 0};
  if (left.count() <= 0 || poll(&one, 1, static_cast<int>(left.count())) != 1) return ETIMEDOUT;
  int problem = 0;
  socklen_t size = sizeof problem;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
  return problem;
}

}  // namespace

network_address parse_address(const std::string& text, bool allows_any_port) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    throw network_error("'" + text + "' is not an address; expected HOST:PORT");
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string port = text.substr(colon + 1);
  const bool has_digits =
      std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const int number = has_digits && port.size() <= 5 ? std::stoi(port) : -1;
  if (number < (allows_any_port ? 0 : 1) || number > 65535)
    throw network_error("'" + text + "': " + port + " is not a port number");
  return {host, static_cast<std::uint16_t>(number)};
}

std::string to_string(const network_address& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

bool is_loopback(const network_address& address) {
  in_addr in_digits{};
  return address.host == "localhost" || address.host == "::1" ||
         (inet_pton(AF_INET, address.host.c_str(), &in_digits) == 1 &&
          ntohl(in_digits.s_addr) >> 24 == 127);
}

unique_fd listen_on(network_address& address) {
  const found_addresses found = resolve(address, AI_PASSIVE);
  unique_fd listener = make_socket(*found);
  const int yes = 1;
  if (listener) setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  constexpr int backlog = 1024;
  if (!listener || bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(listener.get(), backlog) != 0)
    throw network_error(to_string(address) + ": cannot be listened on (" + std::strerror(errno) +
                        (errno == EADDRINUSE ? "; choose another port where this one was given "
                                               "(node.port, serve.listen or --listen), or 0 "
                                               "for any free one)"
                                             : ")"));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  address.port =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  return listener;
}

unique_fd listen_on(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket.string();
  if (path.empty() || path.size() >= sizeof address.sun_path)
    throw network_error("'" + path + "' is not the path of a Unix socket, which has 1 to " +
                        std::to_string(sizeof address.sun_path - 1) + " bytes");
  std::copy(path.begin(), path.end(), address.sun_path);
  const auto* const target = reinterpret_cast<const sockaddr*>(&address);
  const auto make = [] {
    return unique_fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  };
  if (const unique_fd probe = make(); std::filesystem::is_socket(socket) &&
                                      connect(probe.get(), target, sizeof address) != 0 &&
                                      errno == ECONNREFUSED)
    std::filesystem::remove(socket);
  unique_fd listener = make();
  // The mode of the socket's file is set before anybody can connect to it.
  if (!listener || fchmod(listener.get(), S_IRUSR | S_IWUSR) != 0 ||
      bind(listener.get(), target, sizeof address) != 0 || listen(listener.get(), SOMAXCONN) != 0)
    throw network_error(path + ": cannot be listened on (" + std::strerror(errno) + ")");
  return listener;
}

unique_fd connect_socket(const network_address& address,
                         std::chrono::steady_clock::time_point deadline) {
  const found_addresses found = resolve(address, 0);
  int addresses = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) ++addresses;
  int problem = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next, --addresses) {
    unique_fd made = make_socket(*one);
    // One that never answers leaves the others their share of the time.
    const auto now = std::chrono::steady_clock::now();
    problem = try_to_connect(made, *one, now + (deadline - now) / addresses);
    if (problem == 0) return made;
  }
  const std::string why = problem == ECONNREFUSED ? "nothing listens there"
                          : problem == ETIMEDOUT  ? "no answer"
                                                  : std::strerror(problem);
  throw nobody_listens(to_string(address) + ": cannot be reached (" + why + ")");
}

std::string peer_of(int fd) {
  sockaddr_storage other{};
  socklen_t size = sizeof other;
  std::array<char, NI_MAXHOST> host{};
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) != 0 ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&other), size, host.data(), host.size(),
                  nullptr, 0, NI_NUMERICHOST) != 0)
    return "an unknown address";
  constexpr std::string_view mapped = "::ffff:";  // an IPv4 address at a listener of IPv6
  const std::string_view found = host.data();
  return std::string(found.starts_with(mapped) && found.find('.') != std::string_view::npos
                         ? found.substr(mapped.size())
                         : found);
}

}  // namespace hone
