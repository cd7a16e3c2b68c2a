#include "launch/metrics/metrics_server.hpp"

#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "launch/version.hpp"
#include "messages/clock.hpp"
#include "messages/versions.hpp"
#include "network/identity.hpp"
#include "process/process_facts.hpp"

namespace hone {
namespace {

double seconds_of_time(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double seconds_of_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

process_usage usage_of_process() {
  process_usage found;
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  found.cpu_seconds = seconds_of_time(used.ru_utime) + seconds_of_time(used.ru_stime);
  double pages = 0;
  double resident_pages = 0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident_pages)
    found.resident_bytes = resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  std::error_code ignored;
  for (std::filesystem::directory_iterator file("/proc/self/fd", ignored), end;
       !ignored && file != end; file.increment(ignored))
    ++found.open_files;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  found.max_files = static_cast<double>(limit.rlim_cur);
  const double boot_s = seconds_of_clock(CLOCK_REALTIME) - seconds_of_clock(CLOCK_BOOTTIME);
  found.started_s = boot_s + static_cast<double>(facts_of(getpid()).start) /
                                 static_cast<double>(sysconf(_SC_CLK_TCK));
  return found;
}

}  // namespace

metrics_server::metrics_server(const network_address& listen, metric_facts facts)
    : facts_(std::move(facts)),
      http_({.listen = listen, .threads = 1, .max_connections = 64},
            [this](const http_request& request, const http_server::reply& reply) {
              reply(answer(request));
            }) {}

void metrics_server::show(const node_snapshot& snapshot) {
  const std::lock_guard hold(lock_);
  snapshot_ = snapshot;
  totals_.take(snapshot);
  round_ms_ = unix_ms();
}

std::string metrics_server::text() const {
  const process_usage process = usage_of_process();
  const std::lock_guard hold(lock_);
  return prometheus::TextSerializer().Serialize(
      make_metric_families(snapshot_, totals_, facts_, process, round_ms_));
}

http_response metrics_server::answer(const http_request& request) const {
  const auto plain = [](unsigned status, std::string body) {
    return http_response{status, std::move(body), {{"Content-Type", "text/plain; charset=utf-8"}}};
  };
  if (request.path != "/metrics" && request.path != "/healthz")
    return plain(404, "try /metrics or /healthz\n");
  if (request.method != "GET") {
    http_response refused = plain(405, "only GET is allowed\n");
    refused.headers.emplace_back("Allow", "GET");
    return refused;
  }
  if (request.path == "/healthz") return plain(200, "ok\n");
  return {200, text(), {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}};
}

std::shared_ptr<metrics_server> serve_metrics(const std::string& key, const std::string& listen,
                                              metric_facts facts,
                                              const std::function<void(const std::string&)>& log) {
  if (listen.empty()) return nullptr;
  const build_versions build = versions_of_build();
  facts.version = build.version;
  facts.revision = build.revision;
  facts.schema = schema_version;
  facts.judge = judge_version;
  try {
    auto server = std::make_shared<metrics_server>(parse_address(listen, /*allows_any_port=*/true),
                                                   std::move(facts));
    log("metrics at http://" + to_string(server->address()) + "/metrics");
    return server;
  } catch (const network_error& e) {
    throw std::runtime_error(key + ": " + e.what());
  }
}

}  // namespace hone
