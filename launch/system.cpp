#include "launch/system.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace hone {
namespace {

constexpr std::chrono::milliseconds retry_pause{500};

}  // namespace

actor_configuration::actor_configuration() {
  add_message_types<caf::id_block::hone>();
  load<caf::io::middleman>();
  set("middleman.heartbeat-interval", caf::timespan(std::chrono::seconds(10)));
  set("middleman.connection-timeout", caf::timespan(std::chrono::seconds(60)));
  set("logger.console-verbosity", caf::atom("quiet"));
  set("logger.file-verbosity", caf::atom("quiet"));
  // Two threads suffice, because actors that compute or block are detached.
  set("scheduler.max-threads", std::size_t{2});
  set("work-stealing.relaxed-sleep-duration", caf::timespan(std::chrono::milliseconds(1)));
}

caf::actor_system& start_actor_system() {
  auto* settings = new actor_configuration;
  return *new caf::actor_system(*settings);
}

std::pair<std::string, std::uint16_t> parse_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size())
    throw std::runtime_error("'" + address + "' is not an address; expected HOST:PORT");
  const std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  if (!std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
      port.size() > 5 || std::stoi(port) < 1 || std::stoi(port) > 65535) {
    throw std::runtime_error("'" + address + "': " + port + " is not a port number");
  }
  // Only an address in digits is surely a loopback address: a name may resolve to anything.
  in_addr address_in_digits{};
  const bool is_loopback = host == "localhost" || host == "::1" ||
                           (inet_pton(AF_INET, host.c_str(), &address_in_digits) == 1 &&
                            ntohl(address_in_digits.s_addr) >> 24 == 127);
  if (!is_loopback) {
    throw std::runtime_error("'" + address +
                             "' is not on this machine: nodes have no authentication yet, so only "
                             "loopback addresses are accepted");
  }
  return {host == "localhost" ? "127.0.0.1" : host, static_cast<std::uint16_t>(std::stoi(port))};
}

node_actor connect(caf::actor_system& system, const std::string& address,
                   std::chrono::seconds wait) {
  const auto [host, port] = parse_address(address);
  caf::scoped_actor self(system);
  const auto end = std::chrono::steady_clock::now() + wait;
  while (true) {
    node_actor found;
    std::string problem;
    bool is_absent = false;
    // The middleman's actor accepts a timeout; remote_actor() does not and may wait for ever.
    self->request(system.middleman().actor_handle(), connect_limit, caf::connect_atom::value, host,
                  port)
        .receive(
            [&](const caf::node_id&, const caf::strong_actor_ptr& handle,
                const std::set<std::string>& /*interface*/) {
              if (handle != nullptr) found = caf::actor_cast<node_actor>(handle);
              if (handle == nullptr) problem = "the program that answers there is not Hone";
            },
            [&](const caf::error& e) {
              is_absent = e == caf::sec::cannot_connect_to_node;
              problem = is_absent ? "nothing listens there" : system.render(e);
            });
    if (found) return found;
    if (!is_absent || std::chrono::steady_clock::now() >= end)
      throw std::runtime_error(address + ": cannot be reached (" + problem + ")");
    std::this_thread::sleep_for(retry_pause);
  }
}

}  // namespace hone
