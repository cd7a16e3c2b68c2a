#include "network/http/http_server.hpp"

#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "network/http/url_decoding.hpp"
#include "network/identity.hpp"

namespace hone::http_parts {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using any_protocol = asio::generic::stream_protocol;  // TCP, or Unix sockets
using any_socket = asio::basic_stream_socket<any_protocol>;
using plain_stream = beast::basic_stream<any_protocol>;
using tls_stream = beast::ssl_stream<plain_stream>;

constexpr std::uint32_t max_header = 16U << 10U;
constexpr std::string_view bearer = "Bearer ";

// The open connections, in the order in which they last became idle.
class connection_list {
 public:
  // `close` may be called on any thread.
  struct entry {
    std::function<void()> close;
    bool is_idle = true;      // no request of it is being read or answered
    bool is_closing = false;  // to make room
  };
  using place = std::list<entry>::iterator;

  place add(std::function<void()> close) {
    const std::lock_guard hold(lock_);
    return open_.insert(open_.end(), {std::move(close)});
  }
  void remove(place at) {
    const std::lock_guard hold(lock_);
    closing_ -= at->is_closing ? 1 : 0;
    open_.erase(at);
  }
  void set_idle(place at, bool is_idle) {
    const std::lock_guard hold(lock_);
    at->is_idle = is_idle;
    if (is_idle) open_.splice(open_.end(), open_, at);
  }
  // Makes room for one more if there are `limit`. Returns false if all of them are busy.
  bool make_room(std::size_t limit) {
    const std::lock_guard hold(lock_);
    if (open_.size() - closing_ < limit) return true;
    const auto oldest = std::find_if(open_.begin(), open_.end(), [](const entry& one) {
      return one.is_idle && !one.is_closing;
    });
    if (oldest == open_.end()) return false;
    oldest->is_closing = true;
    ++closing_;
    oldest->close();
    return true;
  }
  void close_all() {
    const std::lock_guard hold(lock_);
    for (const entry& one : open_) one.close();
  }

 private:
  std::mutex lock_;
  std::list<entry> open_;
  std::size_t closing_ = 0;
};

any_protocol protocol_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  return {bound.ss_family, 0};
}

std::string in_small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

http_request to_request(http::request<http::string_body> message) {
  http_request request;
  request.method = std::string(message.method_string());
  const auto target = message.target();
  split_target({target.data(), target.size()}, request.path, request.query);
  const auto field = [&message](http::field name) {
    const auto value = message[name];
    return std::string(value.data(), value.size());
  };
  const std::string given = field(http::field::authorization);
  if (given.starts_with(bearer)) request.token = given.substr(bearer.size());
  request.host = field(http::field::host);
  const std::string type = field(http::field::content_type);
  request.content_type = in_small_letters(type.substr(0, type.find_first_of("; ")));
  for (const auto& one : message)
    request.fields[in_small_letters({one.name_string().data(), one.name_string().size()})] =
        std::string(one.value().data(), one.value().size());
  request.body = std::move(message.body());
  return request;
}

struct state : std::enable_shared_from_this<state> {
  http_server::options chosen;
  http_server::handler handle;
  http_server::opener open_conversation;
  network_address address;
  asio::io_context context;
  asio::ssl::context tls{asio::ssl::context::tls_server};
  asio::basic_socket_acceptor<any_protocol> acceptor{context};
  connection_list connections;
  std::vector<std::thread> threads;

  void open();
  void accept();
};

// A connection that has become a WebSocket.
template <class Stream>
class web_socket : public std::enable_shared_from_this<web_socket<Stream>> {
 public:
  web_socket(Stream stream, std::shared_ptr<state> server, http_server::conversation talk)
      : socket_(std::move(stream)), server_(std::move(server)), talk_(std::move(talk)) {}
  ~web_socket() { server_->connections.remove(place_); }
  web_socket(const web_socket&) = delete;
  web_socket& operator=(const web_socket&) = delete;

