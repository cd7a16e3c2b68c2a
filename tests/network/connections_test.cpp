// Tests who is let in by an acceptor, and what strangers can do to it. All connections are on
// loopback addresses.

#include "network/connecting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "network/acceptor.hpp"
#include "network/identity.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing_support::temporary_folder;

constexpr std::uint32_t schema = 3;
constexpr seconds limit{5};

preface says(const std::string& name, const std::string& purpose = join_purpose,
             std::uint64_t incarnation = 1) {
  return {purpose, name, incarnation, {{"schema", schema}}};
}

// A head that keeps what was let in, and what was said of the rest.
class head {
 public:
  explicit head(const std::filesystem::path& identity = {}, std::size_t max_waiting = 512,
                milliseconds patience = milliseconds(3000)) {
    acceptor_options o;
    o.listen = parse_address("127.0.0.1:0", true);
    o.identity = identity;
    o.max_waiting = max_waiting;
    o.patience = patience;
    o.find_problem = [](const preface& p) {
      return find_version_problem(p.versions, {{"schema", schema}});
    };
    o.admit = [this](admitted_peer peer) {
      const std::scoped_lock guard(lock_);
      peers_.push_back(std::move(peer));
      changed_.notify_all();
    };
    o.log = [this](const std::string& line) {
      const std::scoped_lock guard(lock_);
      log_ += line + "\n";
      changed_.notify_all();
    };
    acceptor_ = std::make_unique<acceptor>(std::move(o));
  }
  const network_address& address() const { return acceptor_->address(); }

  // Wait until as many peers were let in, or the log has this text.
  std::vector<admitted_peer> wait_for(std::size_t count) {
    std::unique_lock guard(lock_);
    EXPECT_TRUE(changed_.wait_for(guard, limit, [&] { return peers_.size() >= count; }));
    return peers_;
  }
  std::string wait_for(const std::string& text) {
    std::unique_lock guard(lock_);
    EXPECT_TRUE(changed_.wait_for(guard, limit, [&] { return log_.find(text) != log_.npos; }))
        << "no '" << text << "' in: " << log_;
    return log_;
  }
  void forget_peers() {
    const std::scoped_lock guard(lock_);
    peers_.clear();
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<admitted_peer> peers_;
  std::string log_;
  std::unique_ptr<acceptor> acceptor_;
};

// Connects a socket and sends bytes, without TLS and without a preface.
unique_fd send_raw(const network_address& to, const std::string& bytes) {
  unique_fd socket = connect_socket(to, std::chrono::steady_clock::now() + limit);
  (void)!send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return socket;
}

bool is_closed_by_peer(const unique_fd& socket, seconds at_most = limit) {
  pollfd readable{socket.get(), POLLIN, 0};
  std::array<char, 4096> buffer{};
  while (poll(&readable, 1, static_cast<int>(milliseconds(at_most).count())) == 1) {
    if (recv(socket.get(), buffer.data(), buffer.size(), 0) <= 0) return true;
  }
  return false;
}

std::string problem_of(const auto& attempt) {
  return testing_support::refusal_of<network_error>(attempt);
}

// Returns whether the other end ends the connection in time.
bool ends(channel& connection) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    char byte = 0;
    std::size_t count = 0;
    const channel_result result = connection.read(&byte, 1, count);
    if (result == channel_result::closed) return true;
    if (result != channel_result::done && !connection.wait(result, deadline)) return false;
  }
}

TEST(Connections, WithoutTlsAreLetInOnALoopbackAddress) {
  head h;
  const auto connection = connect_to(h.address(), says("a"), {}, limit);
  const auto peers = h.wait_for(1);
  EXPECT_EQ(peers[0].said.name, "a");
  EXPECT_EQ(peers[0].certificate, "");
  std::size_t count = 0;
  ASSERT_EQ(peers[0].connection->write("x", 1, count), channel_result::done);
  char byte = 0;
  ASSERT_TRUE(
      connection->wait(channel_result::wants_read, std::chrono::steady_clock::now() + limit));
  EXPECT_EQ(connection->read(&byte, 1, count), channel_result::done);
  EXPECT_EQ(byte, 'x');
}

TEST(Connections, WithoutTlsAreNotLetInFromElsewhere) {
  acceptor_options o;
  o.listen = parse_address("0.0.0.0:0", true);
  EXPECT_THAT(problem_of([&] { acceptor listening(o); }), HasSubstr("without an identity"));
}

TEST(Connections, OfOtherVersionsAreRefusedWithTheReason) {
  head h;
  preface old = says("a");
  old.versions["schema"] = schema - 1;
  const std::string expected = "schema version 2, expected 3";
  EXPECT_THAT(problem_of([&] { connect_to(h.address(), old, {}, limit); }), HasSubstr(expected));
  h.wait_for("refused: a: " + expected);
}

