#include "launch/serve/serve.hpp"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>

#include "actors/error_text.hpp"
#include "launch/metrics/metrics_server.hpp"
#include "launch/run/head_actors.hpp"
#include "launch/run/run_inputs.hpp"
#include "launch/serve/judge_api.hpp"
#include "launch/serve/served_tasks.hpp"
#include "launch/stop_signals.hpp"
#include "launch/system.hpp"
#include "network/identity.hpp"
#include "process/temporary_folder.hpp"
#include "results/printing.hpp"
#include "storage/inspection.hpp"

namespace hone {
namespace {

constexpr double ms_per_hour = 3600e3;

void say(const std::string& line) { std::cout << line << std::endl; }

task_table tasks_of_server(const configuration& c) {
  return c.tasks.folder.empty() ? task_table() : load_tasks(c);
}

// Returns the tasks that clients have handed in earlier.
std::vector<task_record> late_tasks_of(const run_folder& folder) {
  std::vector<task_record> late;
  if (!std::filesystem::exists(folder.pool())) return late;
  for (const task_record& one : pool_inspector(folder.pool()).tasks()) {
    if (one->getIsLate()) late.push_back(one);
  }
  return late;
}

class server {
 public:
  explicit server(const configuration& c, const serve_options& options)
      : c_(c),
        listen_(parse_address(c.serve.listen, /*allows_any_port=*/true)),
        tasks_(std::make_shared<const task_table>(tasks_of_server(c))),
        folder_(c.directory, std::filesystem::exists(std::filesystem::path(c.directory) / "pool")),
        from_(find_resume_point(folder_, say)) {
    if (!from_.chain.empty())
      throw std::runtime_error(c.directory +
                               ": is the folder of a training run; name another one with --dir");
    refuse_to_mix(c, folder_, from_.scored_device_types);
    if (!c.serve.tokens.empty()) tokens_.emplace(c.serve.tokens);
    folder_.write("config.toml", print_configuration(c, false));
    catch_stop_signals();
    ignore_signals_of_writes();
    devices_ = plan_head_devices(c, options.waits_for_cores);
    metrics_ = serve_metrics("node.metrics", c.node.metrics, {}, say);
  }

  // Returns the exit code.
  int work() {
    auto& system = start_actor_system({std::chrono::milliseconds(c_.node.heartbeat_ms),
                                       std::chrono::milliseconds(c_.node.silence_ms)});
    caf::scoped_actor supervisor(system);
    const std::vector<task_record> late = late_tasks_of(folder_);
    head_parts parts = parts_of_head(late);
    parts.on_new_type = [me = caf::actor(supervisor.ptr())](const std::string& type) {
      caf::anon_send(me, corpus_atom_v, type);
    };
    head_actors head = start_head(system, parts, supervisor);
    served_tasks tasks(tasks_, late, c_.serve.max_tasks, c_.serve.importers);
    const auto api = std::make_shared<judge_api>(system, head.pool, tasks,
                                                 tokens_ ? &*tokens_ : nullptr, c_.serve.limits);
    for (const std::string& type : device_types_of(devices_)) api->add_device_type(type);
    open_door(system, parts, head);
    http_server::options options;
    options.listen = listen_;
    options.certificate = c_.serve.certificate;
    options.key = c_.serve.key;
    const http_server http(
        options,
        [api](const http_request& request, const auto& reply) { api->handle(request, reply); },
        [api](const http_request& request) { return api->open_conversation(request); });
    announce(http.address(), late.size());
    const int code = wait(system, supervisor, *api);
    std::cout.flush();
    end_process(code);  // the folder stays locked until the process closes the pool's files
  }

 private:
  head_parts parts_of_head(const std::vector<task_record>& late) const {
    pool_actor_options pool = c_.pool;
    pool.late_tasks = late;
    pool.keep_judged_ms = static_cast<std::uint64_t>(c_.serve.keep_hours * ms_per_hour);
    return {
        .settings = c_,
        .folder = folder_,
        .tasks = tasks_,
        .devices = devices_,
        .pool = pool,
        .scored_device_types = from_.scored_device_types,
        .needs_baselines = false,
        .setup = {},
        .on_new_type = {},
        .log = say,
        .show =
            [metrics = metrics_](const node_snapshot& snapshot) {
              if (metrics) metrics->show(snapshot);
            },
    };
  }

  void announce(const network_address& at, std::size_t late) const {
    const std::string url = (c_.serve.certificate.empty() ? "http://" : "https://") + to_string(at);
    folder_.write("serving", url + "\n");
    say("judging for clients at " + url + ", " + counted(tasks_->all().size(), "task") +
        (late > 0 ? " and " + std::to_string(late) + " of clients" : ""));
  }

  // Returns the exit code when a signal has come, or something fatal has happened.
  int wait(caf::actor_system& system, caf::scoped_actor& supervisor, judge_api& api) const {
    std::string fatal;
    while (fatal.empty() && !was_asked_to_stop()) {
      supervisor->receive([&](fatal_atom, const std::string& reason) { fatal = reason; },
                          [&](const caf::down_msg& down) { fatal = text_of(system, down.reason); },
                          [&](corpus_atom, const std::string& type) { api.add_device_type(type); },
                          [&](const caf::error&) {},
                          caf::after(std::chrono::milliseconds(100)) >> [] {});
    }
    if (fatal.empty()) {
      say("stopped; what was accepted is judged when the server starts again with --dir " +
          folder_.path().string());
      return 0;
    }
    std::cerr << "hone: " << fatal << "\nwhat was accepted is on disk; start the server again with "
              << "--dir " << folder_.path().string() << "\n";
    return 1;
  }

  const configuration& c_;
  network_address listen_;
  std::shared_ptr<const task_table> tasks_;
  run_folder folder_;
  run_folder::resume_point from_;
  std::optional<bearer_tokens> tokens_;
  std::vector<planned_device> devices_;
  std::shared_ptr<metrics_server> metrics_;  // null unless node.metrics is set
};

}  // namespace

int serve(const configuration& given, const serve_options& options) {
  configuration c = given;
  if (!options.directory.empty()) c.directory = options.directory.string();
  c.directory = std::filesystem::absolute(c.directory).lexically_normal().string();
  return server(c, options).work();
}

}  // namespace hone
