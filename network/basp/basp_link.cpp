#include "network/basp/basp_link.hpp"

#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/stream_impl.hpp>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "network/identity.hpp"

// CAF names a node by its process id, its network cards and the file system that it boots from.
// Containers have these in common, and a node of the same name never joins: it "connects to
// itself". CAF calls this function for the last of them, and this definition takes the place of
// CAF's own in the program.
namespace caf::detail {

std::string get_root_uuid() {
  static const std::string drawn = [] {
    std::string bytes(16, '\0');
    std::ifstream("/dev/urandom", std::ios::binary)
        .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }();
  return drawn;
}

}  // namespace caf::detail

namespace hone {
namespace {

using caf::io::network::native_socket;
using caf::io::network::rw_state;

// How CAF's streams read and write a connection.
class channel_policy {
 public:
  explicit channel_policy(std::shared_ptr<channel> connection)
      : connection_(std::move(connection)) {}
  channel_policy(channel_policy&&) noexcept = default;
  ~channel_policy() {
    if (connection_ != nullptr) connection_->note_closing();  // CAF's stream closes it next
  }

  rw_state read_some(std::size_t& count, native_socket /*socket*/, void* to, std::size_t size) {
    return state_of(connection_->read(to, size, count));
  }
  rw_state write_some(std::size_t& count, native_socket /*socket*/, const void* from,
                      std::size_t size) {
    count = 0;
    if (size == 0) return rw_state::indeterminate;
    return state_of(connection_->write(from, size, count));
  }
  bool must_read_more(native_socket /*socket*/, std::size_t threshold) const {
    return connection_->buffered() >= threshold;
  }

 private:
  static rw_state state_of(channel_result result) {
    return result == channel_result::closed ? rw_state::failure : rw_state::success;
  }

  std::shared_ptr<channel> connection_;
};

// A CAF broker's handle of a connection.
class channel_scribe : public caf::io::scribe {
 public:
  channel_scribe(caf::io::network::default_multiplexer& multiplexer,
                 std::shared_ptr<channel> connection)
      : scribe(caf::io::connection_handle::from_int(next_handle())),
        stream_(multiplexer, connection->lend(), channel_policy(connection)) {}

  void configure_read(caf::io::receive_policy::config how) override {
    stream_.configure_read(how);
    if (std::exchange(is_launched_, true)) return;
    stream_.start(this);
  }
  void ack_writes(bool on) override { stream_.ack_writes(on); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  void flush() override { stream_.flush(this); }
  std::string addr() const override { return ""; }
  std::uint16_t port() const override { return 0; }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

 private:
  // CAF cleans up behind a connection after its descriptor was closed, by its handle. A handle that
  // is made of a descriptor may then be that of a newer connection.
  static std::int64_t next_handle() {
    static std::atomic<std::int64_t> next{std::int64_t{1} << 32};
    return next++;
  }

  bool is_launched_ = false;
  caf::io::network::stream_impl<channel_policy> stream_;
};

}  // namespace

basp_link::basp_link(caf::actor_system& system)
    : system_(system),
      broker_(system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"))) {}

caf::io::scribe_ptr basp_link::scribe_of(std::shared_ptr<channel> connection) const {
  auto& multiplexer =
      static_cast<caf::io::network::default_multiplexer&>(system_.middleman().backend());
  return caf::make_counted<channel_scribe>(multiplexer, std::move(connection));
}

// CAF knows connections by ports; nothing listens on this one.
constexpr std::uint16_t some_port = 1;

void basp_link::serve(std::shared_ptr<channel> connection, const caf::actor& whom) const {
  caf::anon_send(broker_, caf::publish_atom::value, scribe_of(std::move(connection)), some_port,
                 caf::actor_cast<caf::strong_actor_ptr>(whom), std::set<std::string>{});
}

caf::actor basp_link::open(std::shared_ptr<channel> connection,
                           std::chrono::milliseconds limit) const {
  caf::actor found;
  std::string problem = "the run shows no node";
  caf::scoped_actor self(system_);
  const std::weak_ptr<channel> made = connection;
  self->request(broker_, limit, caf::connect_atom::value, scribe_of(std::move(connection)),
                some_port)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& handle,
              const std::set<std::string>& /*interface*/) {
            found = caf::actor_cast<caf::actor>(handle);
          },
          [&](const caf::error& e) { problem = system_.render(e); });
  if (found) return found;
  if (const auto unused = made.lock()) unused->shut_down();
  throw connection_failed("the run cannot be joined: " + problem);
}

}  // namespace hone
