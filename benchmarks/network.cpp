// Measures a link between two processes that the acceptor has let in, quiet and while strangers
// connect to the same port:
//   network_benchmark [plain]
//   network_benchmark many       1,000 nodes join, and 250 are killed at once
//   network_benchmark files      four nodes copy a checkpoint of 270 MB while messages pass
//   network_benchmark passed-on  the same with sixteen nodes, which pass it on to each other
// A head in a separate process answers messages of 2 KB with the same text. With `plain` there is
// no TLS. Prints times of messages there and back, and the head's memory. All on loopback
// addresses.

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/processes.hpp"
#include "launch/copy_relay.hpp"
#include "launch/system.hpp"
#include "network/acceptor.hpp"
#include "network/basp/basp_link.hpp"
#include "network/connecting.hpp"
#include "network/files/file_server.hpp"
#include "network/files/folder_copy.hpp"
#include "network/identity.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;
using milliseconds = std::chrono::milliseconds;

constexpr std::size_t message_bytes = 2048;
const preface says = {join_purpose, "node", 1, {}};

// Serves until it is killed; writes its port to the pipe. `files` is the folder that it offers.
[[noreturn]] void be_head(const std::filesystem::path& identity, const std::filesystem::path& files,
                          int to) {
  caf::actor_system& system = start_actor_system();
  const caf::actor echo = system.spawn(
      []() -> caf::behavior { return {[](const std::string& text) { return text; }}; });
  acceptor_options options;
  options.listen = parse_address("127.0.0.1:0", true);
  options.identity = identity;
  std::shared_ptr<const offered_folder> offered;
  file_server server([&](const std::string&) {
    if (!offered)
      offered = std::make_shared<offered_folder>(
          open_offered_folder(files, [](const std::string&) { return true; }));
    return offered;
  });
  server.spread_over_nodes();
  options.admit = [link = basp_link(system), echo, &server](admitted_peer peer) {
    if (peer.said.purpose == files_purpose) {
      server.serve(std::move(peer.connection));
    } else {
      link.serve(std::move(peer.connection), echo);
    }
  };
  options.log = [](const std::string& line) { std::cout << "  head: " << line << std::endl; };
  const acceptor door(options);
  const std::uint16_t port = door.address().port;
  (void)!write(to, &port, sizeof port);
  for (;;) pause();
}

double memory_mb(pid_t process) { return resident_bytes(process) / (1 << 20); }

// Sends one message after the other until `done`, and prints what the replies took.
void measure(caf::scoped_actor& self, const caf::actor& echo, const std::string& what, pid_t head,
             const std::function<bool()>& done) {
  const std::string text(message_bytes, 'x');
  std::vector<double> ms;
  std::uint64_t lost = 0;
  while (!done() || ms.size() < 100) {
    const auto begin = steady::now();
    self->request(echo, std::chrono::seconds(30), text)
        .receive([&](const std::string&) {}, [&](const caf::error&) { ++lost; });
    ms.push_back(std::chrono::duration<double, std::milli>(steady::now() - begin).count());
  }
  std::sort(ms.begin(), ms.end());
  std::printf(
      "%-44s %6zu messages  p50 %6.3f  p99 %6.3f  worst %7.3f ms  %llu lost  head %.0f MB\n",
      what.c_str(), ms.size(), ms[ms.size() / 2], ms[ms.size() * 99 / 100], ms.back(),
      static_cast<unsigned long long>(lost), memory_mb(head));
}

// Connects without saying anything. While the head's queue of connections is full, TCP tries again
// after one, three and seven seconds.
std::unique_ptr<channel> connect_stranger(const network_address& to) {
  return std::make_unique<channel>(connect_socket(to, steady::now() + std::chrono::seconds(15)),
                                   nullptr);
}

