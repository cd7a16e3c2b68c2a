#include "launch/system.hpp"

#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "launch/files.hpp"
#include "messages/versions.hpp"
#include "network/basp/basp_link.hpp"
#include "network/connecting.hpp"

namespace hone {
namespace {

constexpr std::chrono::milliseconds retry_pause{500};
// Most time for the handshakes of one connection.
constexpr std::chrono::seconds connect_limit{10};

// Returns the number by which a head tells this process from others of its name.
std::uint64_t incarnation() {
  static const std::uint64_t drawn = [] {
    std::random_device random;
    return (std::uint64_t{random()} << 32) | random();
  }();
  return drawn;
}

std::shared_ptr<channel> open_connection(const head_address& head, const std::string& purpose,
                                         const std::string& name) {
  const preface says{purpose, name, incarnation(), versions_of_this_program()};
  return connect_to(find_address(head), says, head.identity, connect_limit);
}

}  // namespace

actor_configuration::actor_configuration(const signs_of_life& signs) {
  add_message_types<caf::id_block::hone>();
  load<caf::io::middleman>();
  set("middleman.heartbeat-interval", caf::timespan(signs.every));
  set("middleman.connection-timeout", caf::timespan(signs.lost_after));
  set("logger.console-verbosity", caf::atom("quiet"));
  set("logger.file-verbosity", caf::atom("quiet"));
  // Two threads suffice, because actors that compute or block are detached.
  set("scheduler.max-threads", std::size_t{2});
  set("work-stealing.relaxed-sleep-duration", caf::timespan(std::chrono::milliseconds(1)));
}

caf::actor_system& start_actor_system(const signs_of_life& signs) {
  signal(SIGPIPE, SIG_IGN);  // TLS writes to sockets whose other end may be gone
  rlimit descriptors{};      // a connection of each node, and the pool's files
  if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
    descriptors.rlim_cur = descriptors.rlim_max;
    setrlimit(RLIMIT_NOFILE, &descriptors);
  }
  auto* settings = new actor_configuration(signs);
  return *new caf::actor_system(*settings);
}

std::map<std::string, std::uint32_t> versions_of_this_program() {
  return {{"schema", schema_version}, {"judge", judge_version}};
}

network_address find_address(const head_address& head) {
  std::string text = head.address;
  if (text.find('/') != std::string::npos) {
    if (std::filesystem::is_directory(text)) text += "/address";  // of a run
    std::ifstream in(text);
    if (!std::getline(in, text)) throw nobody_listens(head.address + ": holds no address yet");
  }
  network_address address = parse_address(text);
  if (!is_loopback(address) && head.identity.empty())
    throw network_error("'" + text +
                        "' is not on this machine: nodes of other machines need an identity "
                        "(--identity; `hone identity` makes one)");
  return address;
}

head_address head_of_run(const std::filesystem::path& directory, const std::string& identity) {
  const auto first_line = [&](const char* file) {
    const std::string text = read_text(find_in_run(directory, file).string());
    return text.substr(0, text.find('\n'));
  };
  const bool is_named = !identity.empty() || !std::filesystem::exists(directory / "identity");
  return {first_line("address"), is_named ? identity : first_line("identity")};
}

node_actor connect(caf::actor_system& system, const head_address& head, const std::string& purpose,
                   const std::string& name, std::chrono::seconds wait) {
  const basp_link link(system);
  const auto end = std::chrono::steady_clock::now() + wait;
  while (true) {
    try {
      auto connection = open_connection(head, purpose, name);
      return caf::actor_cast<node_actor>(link.open(std::move(connection), connect_limit));
    } catch (const connection_failed&) {
      if (std::chrono::steady_clock::now() >= end) throw;
    }
    std::this_thread::sleep_for(retry_pause);
  }
}

std::shared_ptr<channel> connect_for_files(const head_address& head, const std::string& name) {
  return open_connection(head, files_purpose, name);
}

}  // namespace hone