  void start(http::request<http::string_body> request) {
    place_ = server_->connections.add(
        [weak = this->weak_from_this(), executor = socket_.get_executor()] {
          asio::post(executor, [weak] {
            if (const auto self = weak.lock()) beast::get_lowest_layer(self->socket_).close();
          });
        });
    server_->connections.set_idle(place_, false);
    request_ = std::move(request);
    beast::get_lowest_layer(socket_).expires_never();
    socket_.set_option(beast::websocket::stream_base::timeout::suggested(beast::role_type::server));
    socket_.read_message_max(server_->chosen.max_body);
    socket_.async_accept(request_, [self = this->shared_from_this()](beast::error_code error) {
      if (!error) self->read();
    });
  }

 private:
  void read() {
    socket_.async_read(
        buffer_, [self = this->shared_from_this()](beast::error_code error, std::size_t) {
          if (error) return;
          std::string message = beast::buffers_to_string(self->buffer_.data());
          self->buffer_.consume(self->buffer_.size());
          const auto was_answered = std::make_shared<std::atomic_flag>();
          self->talk_(std::move(message), [self, was_answered](std::string answer) {
            if (was_answered->test_and_set()) return;
            asio::post(self->socket_.get_executor(), [self, answer = std::move(answer)]() mutable {
              self->write(std::move(answer));
            });
          });
        });
  }

  void write(std::string answer) {
    if (answer.empty())
      return socket_.async_close(beast::websocket::close_code::normal,
                                 [self = this->shared_from_this()](beast::error_code) {});
    answer_ = std::move(answer);
    socket_.text(true);
    socket_.async_write(asio::buffer(answer_),
                        [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                          if (!error) self->read();
                        });
  }

  beast::websocket::stream<Stream> socket_;
  std::shared_ptr<state> server_;
  http_server::conversation talk_;
  connection_list::place place_;
  http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  std::string answer_;
};

// One connection. It lives as long as one of its operations is under way or a request waits for
// its reply.
template <class Stream>
class connection : public std::enable_shared_from_this<connection<Stream>> {
 public:
  connection(Stream stream, std::shared_ptr<state> server)
      : stream_(std::move(stream)), server_(std::move(server)) {}
  ~connection() { server_->connections.remove(place_); }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  void start() {
    place_ = server_->connections.add(
        [weak = this->weak_from_this(), executor = stream_.get_executor()] {
          asio::post(executor, [weak] {
            if (const auto self = weak.lock()) beast::get_lowest_layer(self->stream_).close();
          });
        });
    if constexpr (std::is_same_v<Stream, tls_stream>) {
      beast::get_lowest_layer(stream_).expires_after(server_->chosen.send_limit);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](beast::error_code error) {
                                if (!error) self->read();
                              });
    } else {
      asio::dispatch(stream_.get_executor(), [self = this->shared_from_this()] { self->read(); });
    }
  }

 private:
  void read() {
    parser_.emplace();
    parser_->body_limit(server_->chosen.max_body);
    parser_->header_limit(max_header);
    beast::get_lowest_layer(stream_).expires_after(server_->chosen.idle_limit);
    server_->connections.set_idle(place_, true);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](beast::error_code error, std::size_t) {
          self->server_->connections.set_idle(self->place_, false);
          if (error) return self->refuse(error);
          self->read_body();
        });
  }

  void read_body() {
    beast::get_lowest_layer(stream_).expires_after(server_->chosen.send_limit);
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                       if (error) return self->refuse(error);
                       self->handle();
                     });
  }

  void handle() {
    beast::get_lowest_layer(stream_).expires_never();
    if (server_->open_conversation && beast::websocket::is_upgrade(parser_->get())) {
      if (auto talk = server_->open_conversation(to_request(parser_->get()))) {
        std::make_shared<web_socket<Stream>>(std::move(stream_), server_, std::move(talk))
            ->start(parser_->release());
        return;
      }
    }
    keeps_alive_ = parser_->get().keep_alive();
    is_head_ = parser_->get().method() == http::verb::head;
    const auto was_answered = std::make_shared<std::atomic_flag>();
    server_->handle(to_request(parser_->release()), [self = this->shared_from_this(),
                                                     was_answered](http_response response) {
      if (was_answered->test_and_set()) return;
      asio::post(self->stream_.get_executor(), [self, response = std::move(response)]() mutable {
        self->write(std::move(response));
      });
    });
  }

  // Sends the reason why a request cannot be read, if the client can still receive it.
  void refuse(beast::error_code error) {
    keeps_alive_ = false;
    if (error == http::error::body_limit)
      return write({413, R"({"error":{"code":"too_large","message":"the request is too large"}})"});
    if (error == http::error::header_limit)
      return write({431, R"({"error":{"code":"too_large","message":"the header is too large"}})"});
    if (error != http::error::end_of_stream &&
        error.category() == http::make_error_code(http::error::bad_method).category())
      write({400, R"({"error":{"code":"bad_request","message":"this is not HTTP/1.1"}})"});
  }

  void write(http_response response) {
    message_ = {};
    message_.version(11);
    message_.result(response.status);
    message_.set(http::field::content_type, "application/json");
    for (const auto& [name, value] : response.headers) message_.set(name, value);
    message_.keep_alive(keeps_alive_);
    message_.body() = std::move(response.body);
    message_.prepare_payload();
    if (is_head_) message_.body().clear();  // the length stays that of the body
    beast::get_lowest_layer(stream_).expires_after(server_->chosen.send_limit);
    http::async_write(stream_, message_,
                      [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                        if (error) return;
                        if (self->keeps_alive_) return self->read();
                        beast::error_code ignored;
                        beast::get_lowest_layer(self->stream_)
                            .socket()
                            .shutdown(any_socket::shutdown_send, ignored);
                      });
  }

  Stream stream_;
  std::shared_ptr<state> server_;
  connection_list::place place_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> message_;
  bool keeps_alive_ = true;
  bool is_head_ = false;
};