TEST(Connections, OfAnEarlierIncarnationEndBeforeTheNextIsLetIn) {
  head h;
  const auto first = connect_to(h.address(), says("a"), {}, limit);
  const auto other = connect_to(h.address(), says("b"), {}, limit);
  const auto look = connect_to(h.address(), says("a", status_purpose), {}, limit);
  h.wait_for(3);
  std::shared_ptr<channel> second;
  std::thread again([&] { second = connect_to(h.address(), says("a"), {}, limit); });
  EXPECT_TRUE(ends(*first));
  EXPECT_EQ(h.wait_for(3).size(), 3U) << "the reader of the first has not let it go yet";
  h.forget_peers();
  again.join();
  EXPECT_EQ(h.wait_for(1)[0].said.name, "a");
}

TEST(Connections, OfAProcessWhoseNameAnotherHasTakenAreRefused) {
  head h;
  const auto old = connect_to(h.address(), says("a", join_purpose, 1), {}, limit);
  h.wait_for(1);
  h.forget_peers();
  const auto fresh = connect_to(h.address(), says("a", join_purpose, 2), {}, limit);
  EXPECT_TRUE(ends(*old));
  EXPECT_THAT(problem_of([&] { connect_to(h.address(), says("a", join_purpose, 1), {}, limit); }),
              HasSubstr("another process has joined under this name"));
  h.wait_for(1);
  h.forget_peers();
  EXPECT_NO_THROW(connect_to(h.address(), says("a", join_purpose, 2), {}, limit))
      << "the newest may come back";
}

TEST(Connections, ThatSayNothingAreClosed) {
  head h({}, 512, milliseconds(200));
  EXPECT_TRUE(is_closed_by_peer(send_raw(h.address(), "")));
  EXPECT_TRUE(is_closed_by_peer(send_raw(h.address(), "hone 1\npurpose join\n")));
  h.wait_for("did not say who it is in time");
}

TEST(Connections, ThatSayAnythingElseAreClosed) {
  head h;
  for (const std::string bytes : {"GET / HTTP/1.1\r\n\r\n", "hone 2\n\n", "hone 1\n\n",
                                  "hone 1\npurpose join\nname a\nincarnation x\n\n"})
    EXPECT_TRUE(is_closed_by_peer(send_raw(h.address(), bytes))) << bytes;
  EXPECT_TRUE(is_closed_by_peer(send_raw(h.address(), "hone 1\n" + std::string(5000, 'a'))));
  h.wait_for("its first bytes are not Hone's");
}

TEST(Connections, BeyondTheMostThatWaitCloseTheOldest) {
  head h({}, 4);
  std::vector<unique_fd> silent;
  for (int i = 0; i < 6; ++i) silent.push_back(send_raw(h.address(), ""));
  EXPECT_TRUE(is_closed_by_peer(silent[0]));
  EXPECT_TRUE(is_closed_by_peer(silent[1]));
  EXPECT_NO_THROW(connect_to(h.address(), says("a"), {}, limit));
}

class SecureConnections : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new temporary_folder;
    make_authority(*folder_ / "ca");
    make_authority(*folder_ / "foreign");
    make_identity(*folder_ / "ca", "head", identity_role::head);
    make_identity(*folder_ / "ca", "gpus", identity_role::node);
    make_identity(*folder_ / "foreign", "gpus", identity_role::node);
    make_identity(*folder_ / "foreign", "head", identity_role::head);
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::filesystem::path identity(const std::string& name, const std::string& of = "ca") {
    return *folder_ / of / "identities" / name;
  }

  static temporary_folder* folder_;
};
temporary_folder* SecureConnections::folder_ = nullptr;

TEST_F(SecureConnections, NameTheCertificate) {
  head h(identity("head"));
  const auto connection = connect_to(h.address(), says("gpus-3"), identity("gpus"), limit);
  const auto peers = h.wait_for(1);
  EXPECT_EQ(peers[0].certificate, "gpus");
  EXPECT_EQ(peers[0].said.name, "gpus-3");
  EXPECT_EQ(connection->certificate_name(), "head");
}

// Connects as a program that does not look at the head's certificate and shows this one, or none.
// Returns whether the head ends the connection.
bool is_ended_for(const network_address& head, const std::filesystem::path& shown) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  if (!shown.empty()) {
    SSL_CTX_use_certificate_chain_file(context, (shown / "certificate.pem").c_str());
    SSL_CTX_use_PrivateKey_file(context, (shown / "key.pem").c_str(), SSL_FILETYPE_PEM);
  }
  SSL* const tls = SSL_new(context);
  SSL_CTX_free(context);
  SSL_set_connect_state(tls);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  channel connection(connect_socket(head, deadline), tls);
  channel_result result = connection.shake_hands();
  while (result != channel_result::done && result != channel_result::closed &&
         connection.wait(result, deadline))
    result = connection.shake_hands();
  return result == channel_result::closed || ends(connection);
}

