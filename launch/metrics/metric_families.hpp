#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/telemetry.hpp"
#include "launch/metrics/metric_totals.hpp"

namespace hone {

// Resources of this process. Zero if unknown.
struct process_usage {
  double cpu_seconds = 0;  // user and system time
  double resident_bytes = 0;
  double open_files = 0;
  double max_files = 0;
  double started_s = 0;  // Unix time in seconds
};

// Facts about a node that no snapshot has.
struct metric_facts {
  std::string version{};   // of Hone
  std::string revision{};  // of Hone
  std::uint32_t schema = 0;
  std::uint32_t judge = 0;
  std::string run{};  // the run's folder; empty unless the node is the head of a training run
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> max_lag{};  // pool.max_lag of a training run
};

// Beyond this number of tasks, the families with a series per task are left out.
inline constexpr std::size_t max_metric_tasks = 1000;

// Returns the metrics of this node, without those of joined nodes, which have their own endpoints.
// doc/monitoring.md lists them. Label values are valid UTF-8 without control characters other than
// newlines and tabs, which the text format escapes.
// Families without a series are left out. `round_ms`: Unix time of the snapshot; 0: none yet.
std::vector<prometheus::MetricFamily> make_metric_families(const node_snapshot& snapshot,
                                                           const metric_totals& totals,
                                                           const metric_facts& facts,
                                                           const process_usage& process,
                                                           std::uint64_t round_ms);

}  // namespace hone