void state::open() {
  try {
    if (!chosen.certificate.empty()) {
      tls.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                      asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                      asio::ssl::context::no_tlsv1_1);
      tls.use_certificate_chain_file(chosen.certificate.string());
      tls.use_private_key_file(chosen.key.string(), asio::ssl::context::pem);
    }
    address = chosen.listen;
    unique_fd socket = chosen.socket.empty() ? listen_on(address) : listen_on(chosen.socket);
    acceptor.assign(protocol_of(socket.get()), socket.release());
  } catch (const boost::system::system_error& e) {
    throw network_error("cannot serve HTTP on " + to_string(chosen.listen) + ": " +
                        e.code().message());
  }
}

void state::accept() {
  acceptor.async_accept(asio::make_strand(context),
                        [this](beast::error_code error, any_socket socket) {
                          if (!acceptor.is_open()) return;
                          if (!error && connections.make_room(chosen.max_connections)) {
                            if (chosen.socket.empty())
                              socket.set_option(tcp::no_delay(true), error);
                            if (chosen.certificate.empty()) {
                              std::make_shared<connection<plain_stream>>(
                                  plain_stream(std::move(socket)), shared_from_this())
                                  ->start();
                            } else {
                              std::make_shared<connection<tls_stream>>(
                                  tls_stream(std::move(socket), tls), shared_from_this())
                                  ->start();
                            }
                          }
                          accept();
                        });
}

}  // namespace hone::http_parts

namespace hone {

http_server::http_server(options chosen, handler handle, opener open)
    : state_(std::make_shared<http_parts::state>()) {
  state_->chosen = std::move(chosen);
  state_->handle = std::move(handle);
  state_->open_conversation = std::move(open);
  state_->open();
  state_->accept();
  for (unsigned i = 0; i < state_->chosen.threads; ++i)
    state_->threads.emplace_back([kept = state_] { kept->context.run(); });
}

http_server::~http_server() {
  boost::asio::post(state_->context, [kept = state_] { kept->acceptor.close(); });
  std::error_code ignored;
  if (!state_->chosen.socket.empty()) std::filesystem::remove(state_->chosen.socket, ignored);
  state_->connections.close_all();
  for (std::thread& one : state_->threads) one.join();
}

const network_address& http_server::address() const { return state_->address; }

}  // namespace hone
