#include "launch/metrics/metric_totals.hpp"

#include <algorithm>

#include "messages/names.hpp"
#include "messages/plain_text.hpp"

namespace hone {
namespace {

double tokens_of(const schema::ActorStatus::Reader& status) {
  for (const auto number : status.getNumbers()) {
    const std::string_view name = view(number.getName());
    if (name == "tokens" || name == "trained_tokens") return number.getValue();
  }
  return 0;
}

void add_to_totals(metric_totals::counts& to, const metric_totals::counts& more) {
  to.processed += more.processed;
  to.failed += more.failed;
  to.busy_seconds += more.busy_seconds;
  to.tokens += more.tokens;
  to.restarts += more.restarts;
}

}  // namespace

void metric_totals::take(const node_snapshot& snapshot) {
  for (const auto& [name, status] : snapshot.actors) {
    if (!snapshot.heard.contains(name)) continue;  // an actor of a joined node
    const auto restarts = snapshot.restarts.find(name);
    take(name, *status, restarts == snapshot.restarts.end() ? 0 : restarts->second);
  }
  if (!snapshot.run) return;
  std::string stage = plain_text(view(snapshot.run->getStage()));
  if (stage.empty()) {  // a server, or a run before its first version
    if (snapshot.run->getOutcomes().size() == 0) return;
    stage = name_of(Stage::SERVICE);
  }
  for (int i = 0; i < outcome_count; ++i)  // so that a rate is known from the first sample on
    samples_.try_emplace({stage, std::string(name_of(static_cast<Outcome>(i)))}, 0);
  for (const auto one : snapshot.run->getOutcomes()) {
    double& count = samples_[{stage, plain_text(view(one.getName()))}];
    count = std::max(count, one.getValue());
  }
}

void metric_totals::take(const std::string& name, const schema::ActorStatus::Reader& status,
                         std::uint32_t restarts) {
  actor& of = actors_[name];
  // The restarts are counted by telemetry, whose successor begins at 0.
  if (restarts < of.latest.restarts) of.earlier.restarts += of.latest.restarts;
  of.latest.restarts = restarts;
  if (of.started_us != status.getStartedUs()) {
    counts last_life = of.latest;
    last_life.restarts = 0;
    add_to_totals(of.earlier, last_life);
    of.room = plain_text(view(status.getRoom()));
    of.device_type = plain_text(view(status.getDeviceType()));
    of.started_us = status.getStartedUs();
  }
  of.latest.processed = static_cast<double>(status.getProcessed());
  of.latest.failed = static_cast<double>(status.getFailed());
  of.latest.busy_seconds = status.getBusySeconds();
  of.latest.tokens = tokens_of(status);
}

std::map<std::pair<std::string, std::string>, metric_totals::counts> metric_totals::by_room()
    const {
  std::map<std::pair<std::string, std::string>, counts> sums;
  for (const auto& [name, of] : actors_) {
    counts& sum = sums[{of.room, of.device_type}];
    add_to_totals(sum, of.earlier);
    add_to_totals(sum, of.latest);
  }
  return sums;
}

}  // namespace hone