TEST_F(SecureConnections, NeedACertificateOfTheAuthority) {
  head h(identity("head"));
  EXPECT_NE(problem_of([&] { connect_to(h.address(), says("a"), {}, limit); }), "");
  h.wait_for("it does not speak TLS");
  EXPECT_TRUE(is_ended_for(h.address(), {}));
  h.wait_for("it shows no certificate");
  EXPECT_TRUE(is_ended_for(h.address(), identity("gpus", "foreign")));
  h.wait_for("unable to get local issuer certificate");
  const auto expired =
      make_identity(*folder_ / "ca", "expired", identity_role::node, std::chrono::days(-1));
  EXPECT_TRUE(is_ended_for(h.address(), expired));
  h.wait_for("certificate has expired");
}

TEST_F(SecureConnections, AreNotMadeToAnythingButAHead) {
  head wrong_authority(identity("head", "foreign"));
  EXPECT_THAT(problem_of([&] {
                connect_to(wrong_authority.address(), says("a"), identity("gpus"), limit);
              }),
              HasSubstr("certificate is refused"));
  head a_node(identity("gpus"));
  EXPECT_THAT(problem_of([&] { connect_to(a_node.address(), says("a"), identity("gpus"), limit); }),
              HasSubstr("certificate is refused"));
}

TEST_F(SecureConnections, OfTwoNodesNeedNodesOfTheSameAuthority) {
  head passes_on(identity("gpus"));  // listens as a head does, with a node's identity
  const auto connect_as = [&](const network_address& at, const std::filesystem::path& shown) {
    return connect_to(at, says("gpus-1"), shown, limit, tls_role::connects_to_node);
  };
  const auto made = connect_as(passes_on.address(), identity("gpus"));
  EXPECT_EQ(made->certificate_name(), "gpus");
  EXPECT_NE(problem_of([&] { connect_as(passes_on.address(), identity("gpus", "foreign")); }), "");
  head foreign(identity("gpus", "foreign"));
  EXPECT_THAT(problem_of([&] { connect_as(foreign.address(), identity("gpus")); }),
              HasSubstr("certificate is refused"));
}

TEST_F(SecureConnections, EndWhenTheirIdentityIsRevoked) {
  make_identity(*folder_ / "ca", "lost", identity_role::node);
  head h(identity("head"));
  const auto stays = connect_to(h.address(), says("a"), identity("gpus"), limit);
  const auto goes = connect_to(h.address(), says("b"), identity("lost"), limit);
  h.wait_for(2);
  revoke_identity(*folder_ / "ca", "lost");
  EXPECT_TRUE(ends(*goes));
  h.wait_for("the identity lost was revoked");
  EXPECT_THAT(problem_of([&] { connect_to(h.address(), says("b"), identity("lost"), limit); }),
              HasSubstr("this identity is refused"));
  h.wait_for("certificate revoked");
  EXPECT_NO_THROW(connect_to(h.address(), says("c"), identity("gpus"), limit));
}

TEST_F(SecureConnections, OfAnotherIdentityCannotTakeAName) {
  make_identity(*folder_ / "ca", "others", identity_role::node);
  head h(identity("head"));
  const auto mine = connect_to(h.address(), says("gpus-0"), identity("gpus"), limit);
  h.wait_for(1);
  EXPECT_THAT(problem_of([&] {
                connect_to(h.address(), says("gpus-0", join_purpose, 2), identity("others"), limit);
              }),
              HasSubstr("the name belongs to the identity gpus"));
  EXPECT_NO_THROW(connect_to(h.address(), says("others-0"), identity("others"), limit));
}

TEST_F(SecureConnections, SurviveStrangers) {
  head h(identity("head"));
  const auto live = connect_to(h.address(), says("a"), identity("gpus"), limit);
  h.wait_for(1);
  std::mt19937_64 random(1);
  std::vector<unique_fd> held;
  for (int i = 0; i < 300; ++i) {
    std::string bytes(64 + random() % 512, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    unique_fd stranger = send_raw(h.address(), bytes);
    if (i % 3 == 0) held.push_back(std::move(stranger));
  }
  for (const unique_fd& stranger : held) EXPECT_TRUE(is_closed_by_peer(stranger));
  EXPECT_NO_THROW(connect_to(h.address(), says("b"), identity("gpus"), limit));
  std::size_t count = 0;
  const auto peers = h.wait_for(2);
  ASSERT_EQ(peers[0].connection->write("x", 1, count), channel_result::done);
  char byte = 0;
  ASSERT_TRUE(live->wait(channel_result::wants_read, std::chrono::steady_clock::now() + limit));
  EXPECT_EQ(live->read(&byte, 1, count), channel_result::done);
}

}  // namespace
}  // namespace hone
