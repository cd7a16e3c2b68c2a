#include "launch/copy_relay.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "network/acceptor.hpp"
#include "network/connecting.hpp"
#include "network/files/file_server.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr const char* nowhere = "no";
constexpr std::chrono::seconds connect_limit{2};
// A node that could not be reached is not tried again for this long: a firewall may be in between,
// and every attempt costs the limit above.
constexpr std::chrono::minutes avoidance{10};

// Connections that a node serves: each takes the memory of a piece.
constexpr std::size_t max_connections = 32;
// Nodes that could not be reached after which no other is tried either.
constexpr std::size_t max_unreachable = 3;

network_address place_to_listen(const std::string& listen, const head_address& head) {
  if (!listen.empty()) return parse_address(listen, /*allows_any_port=*/true);
  if (head.identity.empty() || is_loopback(find_address(head))) return {"127.0.0.1", 0};
  try {
    network_address any{"::", 0};  // IPv4 as well
    (void)listen_on(any);
    return {"::", 0};
  } catch (const network_error&) {  // a machine without IPv6
    return {"0.0.0.0", 0};
  }
}

}  // namespace

class copy_relay::door {
 public:
  door(const head_address& head, const std::string& name, const std::string& listen,
       std::function<void(const std::string&)> log)
      : name_(name),
        identity_(head.identity),
        log_(log),
        server_([shared = shared_](const std::string& folder) { return shared->find(folder); },
                max_connections),
        acceptor_(options(place_to_listen(listen, head), std::move(log))) {}

  std::shared_ptr<shared_copies> shared() const { return shared_; }
  const network_address& address() const { return acceptor_.address(); }

  std::shared_ptr<channel> connect(const std::string& address) {
    if (is_avoided(address)) return nullptr;
    const auto begin = steady::now();
    try {
      return connect_to(parse_address(address),
                        {files_purpose, name_, 0, versions_of_this_program()}, identity_,
                        connect_limit, tls_role::connects_to_node);
    } catch (const network_error& e) {
      // A node that has ended says so at once.
      if (steady::now() - begin > connect_limit / 2) note_unreachable(address, e.what());
      throw;
    }
  }

 private:
  // True for a node that could not be reached a while ago, and for any if that holds for several.
  bool is_avoided(const std::string& address) {
    const std::scoped_lock guard(lock_);
    std::erase_if(avoided_, [](const auto& one) { return one.second < steady::now(); });
    return avoided_.contains(address) || avoided_.size() >= max_unreachable;
  }
  void note_unreachable(const std::string& address, const std::string& problem) {
    const std::scoped_lock guard(lock_);
    avoided_[address] = steady::now() + avoidance;
    if (avoided_.size() == max_unreachable && log_)
      log_("other nodes cannot be reached, so copies come from the head for ten minutes (" +
           problem + ")");
  }

  acceptor_options options(network_address listen, std::function<void(const std::string&)> log) {
    acceptor_options options;
    options.listen = std::move(listen);
    options.identity = identity_;
    options.find_problem = [](const preface& said) -> std::string {
      if (said.purpose != files_purpose) return "this is a node; it only passes files on";
      return find_version_problem(said.versions, versions_of_this_program());
    };
    options.admit = [this](admitted_peer peer) { server_.serve(std::move(peer.connection)); };
    options.log = std::move(log);
    return options;
  }

  std::string name_;
  std::filesystem::path identity_;
  std::function<void(const std::string&)> log_;
  std::shared_ptr<shared_copies> shared_ = std::make_shared<shared_copies>();
  file_server server_;
  std::mutex lock_;                                    // guards the next one
  std::map<std::string, steady::time_point> avoided_;  // by address, until when
  acceptor acceptor_;  // the last member: its thread uses the others
};

copy_relay::copy_relay(head_address head, std::string name, const std::string& listen,
                       std::function<void(const std::string&)> log)
    : head_(std::move(head)), name_(std::move(name)) {
  if (listen == nowhere) return;
  try {
    door_ = std::make_shared<door>(head_, name_, listen, log);
  } catch (const std::exception& e) {
    log(std::string("copies are not passed on: ") + e.what());
  }
}

copy_relay::~copy_relay() = default;

copy_sources copy_relay::sources() const {
  copy_sources sources;
  sources.connect = [head = head_, name = name_] { return connect_for_files(head, name); };
  if (door_ == nullptr) return sources;
  sources.connect_to_node = [door = door_](const std::string& address) {
    return door->connect(address);
  };
  sources.shared = door_->shared();
  sources.port = door_->address().port;
  return sources;
}

}  // namespace hone
