#include "network/acceptor.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "network/identity.hpp"
#include "network/refusals.hpp"
#include "network/thread_priority.hpp"
#include "network/tls.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

// How often the loop looks at time limits, revocations and connections that end.
constexpr std::chrono::milliseconds tick{100};
// How long a node that joins again waits for the end of its earlier connection.
constexpr std::chrono::seconds max_succession{5};
// How long a connection whose certificate was refused is still read: closing it with unread bytes
// would reset it, and the other end would not read why.
constexpr std::chrono::milliseconds max_lingering{500};
constexpr const char* superseded = "another process has joined under this name since";

}  // namespace

class acceptor::loop {
 public:
  explicit loop(acceptor_options options) : options_(std::move(options)), refusals_(options_.log) {
    if (options_.identity.empty() && !is_loopback(options_.listen))
      throw network_error(to_string(options_.listen) +
                          ": without an identity, nodes are let in from this machine alone; name a "
                          "loopback address, or an identity (`hone identity`)");
    if (!options_.identity.empty()) tls_.emplace(options_.identity, tls_role::listens);
    listener_ = listen_on(options_.listen);
    events_.reset(epoll_create1(EPOLL_CLOEXEC));
    stop_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!events_ || !stop_)
      throw network_error(to_string(options_.listen) + ": no descriptors are left to listen with");
    expect(EPOLL_CTL_ADD, listener_.get(), EPOLLIN);
    expect(EPOLL_CTL_ADD, stop_.get(), EPOLLIN);
    thread_ = std::thread([this] { run(); });
  }
  ~loop() {
    const std::uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  const network_address& address() const { return options_.listen; }

 private:
  // A connection that was not let in yet.
  struct waiting {
    std::shared_ptr<channel> connection;
    std::string address;
    steady::time_point until;
    bool is_refused = false;          // what it sends is not looked at
    bool is_secure = false;           // the handshake is done
    std::string text{};               // of the preface, as far as it was read
    std::optional<preface> said{};    // it waits for the end of its predecessor
    std::weak_ptr<channel> before{};  // the predecessor
    bool has_no_predecessor = true;   // or not any more
  };
  struct live {
    std::weak_ptr<channel> connection;
    std::string name;  // of a node that has joined; empty for others
    std::string serial;
    std::string certificate;
  };
  // Who has a name.
  struct holder {
    std::uint64_t incarnation = 0;
    std::string certificate;
  };

  void run() {
    // Strangers must not take a core from those who were let in.
    let_messages_pass(thread_work::strangers_and_files);
    std::array<epoll_event, 64> ready{};
    for (bool runs = true; runs;) {
      const int count = epoll_wait(events_.get(), ready.data(), static_cast<int>(ready.size()),
                                   static_cast<int>(tick.count()));
      for (int i = 0; i < count; ++i) {
        const int fd = ready[static_cast<std::size_t>(i)].data.fd;
        if (fd == stop_.get()) {
          runs = false;
        } else {
          attempt(fd);
        }
      }
      if (const auto now = steady::now(); now >= next_look_) {
        next_look_ = now + tick;
        attempt(stop_.get());
      }
    }
  }

  // Serves a descriptor that is ready, or looks after all of them.
  void attempt(int fd) {
    guard(fd, [&] {
      if (fd == stop_.get()) {
        look_after(steady::now());
      } else if (fd == listener_.get()) {
        accept_some();
      } else if (waiting_.contains(fd)) {
        go_on(fd);
      }
    });
  }

  // A failure costs the connection that the work is about, and nothing else.
  template <class Work>
  void guard(int fd, const Work& work) {
    try {
      work();
    } catch (const std::exception& e) {
      if (options_.log) options_.log(std::string("a connection failed: ") + e.what());
      waiting_.erase(fd);
    }
  }

  void end_late(int fd) {
    if (waiting_.at(fd).is_refused) {
      waiting_.erase(fd);
    } else if (waiting_.at(fd).said) {
      refuse(fd, preface_answer::kind::later, "its earlier connection does not end");
    } else {
      refuse(fd, "it did not say who it is in time");
    }
  }

  void expect(int operation, int fd, std::uint32_t what) {
    epoll_event event{};
    event.events = what;
    event.data.fd = fd;
    epoll_ctl(events_.get(), operation, fd, &event);
  }

  void accept_some() {
    constexpr int at_a_time = 32;
    for (int i = 0; i < at_a_time; ++i) {
      unique_fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket) {
        // Without descriptors the listener would stay ready indefinitely.
        if (errno == EMFILE || errno == ENFILE) expect(EPOLL_CTL_MOD, listener_.get(), 0);
        return;
      }
      const int yes = 1;
      setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      if (waiting_.size() >= options_.max_waiting) close_oldest();
      const int fd = socket.get();
      waiting one{nullptr, peer_of(fd), steady::now() + options_.patience};
      one.connection = std::make_shared<channel>(std::move(socket), tls_ ? tls_->open() : nullptr);
      waiting_.insert_or_assign(fd, std::move(one));
      expect(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
  }

  void refuse(int fd, const std::string& reason) {
    refusals_.note(waiting_.at(fd).address, reason);
    waiting_.erase(fd);  // closing removes it from the events
  }
  // Refuses after having said so.
  void refuse(int fd, preface_answer::kind kind, const std::string& reason) {
    answer(*waiting_.at(fd).connection, {kind, reason});
    refuse(fd, waiting_.at(fd).said->name + ": " + reason);
  }

  void close_oldest() {
    const auto oldest = std::min_element(waiting_.begin(), waiting_.end(), [](auto& a, auto& b) {
      return a.second.until < b.second.until;
    });
    if (oldest->second.is_refused) {
      waiting_.erase(oldest);
    } else {
      refuse(oldest->first, "too many connections wait to be let in");
    }
  }

  // Refuses after a handshake that has told the other end why, and lets it read that.
  void refuse_and_linger(int fd) {
    waiting& one = waiting_.at(fd);
    refusals_.note(one.address, one.connection->handshake_problem());
    one.is_refused = true;
    one.until = steady::now() + max_lingering;
    shutdown(fd, SHUT_WR);
    expect(EPOLL_CTL_MOD, fd, EPOLLIN);
  }
  void discard(int fd) {
    std::array<char, 4096> bytes{};
    const ssize_t count = recv(fd, bytes.data(), bytes.size(), 0);
    if (count == 0 || (count < 0 && errno != EAGAIN)) waiting_.erase(fd);
  }

  // Does the work that is possible without waiting for the other end.
  void go_on(int fd) {
    waiting& one = waiting_.at(fd);
    if (one.is_refused) return discard(fd);
    if (one.said) return refuse(fd, "it ended, or spoke, before it was let in");
    if (!one.is_secure) {
      const channel_result result = one.connection->shake_hands();
      if (result == channel_result::closed) return refuse_and_linger(fd);
      if (result != channel_result::done) return expect_more(fd, result);
      one.is_secure = true;
    }
    std::array<char, max_preface> piece{};
    while (!is_whole(one.text)) {
      std::size_t count = 0;
      const channel_result result = one.connection->read(piece.data(), piece.size(), count);
      if (result == channel_result::closed)
        return refuse(fd, tls_ ? one.connection->handshake_problem() : "the connection ended");
      if (result != channel_result::done) return expect_more(fd, result);
      one.text.append(piece.data(), count);
      if (!may_begin_preface(one.text)) return refuse(fd, "its first bytes are not Hone's");
    }
    take_preface(fd);
  }

  void expect_more(int fd, channel_result wanted) {
    expect(EPOLL_CTL_MOD, fd, wanted == channel_result::wants_write ? EPOLLOUT : EPOLLIN);
  }

  void take_preface(int fd) {
    waiting& one = waiting_.at(fd);
    one.said = parse_preface(one.text);
    if (!one.said) return refuse(fd, "its first bytes are not Hone's");
    const std::string problem = options_.find_problem ? options_.find_problem(*one.said) : "";
    if (!problem.empty()) return refuse(fd, preface_answer::kind::refused, problem);
    if (one.said->purpose == join_purpose && !take_name(fd)) return;
    one.until = steady::now() + max_succession;
    if (!one.has_no_predecessor) return;
    admit(fd);
  }

  // Gives a node its name and ends earlier nodes of that name. Returns false if that is refused.
  bool take_name(int fd) {
    waiting& one = waiting_.at(fd);
    const std::string name = one.said->name;
    const std::string certificate = one.connection->certificate_name();
    const auto [newest, is_new] =
        newest_.try_emplace(name, holder{one.said->incarnation, certificate});
    if (newest->second.certificate != certificate) {
      refuse(fd, preface_answer::kind::refused,
             "the name belongs to the identity " + newest->second.certificate);
      return false;
    }
    if (superseded_.contains({name, one.said->incarnation})) {
      refuse(fd, preface_answer::kind::refused, superseded);
      return false;
    }
    if (newest->second.incarnation != one.said->incarnation)
      superseded_.insert({name, newest->second.incarnation});
    newest->second.incarnation = one.said->incarnation;
    std::vector<int> rivals;
    for (const auto& [other, rival] : waiting_) {
      if (other != fd && rival.said && rival.said->purpose == join_purpose &&
          rival.said->name == name)
        rivals.push_back(other);
    }
    for (const int rival : rivals) refuse(rival, preface_answer::kind::refused, superseded);
    for (const live& other : live_) {
      if (other.name != name) continue;
      one.before = other.connection;
      one.has_no_predecessor = false;
      if (const auto connection = other.connection.lock()) connection->shut_down();
    }
    return true;
  }

  // The answer is shorter than any socket's buffer.
  static void answer(channel& to, const preface_answer& with) {
    const std::string text = to_text(with);
    std::size_t written = 0;
    (void)to.write(text.data(), text.size(), written);
  }

  void admit(int fd) {
    // The certificate may have been revoked since the handshake.
    const std::string serial = waiting_.at(fd).connection->certificate_serial();
    if (tls_ && tls_->is_revoked(serial)) return refuse(fd, "its certificate is revoked");
    waiting one = std::move(waiting_.at(fd));
    waiting_.erase(fd);
    epoll_ctl(events_.get(), EPOLL_CTL_DEL, fd, nullptr);
    const bool joins = one.said->purpose == join_purpose;
    const std::string certificate = one.connection->certificate_name();
    live_.push_back({one.connection, joins ? one.said->name : "", serial, certificate});
    answer(*one.connection, {});
    options_.admit({one.connection, *one.said, certificate});
  }

  void look_after(steady::time_point now) {
    expect(EPOLL_CTL_MOD, listener_.get(), EPOLLIN);
    std::vector<int> late;
    std::vector<int> next;
    for (auto& [fd, one] : waiting_) {
      if (one.said && one.has_no_predecessor) {
        next.push_back(fd);
      } else if (one.until < now) {
        late.push_back(fd);
      } else if (one.said && one.before.expired()) {
        one.has_no_predecessor = true;  // CAF cleans up behind it until the next look
      }
    }
    for (const int fd : late) guard(fd, [this, fd] { end_late(fd); });
    for (const int fd : next) guard(fd, [this, fd] { admit(fd); });
    std::erase_if(live_, [](const live& one) { return one.connection.expired(); });
    read_revocations();
    refusals_.report(now);
  }

  void read_revocations() {
    if (!tls_) return;
    try {
      if (!tls_->read_revocations()) return;
      revocation_problem_.clear();
    } catch (const network_error& e) {  // said once, and tried again at the next look
      if (options_.log && revocation_problem_ != e.what()) options_.log(e.what());
      revocation_problem_ = e.what();
      return;
    }
    for (const live& one : live_) {
      const auto connection = one.connection.lock();
      if (connection == nullptr || !tls_->is_revoked(one.serial)) continue;
      if (options_.log)
        options_.log("the identity " + one.certificate + " was revoked; its connection is ended");
      connection->shut_down();
    }
  }

  acceptor_options options_;
  refusals refusals_;
  std::optional<tls_side> tls_;
  unique_fd listener_;
  unique_fd events_;
  unique_fd stop_;
  std::map<int, waiting> waiting_;  // by descriptor
  std::vector<live> live_;
  std::string revocation_problem_;        // of the last look; empty: there was none
  std::map<std::string, holder> newest_;  // by name of a node
  std::set<std::pair<std::string, std::uint64_t>> superseded_;
  steady::time_point next_look_{};
  std::thread thread_;
};

acceptor::acceptor(acceptor_options options) : loop_(std::make_unique<loop>(std::move(options))) {}
acceptor::~acceptor() = default;
const network_address& acceptor::address() const { return loop_->address(); }

}  // namespace hone
