#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "launch/metrics/metric_families.hpp"
#include "network/http/http_server.hpp"

namespace hone {

// Serves a node's metrics to Prometheus: GET /metrics in its text format 0.0.4, and GET /healthz,
// which answers as long as the process does. The text is made when it is asked for, from the
// telemetry's last snapshot. May be used by several threads.
class metrics_server {
 public:
  // Listens from now on. Throws network_error.
  metrics_server(const network_address& listen, metric_facts facts);

  // Takes the next snapshot (telemetry_options.show).
  void show(const node_snapshot& snapshot);
  // Returns the text of /metrics.
  std::string text() const;
  // Returns where it listens.
  const network_address& address() const { return http_.address(); }

 private:
  http_response answer(const http_request& request) const;

  metric_facts facts_;
  mutable std::mutex lock_;  // guards the next three
  node_snapshot snapshot_;
  metric_totals totals_;
  std::uint64_t round_ms_ = 0;  // Unix time of the snapshot
  http_server http_;            // answers requests until it is destroyed, before the rest
};

// Serves the metrics at HOST:PORT and logs their URL; returns null if `listen` is empty. `key`
// names the setting in errors. `facts` need no versions of Hone. Throws std::runtime_error.
std::shared_ptr<metrics_server> serve_metrics(const std::string& key, const std::string& listen,
                                              metric_facts facts,
                                              const std::function<void(const std::string&)>& log);

}  // namespace hone
