#include "launch/metrics/metric_families.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "messages/plain_text.hpp"

namespace hone {
namespace {

using metric_labels = std::vector<prometheus::ClientMetric::Label>;
using room_and_type = std::pair<std::string, std::string>;

// A fetcher processes bytes instead of items.
constexpr std::string_view fetcher_room = "fetcher";

class family_list {
 public:
  // Begins a family, to which series are added until the next one begins.
  family_list& counter(const char* name, const char* help) {
    return begin(name, help, prometheus::MetricType::Counter);
  }
  family_list& gauge(const char* name, const char* help) {
    return begin(name, help, prometheus::MetricType::Gauge);
  }
  // Labels without a value are left out.
  family_list& add(double value, metric_labels labels = {}) {
    std::erase_if(labels, [](const auto& label) { return label.value.empty(); });
    prometheus::ClientMetric series;
    series.label = std::move(labels);
    if (families_.back().type == prometheus::MetricType::Counter) {
      series.counter.value = value;
    } else {
      series.gauge.value = value;
    }
    families_.back().metric.push_back(std::move(series));
    return *this;
  }
  std::vector<prometheus::MetricFamily> take() {
    std::erase_if(families_, [](const auto& family) { return family.metric.empty(); });
    return std::move(families_);
  }

 private:
  family_list& begin(const char* name, const char* help, prometheus::MetricType type) {
    families_.push_back({name, help, type, {}});
    return *this;
  }

