#include "network/http/http_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <thread>

#include "network/http/url_decoding.hpp"
#include "network/identity.hpp"
#include "tests/support/http_exchange.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing_support::fetch;
using testing_support::raw_connection;

http_server::options any_port() {
  http_server::options chosen;
  chosen.listen = {"127.0.0.1", 0};
  return chosen;
}

// Answers with what was asked.
void echo(const http_request& request, const http_server::reply& reply) {
  reply({200, request.method + " " + request.path + " " + request.body});
}

constexpr const char* get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(HttpServer, AnswersSeveralRequestsOfOneConnection) {
  const http_server server(any_port(), echo);
  raw_connection connection(server.address().port);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(connection.send("POST /a%20b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"));
    EXPECT_THAT(connection.receive(), HasSubstr("POST /a b hi"));
  }
}

TEST(HttpServer, PassesTheQueryTheTokenAndTheTypeOn) {
  const http_server server(any_port(), [](const http_request& r, const auto& reply) {
    reply({200, r.query.at("wait_s") + "|" + r.token + "|" + r.content_type + "|" + r.host});
  });
  const auto answer = fetch(server.address().port, "POST", "/x?wait_s=3&b", "{}", "secret");
  EXPECT_EQ(answer.body,
            "3|secret|application/json|127.0.0.1:" + std::to_string(server.address().port));
}

TEST(HttpServer, AnswersFromAnotherThreadAndOnlyOnce) {
  std::vector<std::thread> threads;
  {
    const http_server server(any_port(), [&](const http_request&, const auto& reply) {
      threads.emplace_back([reply] {
        reply({202, "first"});
        reply({500, "second"});
      });
    });
    const auto answer = fetch(server.address().port, "GET", "/");
    EXPECT_EQ(answer.status, 202);
    EXPECT_EQ(answer.body, "first");
  }
  for (std::thread& one : threads) one.join();
}

TEST(HttpServer, EndsWhileRequestsWaitForTheirAnswer) {
  http_server::reply kept;
  {
    const http_server server(any_port(),
                             [&](const http_request&, const auto& reply) { kept = reply; });
    raw_connection connection(server.address().port);
    ASSERT_TRUE(connection.send(get));
    while (!kept) std::this_thread::yield();
  }
  kept({200, "late"});  // nobody hears it
}

TEST(HttpServer, RefusesWhatIsTooLargeOrNoHttp) {
  auto chosen = any_port();
  chosen.max_body = 1000;
  const http_server server(chosen, echo);
  const std::uint16_t port = server.address().port;
  EXPECT_EQ(fetch(port, "POST", "/", std::string(1001, 'x')).status, 413);
  EXPECT_EQ(fetch(port, "POST", "/", std::string(1000, 'x')).status, 200);
  EXPECT_EQ(fetch(port, "GET", "/", "", "", "X: " + std::string(20000, 'x') + "\r\n").status, 431);
  raw_connection nonsense(port);
  ASSERT_TRUE(nonsense.send("\x16\x03\x01 this is no HTTP\r\n\r\n"));
  EXPECT_THAT(nonsense.receive(), HasSubstr("400"));
  EXPECT_EQ(fetch(port, "GET", "/").status, 200);
}

TEST(HttpServer, CutsOffThoseWhoAreSlow) {
  auto chosen = any_port();
  chosen.idle_limit = std::chrono::seconds(1);
  chosen.send_limit = std::chrono::seconds(1);
  const http_server server(chosen, echo);
  raw_connection silent(server.address().port);
  raw_connection slow_head(server.address().port);
  ASSERT_TRUE(slow_head.send("GET / HT"));
  raw_connection slow_body(server.address().port);
  ASSERT_TRUE(slow_body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc"));
  const auto begin = std::chrono::steady_clock::now();
  for (raw_connection* one : {&silent, &slow_head, &slow_body}) EXPECT_EQ(one->receive(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(HttpServer, MakesRoomByClosingTheConnectionThatWasIdleLongest) {
  auto chosen = any_port();
  chosen.max_connections = 8;
  const http_server server(chosen, echo);
  raw_connection active(server.address().port);
  ASSERT_TRUE(active.send(get));
  EXPECT_THAT(active.receive(), HasSubstr("200"));
  std::vector<std::unique_ptr<raw_connection>> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(std::make_unique<raw_connection>(server.address().port));
    ASSERT_TRUE(strangers.back()->send(get));
    // An answer shows that the server has accepted the connection: a backlog of eight that are
    // accepted at once would make `active` the oldest.
    EXPECT_THAT(strangers.back()->receive(), HasSubstr("200")) << i;
    if (i % 2 != 0) continue;
    ASSERT_TRUE(active.send(get));  // so that it is never the oldest
    EXPECT_THAT(active.receive(), HasSubstr("200")) << i;
  }
  EXPECT_EQ(strangers.front()->receive(), "");
  EXPECT_EQ(fetch(server.address().port, "GET", "/").status, 200);
}

// Asks over TLS, and trusts the authority alone. Returns the answer, empty if there is no
// connection.
std::string ask_over_tls(std::uint16_t port, const std::filesystem::path& authority) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_load_verify_file(context.get(), (authority / "ca.pem").c_str());
  const unique_fd socket = connect_socket(
      {"127.0.0.1", port}, std::chrono::steady_clock::now() + std::chrono::seconds(10));
  fcntl(socket.get(), F_SETFL, 0);
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls(SSL_new(context.get()), SSL_free);
  SSL_set1_host(tls.get(), head_name);
  SSL_set_fd(tls.get(), socket.get());
  if (SSL_connect(tls.get()) != 1) return {};
  const std::string request = "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  SSL_write(tls.get(), request.data(), static_cast<int>(request.size()));
  std::string answer;
  std::array<char, 4096> part{};
  for (int count = 0; (count = SSL_read(tls.get(), part.data(), part.size())) > 0;)
    answer.append(part.data(), static_cast<std::size_t>(count));
  return answer;
}

TEST(HttpServer, ServesOverTlsAndDropsWhatIsNone) {
  const testing_support::temporary_folder folder;
  for (const char* name : {"mine", "other"}) make_authority(folder / name);
  const auto identity = make_identity(folder / "mine", "head", identity_role::head);
  auto chosen = any_port();
  chosen.certificate = identity / "certificate.pem";
  chosen.key = identity / "key.pem";
  const http_server server(chosen, echo);
  const std::uint16_t port = server.address().port;
  EXPECT_THAT(ask_over_tls(port, folder / "mine"), HasSubstr("GET /a"));
  EXPECT_EQ(ask_over_tls(port, folder / "other"), "");
  raw_connection plain(port);
  ASSERT_TRUE(plain.send(get));
  EXPECT_THAT(plain.receive(), testing::Not(HasSubstr("HTTP/1.1 200")));
  EXPECT_THAT(ask_over_tls(port, folder / "mine"), HasSubstr("GET /a"));
  chosen.key = folder / "mine" / "ca.pem";
  EXPECT_THROW(http_server(chosen, echo), network_error);
}

TEST(HttpServer, SaysWhereItCannotListen) {
  const http_server first(any_port(), echo);
  auto chosen = any_port();
  chosen.listen.port = first.address().port;
  EXPECT_THROW(http_server(chosen, echo), std::runtime_error);
}

TEST(UrlDecoding, LeavesWhatIsNoEscape) {
  EXPECT_EQ(decode_url("a%20b%2"), "a b%2");
  EXPECT_EQ(decode_url("%zz%41+"), "%zzA+");
}

}  // namespace
}  // namespace hone