// Connects and sends random bytes, one connection after the other.
void send_random_bytes(const network_address& to, int connections) {
  // Strangers would be on other machines: here they must not take the head's and node's cores.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
  std::mt19937_64 random(1);
  for (int i = 0; i < connections; ++i) {
    std::string bytes(64 + random() % 1024, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const auto stranger = connect_stranger(to);
    std::size_t written = 0;
    (void)stranger->write(bytes.data(), bytes.size(), written);
  }
}

void stay_silent(const network_address& to, std::vector<std::unique_ptr<channel>>& held) {
  constexpr int connections = 1000;
  for (int i = 0; i < connections; ++i) held.push_back(connect_stranger(to));
}

void show_foreign_certificates(const network_address& to, const std::filesystem::path& identity) {
  const auto end = steady::now() + std::chrono::seconds(5);
  int refused = 0;
  while (steady::now() < end) {
    try {
      connect_to(to, says, identity, milliseconds(5000));
    } catch (const network_error&) {
      ++refused;
    }
  }
  std::cout << "  " << refused / 5 << " refused handshakes a second\n";
}

// ---- many nodes

constexpr int processes = 4;
constexpr int nodes_each = 250;

// A quarter of the nodes: joins, says so with a byte, then measures until it is killed, and writes
// the times of all messages of each second.
[[noreturn]] void be_nodes(int number, const network_address& head,
                           const std::filesystem::path& identity, int to) {
  constexpr int threads = 8;
  struct node {
    caf::actor_system* system = nullptr;
    caf::actor echo;
  };
  std::vector<node> nodes(nodes_each);
  std::vector<std::thread> joining;
  for (int t = 0; t < threads; ++t) {
    joining.emplace_back([&, t] {
      for (int i = t; i < nodes_each; i += threads) {
        auto* settings = new actor_configuration(signs_of_life{});
        settings->set("scheduler.policy", caf::atom("sharing"));
        settings->set("scheduler.max-threads", std::size_t{1});
        node& one = nodes[static_cast<std::size_t>(i)];
        one.system = new caf::actor_system(*settings);
        preface mine = says;
        mine.name = "node " + std::to_string(number) + " " + std::to_string(i);
        one.echo =
            basp_link(*one.system)
                .open(connect_to(head, mine, identity, milliseconds(30000)), milliseconds(30000));
      }
    });
  }
  for (std::thread& one : joining) one.join();
  const double joined = -1;
  (void)!write(to, &joined, sizeof joined);
  const std::string text(message_bytes, 'x');
  for (;;) {
    const auto end = steady::now() + std::chrono::seconds(1);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      caf::scoped_actor self(*nodes[i].system);
      const auto begin = steady::now();
      self->request(nodes[i].echo, std::chrono::seconds(20), text)
          .receive([](const std::string&) {}, [](const caf::error&) { std::cout << "lost\n"; });
      const double ms = std::chrono::duration<double, std::milli>(steady::now() - begin).count();
      (void)!write(to, &ms, sizeof ms);
      std::this_thread::sleep_until(end - (nodes.size() - i) * milliseconds(1000) / nodes.size());
    }
  }
}

// Prints the times that arrive during `time`.
void print_times(int from, const char* what, std::chrono::seconds time) {
  std::vector<double> ms;
  const auto end = steady::now() + time;
  for (double one = 0; steady::now() < end && read(from, &one, sizeof one) == sizeof one;) {
    if (one >= 0) ms.push_back(one);
  }
  std::sort(ms.begin(), ms.end());
  std::printf("%-34s %zu messages  p50 %.2f  p99 %.2f  worst %.2f ms\n", what, ms.size(),
              ms[ms.size() / 2], ms[ms.size() * 99 / 100], ms.back());
}

void join_many(const network_address& at, const std::filesystem::path& identity, pid_t head) {
  int ends[2];
  if (pipe(ends) != 0) return;
  std::printf("head alone: %.0f MB\n", memory_mb(head));
  const auto begin = steady::now();
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(fork());
    if (children.back() == 0) be_nodes(i, at, identity, ends[1]);
  }
  int joined = 0;
  for (double one = 0; joined < processes && read(ends[0], &one, sizeof one) == sizeof one;)
    joined += one < 0 ? 1 : 0;
  std::printf("%d nodes have joined in %.1f s; head %.0f MB\n", processes * nodes_each,
              std::chrono::duration<double>(steady::now() - begin).count(), memory_mb(head));
  const double cpu = cpu_seconds(head);
  print_times(ends[0], "a message a second from each", std::chrono::seconds(8));
  std::printf("head: %.0f %% of a core\n", (cpu_seconds(head) - cpu) / 8 * 100);
  kill(children[0], SIGKILL);
  print_times(ends[0], "while 250 are killed at once", std::chrono::seconds(4));
  std::printf("head %.0f MB\n", memory_mb(head));
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

constexpr std::size_t checkpoint_bytes = 270'000'000;
constexpr int few_nodes = 4;
constexpr int many_nodes = 16;

void write_checkpoint(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> bytes(checkpoint_bytes / sizeof(std::uint64_t));
  for (std::uint64_t& eight : bytes) eight = random();
  std::ofstream(folder / "model.safetensors", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), checkpoint_bytes);
}

// Settings that all copying processes share.
struct copy_totals {
  std::atomic<int> complete = 0;
  std::atomic<std::uint64_t> bytes_of_nodes = 0;
};