  std::vector<prometheus::MetricFamily> families_;
};

std::string label_value(const capnp::Text::Reader& text) { return plain_text(view(text)); }

void add_versions(family_list& list, const metric_facts& facts) {
  list.gauge("hone_build_info", "Version and revision of Hone, versions of messages and judge.")
      .add(1, {{"version", plain_text(facts.version)},
               {"revision", plain_text(facts.revision)},
               {"schema", std::to_string(facts.schema)},
               {"judge", std::to_string(facts.judge)}});
  if (facts.run.empty()) return;
  list.gauge("hone_run_info", "Folder and seed of the training run of this head.")
      .add(1, {{"run", plain_text(facts.run)}, {"seed", std::to_string(facts.seed)}});
}

// One series per room and device type.
void add_actors(family_list& list, const node_snapshot& snapshot, const metric_totals& totals) {
  std::map<room_and_type, double> alive;
  for (const auto& [name, status] : snapshot.actors) {
    if (snapshot.heard.contains(name))
      ++alive[{label_value(status->getRoom()), label_value(status->getDeviceType())}];
  }
  const auto labels = [](const room_and_type& of) {
    return metric_labels{{"room", of.first}, {"device_type", of.second}};
  };
  list.gauge("hone_actors", "Actors of this node.");
  for (const auto& [of, count] : alive) list.add(count, labels(of));
  const auto sums = totals.by_room();
  const auto add_sum = [&](double metric_totals::counts::*member) {
    for (const auto& [of, sum] : sums) {
      const bool is_in_bytes =
          of.first == fetcher_room && member == &metric_totals::counts::processed;
      if (!is_in_bytes) list.add(sum.*member, labels(of));
    }
  };
  list.counter("hone_work_processed_total", "Items that actors completed.");
  add_sum(&metric_totals::counts::processed);
  list.counter("hone_work_failed_total", "Items that actors could not complete.");
  add_sum(&metric_totals::counts::failed);
  list.counter("hone_busy_seconds_total", "Time that actors spent on work.");
  add_sum(&metric_totals::counts::busy_seconds);
  list.counter("hone_actor_restarts_total", "Restarts of actors after a failure.");
  add_sum(&metric_totals::counts::restarts);
  double copied = 0;
  double generated = 0;
  double trained = 0;
  for (const auto& [of, sum] : sums) {
    if (of.first == fetcher_room) copied += sum.processed;
    if (of.first == "generator") generated += sum.tokens;
    if (of.first == "learner") trained += sum.tokens;
  }
  const auto has_room = [&](std::string_view room) {
    return std::any_of(sums.begin(), sums.end(),
                       [&](const auto& entry) { return entry.first.first == room; });
  };
  list.counter("hone_generated_tokens_total", "Tokens that the generators of this node wrote.");
  if (has_room("generator")) list.add(generated);
  list.counter("hone_trained_tokens_total", "Tokens that supervised fine-tuning was trained on.");
  if (has_room("learner")) list.add(trained);
  list.counter("hone_copied_bytes_total", "Bytes of checkpoints that this node copied.");
  if (has_room(fetcher_room)) list.add(copied);
}

void add_queues(family_list& list, const node_snapshot& snapshot) {
  constexpr std::string_view prefix = "queue ";
  std::map<std::string, std::pair<double, double>> queues;
  for (const auto& [name, status] : snapshot.actors) {
    if (!snapshot.heard.contains(name) || view(status->getRoom()) != "queue") continue;
    auto& [queued, in_flight] =
        queues[plain_text(name.starts_with(prefix) ? name.substr(prefix.size()) : name)];
    queued += status->getQueued();
    in_flight += status->getInFlight();
  }
  list.gauge("hone_queue_items", "Jobs that wait for a worker.");
  for (const auto& [queue, counts] : queues) list.add(counts.first, {{"queue", queue}});
  list.gauge("hone_in_flight_items", "Jobs that workers have.");
  for (const auto& [queue, counts] : queues) list.add(counts.second, {{"queue", queue}});
}

void add_run(family_list& list, const schema::RunStatus::Reader& run, const metric_facts& facts) {
  if (const std::string stage = label_value(run.getStage()); !stage.empty()) {
    list.gauge("hone_run_stage_info", "Stage of learning.").add(1, {{"stage", stage}});
    list.gauge("hone_run_step", "Step of the stage.").add(run.getStep());
    list.gauge("hone_policy_version", "Newest committed version of the policy.")
        .add(static_cast<double>(run.getVersion()));
    list.gauge("hone_policy_lag_steps", "Mean lag of the tokens of the latest batch.")
        .add(run.getLag());
    list.gauge("hone_policy_max_lag_steps", "Limit on the lag of groups (pool.max_lag).");
    if (facts.max_lag) list.add(static_cast<double>(*facts.max_lag));
  }
  list.gauge("hone_evaluations_in_flight", "Variants that are being judged.")
      .add(run.getInFlight());
  list.gauge("hone_groups", "Groups by state.")
      .add(run.getWaitingGroups(), {{"state", "waiting"}})
      .add(run.getReadyGroups(), {{"state", "ready"}});
  std::map<std::string, double> dropped;
  for (const auto task : run.getTasks()) dropped.try_emplace(label_value(task.getDeviceType()), 0);
  for (const auto one : run.getDroppedByType())
    dropped[label_value(one.getName())] += one.getValue();
  list.counter("hone_groups_dropped_total", "Groups that became too old to train on.");
  for (const auto& [type, count] : dropped) list.add(count, {{"device_type", type}});
}

void add_tasks(family_list& list, const schema::RunStatus::Reader& run) {
  struct results {
    double best = 0;
    double variants = 0;
  };
  std::map<std::pair<std::string, std::string>, results> by_task;  // and device type
  std::set<std::string> tasks;
  for (const auto task : run.getTasks()) {
    const std::string name = label_value(task.getName());
    tasks.insert(name);
    // Different hostile names may become the same label value.
    results& of = by_task[{name, label_value(task.getDeviceType())}];
    of.best = std::max(of.best, task.getBest());
    of.variants += static_cast<double>(task.getVariants());
  }
  if (tasks.size() > max_metric_tasks) return;
  const auto labels = [](const auto& entry) {
    return metric_labels{{"task", entry.first.first}, {"device_type", entry.first.second}};
  };
  list.gauge("hone_best_speedup_ratio", "Speed-up of the best variant over the reference.");
  for (const auto& entry : by_task) {
    if (entry.second.best > 0) list.add(entry.second.best, labels(entry));
  }
  list.gauge("hone_ok_variants", "Variants with outcome ok.");
  for (const auto& entry : by_task) list.add(entry.second.variants, labels(entry));
}

void add_process(family_list& list, const process_usage& process) {
  list.counter("process_cpu_seconds_total", "User and system CPU time.").add(process.cpu_seconds);
  list.gauge("process_resident_memory_bytes", "Resident memory.").add(process.resident_bytes);
  list.gauge("process_open_fds", "Open file descriptors.").add(process.open_files);
  list.gauge("process_max_fds", "Limit on open file descriptors.").add(process.max_files);
  list.gauge("process_start_time_seconds", "Start of the process, in Unix time.")
      .add(process.started_s);
}

}  // namespace

std::vector<prometheus::MetricFamily> make_metric_families(const node_snapshot& snapshot,
                                                           const metric_totals& totals,
                                                           const metric_facts& facts,
                                                           const process_usage& process,
                                                           std::uint64_t round_ms) {
  family_list list;
  add_versions(list, facts);
  add_process(list, process);
  if (round_ms > 0)
    list.gauge("hone_telemetry_timestamp_seconds", "Unix time of the counts of all actors.")
        .add(static_cast<double>(round_ms) / 1e3);
  add_actors(list, snapshot, totals);
  add_queues(list, snapshot);
  list.counter("hone_samples_total", "Samples by the outcome of their evaluation.");
  for (const auto& [of, count] : totals.samples())
    list.add(count, {{"stage", of.first}, {"outcome", of.second}});
  if (snapshot.run) {
    add_run(list, *snapshot.run, facts);
    add_tasks(list, *snapshot.run);
  }
  list.gauge("hone_node_last_seen_timestamp_seconds", "Last report of a joined node, Unix time.");
  for (const auto& [node, ms] : snapshot.last_report_ms)
    list.add(static_cast<double>(ms) / 1e3, {{"node", plain_text(node)}});
  return list.take();
}

}  // namespace hone
