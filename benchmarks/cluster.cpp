// Measures a ring of many nodes: what a run judges whose devices are all on joined nodes, and what
// happens when a quarter of them are killed at once.
//   cluster_benchmark [NODES] [SECONDS] [HEAD_CORES]
// The head is `hone run configs/ring.toml` without devices. The nodes (1,000 by default, of one
// simulated device each) are actor systems of four processes, which join over TLS on loopback
// addresses. With HEAD_CORES the head has so many processor cores and the nodes have the others;
// by default they share all. Prints variants a second, what head and nodes use of the processor,
// and times of messages there and back from nodes that live on. Checks in the end that nothing was
// lost.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "actors/telemetry.hpp"
#include "benchmarks/hone_run.hpp"
#include "benchmarks/processes.hpp"
#include "evaluation/backends/cores.hpp"
#include "evaluation/devices.hpp"
#include "launch/files.hpp"
#include "launch/joining.hpp"
#include "network/identity.hpp"

namespace hone::benchmark {
namespace {

namespace fs = std::filesystem;
using steady = std::chrono::steady_clock;

constexpr int processes = 4;
// Time of a device for a variant: a thousand devices judge 20,000 variants a second.
constexpr std::int64_t device_us = 50'000;

// ---- nodes

struct ring_node {
  caf::actor_system* system = nullptr;
  joined_run joined;
};

// Joins, and tries again for two minutes, as `hone node` does. Throws network_error.
joined_run join(caf::actor_system& system, const join_options& joining) {
  const auto end = steady::now() + std::chrono::minutes(2);
  while (true) {
    try {
      return join_run(system, joining, std::chrono::seconds(30), nullptr,
                      [] { return fs::path(); });
    } catch (const connection_failed& e) {
      if (steady::now() > end) throw;
      std::cout << e.what() << "; tries again\n" << std::flush;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

ring_node start_node(const head_address& head, const std::string& name) {
  ring_node made;
  auto* settings = new actor_configuration(signs_of_life{});
  settings->set("scheduler.policy", caf::atom("sharing"));
  settings->set("scheduler.max-threads", std::size_t{1});
  made.system = new caf::actor_system(*settings);
  node_options own;
  own.name = name;
  own.compilers = 0;
  simulated_device_options slow;
  slow.verify_us = device_us / 4;
  slow.measure_us = device_us - slow.verify_us;
  own.devices = plan_devices({"simulated:a"}, {.node = name, .simulated = {{"a", slow}}});
  made.joined = join(*made.system, {head, name, kinds_of(own.devices)});
  telemetry_options watching;
  watching.node = name;
  const auto telemetry =
      made.system->spawn(telemetry_behavior, watching, pool_actor(), made.joined.wiring.uplink);
  made.system->spawn(node_behavior, own, made.joined.wiring, made.joined.tasks, telemetry);
  return made;
}

// A part of the nodes: joins, says so with a negative number, then measures messages from one node
// after the other until it is killed.
[[noreturn]] void be_nodes(int number, int count, const head_address& head, int to) {
  constexpr int threads = 8;
  std::vector<ring_node> nodes(static_cast<std::size_t>(count));
  std::vector<std::thread> joining;
  for (int t = 0; t < threads; ++t) {
    joining.emplace_back([&, t] {
      for (int i = t; i < count; i += threads)
        nodes[static_cast<std::size_t>(i)] =
            start_node(head, "node " + std::to_string(number) + " " + std::to_string(i));
    });
  }
  for (std::thread& one : joining) one.join();
  const double joined = -1;
  (void)!write(to, &joined, sizeof joined);
  for (std::size_t i = 0;; i = (i + 1) % nodes.size()) {
    caf::scoped_actor self(*nodes[i].system);
    const auto begin = steady::now();
    self->request(nodes[i].joined.wiring.verifies, std::chrono::seconds(20), status_atom_v)
        .receive([](const actor_status_record&) {},
                 [](const caf::error&) { std::cout << "a message was lost\n"; });
    const double ms = std::chrono::duration<double, std::milli>(steady::now() - begin).count();
    (void)!write(to, &ms, sizeof ms);
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
  }
}

// ---- the head

// A `hone run` that ends with this object.
class ring_head {
 public:
  ring_head(const fs::path& folder, const fs::path& identity) : folder_(folder / "run") {
    std::vector<std::string> arguments = {"run", configs_folder() / "ring.toml", "--dir",
                                          folder_.string()};
    for (const std::string& setting :
         {std::string("node.devices=[]"), std::string("node.listen=\"127.0.0.1:0\""),
          "node.identity=\"" + identity.string() + "\"", std::string("contrastive.steps=1000000"),
          std::string("pool.acknowledgments=acknowledged")})
      arguments.insert(arguments.end(), {"--set", setting});
    process_ = start_hone(arguments);
    const auto end = steady::now() + std::chrono::seconds(30);
    while (!fs::exists(folder_ / "address")) {
      if (steady::now() > end) throw std::runtime_error("the head does not start");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  ~ring_head() { end(); }
  ring_head(const ring_head&) = delete;
  ring_head& operator=(const ring_head&) = delete;

  pid_t process() const { return process_; }
  std::string address() const { return (folder_ / "address").string(); }

  // Returns how many variants have been trained on.
  double variants() const { return read_progress(folder_ / "metrics.jsonl").variants; }

  // Stops the run and returns whether all that it has acknowledged is in its pool.
  bool ends_with_everything() {
    end();
    const std::string verify = hone_program() + " pool verify --pool '" +
                               (folder_ / "pool").string() + "' --acknowledged '" +
                               (folder_ / "acknowledged").string() + "'";
    return std::system(verify.c_str()) == 0;
  }

 private:
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  fs::path folder_;
  pid_t process_ = 0;
};

// ---- measuring

class meter {
 public:
  meter(const ring_head& head, std::vector<pid_t> nodes, int times)
      : head_(head), nodes_(std::move(nodes)), times_(times) {}

  // Prints what happens in so many seconds.
  void measure(const char* what, int seconds) {
    const auto end = steady::now() + std::chrono::seconds(seconds);
    const double variants = head_.variants();
    const double head = cpu_seconds(head_.process());
    const double nodes = cpu_of_nodes();
    std::vector<double> ms;
    for (double one = 0; steady::now() < end && read(times_, &one, sizeof one) == sizeof one;)
      ms.push_back(one);
    if (ms.empty()) throw std::runtime_error("no node answers");
    std::sort(ms.begin(), ms.end());
    std::printf(
        "%-28s %6.0f variants/s; head %3.0f %%, nodes %3.0f %% of a core; messages: %zu, p50 %.1f, "
        "p99 %.1f, worst %.1f ms\n",
        what, (head_.variants() - variants) / seconds,
        (cpu_seconds(head_.process()) - head) / seconds * 100,
        (cpu_of_nodes() - nodes) / seconds * 100, ms.size(), ms[ms.size() / 2],
        ms[ms.size() * 99 / 100], ms.back());
    std::fflush(stdout);
  }
  void kill_first() {
    kill(nodes_.front(), SIGKILL);
    waitpid(nodes_.front(), nullptr, 0);
    nodes_.erase(nodes_.begin());
  }

 private:
  double cpu_of_nodes() const {
    double all = 0;
    for (const pid_t one : nodes_) all += cpu_seconds(one);
    return all;
  }
  const ring_head& head_;
  std::vector<pid_t> nodes_;
  int times_;
};

int run(int nodes, int seconds, int head_cores) {
  const std::vector<int> cores = allowed_cores();
  if (head_cores < 0 || head_cores >= static_cast<int>(cores.size()))
    throw std::runtime_error("HEAD_CORES must leave the nodes a processor core");
  const auto first_of_nodes = cores.begin() + head_cores;
  const fs::path folder = fs::temp_directory_path() / ("hone-cluster-" + std::to_string(getpid()));
  make_authority(folder / "ca");
  const fs::path head_identity = make_identity(folder / "ca", "head", identity_role::head);
  const fs::path node_identity = make_identity(folder / "ca", "node", identity_role::node);
  bool is_well = false;
  {
    if (head_cores > 0) bind_thread({cores.begin(), first_of_nodes});
    ring_head head(folder, head_identity);
    bind_thread({first_of_nodes, cores.end()});
    int ends[2];
    if (pipe(ends) != 0) return 1;
    const auto begin = steady::now();
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
      children.push_back(fork_child());
      if (children.back() == 0)
        be_nodes(i, std::max(1, nodes / processes), {head.address(), node_identity}, ends[1]);
    }
    close(ends[1]);
    int joined = 0;
    for (double one = 0; joined < processes && read(ends[0], &one, sizeof one) == sizeof one;)
      joined += one < 0 ? 1 : 0;
    std::printf("%d nodes have joined in %.1f s\n", nodes,
                std::chrono::duration<double>(steady::now() - begin).count());
    meter measured(head, children, ends[0]);
    measured.measure("first", seconds);
    measured.measure("then", seconds);
    measured.kill_first();
    measured.measure("a quarter has been killed", seconds);
    for (int i = 1; i < processes; ++i) measured.kill_first();
    is_well = head.ends_with_everything();
  }
  fs::remove_all(folder);
  return is_well ? 0 : 1;
}

}  // namespace
}  // namespace hone::benchmark

int main(int count, char** arguments) {
  int code = 1;
  try {
    code = hone::benchmark::run(count > 1 ? std::stoi(arguments[1]) : 1000,
                                count > 2 ? std::stoi(arguments[2]) : 10,
                                count > 3 ? std::stoi(arguments[3]) : 0);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cluster_benchmark: %s\n", e.what());
  }
  std::fflush(stdout);
  _exit(code);  // the actor systems are never destroyed
}