// Copies the checkpoint as a node does, which passes it on until all `nodes` have it.
void be_copying_node(int number, int nodes, const network_address& at,
                     const std::filesystem::path& identity, const std::filesystem::path& cache,
                     copy_totals& totals) {
  // As on a node, whose thread for copies lets messages pass.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
  const copy_relay relay({to_string(at), identity}, "node " + std::to_string(number), "",
                         [](const std::string& line) { std::cout << line << std::endl; });
  folder_copy copy(relay.sources(), "checkpoint", cache);
  while (!copy.proceed()) {
  }
  totals.bytes_of_nodes += copy.bytes_of_nodes();
  ++totals.complete;
  const auto end = steady::now() + std::chrono::seconds(60);
  while (totals.complete < nodes && steady::now() < end)
    std::this_thread::sleep_for(milliseconds(10));
}

// Copies the checkpoint in separate processes, and returns when all have it.
void copy_in_processes(int nodes, const network_address& at, const std::filesystem::path& identity,
                       const std::filesystem::path& caches) {
  void* const memory =
      mmap(nullptr, sizeof(copy_totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& totals = *new (memory) copy_totals;
  const auto begin = steady::now();
  std::vector<pid_t> children;
  for (int i = 0; i < nodes; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    be_copying_node(i, nodes, at, identity, caches / std::to_string(i), totals);
    _exit(0);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed += status == 0 ? 0 : 1;
  }
  std::printf("270 MB to %d nodes: %.2f s, %d failed, %.1f copies sent by the head\n", nodes,
              std::chrono::duration<double>(steady::now() - begin).count(), failed,
              nodes - static_cast<double>(totals.bytes_of_nodes) / checkpoint_bytes);
  munmap(memory, sizeof(copy_totals));
}

// The identities of a run, and of a stranger.
struct identities {
  std::filesystem::path head, node, foreign;

  explicit identities(const std::filesystem::path& folder) {
    make_authority(folder / "ca");
    make_authority(folder / "foreign");
    head = make_identity(folder / "ca", "head", identity_role::head);
    node = make_identity(folder / "ca", "node", identity_role::node);
    foreign = make_identity(folder / "foreign", "node", identity_role::node);
  }
};

// Measures while other work runs. Receives the measurement's name and the other work.
using loaded_function = std::function<void(const std::string&, const std::function<void()>&)>;

void measure_during_copies(int nodes, const network_address& at, const identities& of,
                           const std::filesystem::path& folder, const loaded_function& under_load) {
  for (const char* time : {"the head hashes it first", "again", "once more"}) {
    under_load(std::to_string(nodes) + " copies at once, " + time,
               [&] { copy_in_processes(nodes, at, of.node, folder / time); });
    std::filesystem::remove_all(folder / time);
  }
}

int run(const std::string& mode) {
  const bool is_plain = mode == "plain";
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("hone-network-" + std::to_string(getpid()));
  const identities of(folder);
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const bool has_files = mode == "files" || mode == "passed-on";
  if (has_files) write_checkpoint(folder / "checkpoint");
  const pid_t head = fork();
  if (head == 0)
    be_head(is_plain ? std::filesystem::path() : of.head, folder / "checkpoint", ends[1]);
  network_address at{"127.0.0.1", 0};
  if (read(ends[0], &at.port, sizeof at.port) != sizeof at.port) return 1;

  const auto end = [&] {
    kill(head, SIGKILL);
    waitpid(head, nullptr, 0);
    std::filesystem::remove_all(folder);
    return 0;
  };
  if (mode == "many") {
    join_many(at, of.node, head);
    return end();
  }
  caf::actor_system& system = start_actor_system();
  const caf::actor echo = basp_link(system).open(
      connect_to(at, says, is_plain ? "" : of.node, milliseconds(5000)), milliseconds(5000));
  caf::scoped_actor self(system);
  const auto under_load = [&](const std::string& what, const std::function<void()>& work) {
    std::atomic<bool> is_done = false;
    std::thread other([&] {
      work();
      is_done = true;
    });
    measure(self, echo, what, head, [&] { return is_done.load(); });
    other.join();
  };
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::seconds(3)); };
  under_load("quiet", wait);
  if (has_files) {
    measure_during_copies(mode == "files" ? few_nodes : many_nodes, at, of, folder, under_load);
  } else {
    under_load("10,000 connections of random bytes", [&] { send_random_bytes(at, 10000); });
    std::vector<std::unique_ptr<channel>> held;
    under_load("1,000 connections that say nothing", [&] {
      stay_silent(at, held);
      wait();
    });
    held.clear();
    under_load("handshakes with a foreign certificate",
               [&] { show_foreign_certificates(at, of.foreign); });
    under_load("quiet again", wait);
  }
  return end();
}

}  // namespace
}  // namespace hone

int main(int count, char** arguments) {
  const int code = hone::run(count > 1 ? arguments[1] : "");
  std::cout.flush();
  std::fflush(stdout);
  _exit(code);  // the actor system is never destroyed
}
