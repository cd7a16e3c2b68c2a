#include "launch/run/history_file.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "messages/names.hpp"
#include "process/cut_line.hpp"
#include "process/replace_file.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

// Actors whose busy share a row has. Of more, only the counts of their rooms remain.
constexpr std::size_t max_lanes = 200;

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

void add_counts(ordered_json& rooms, const std::string& room,
                const schema::ActorStatus::Reader& actor) {
  ordered_json& counts = rooms[room];
  const auto add = [&](const char* name, double value) {
    ordered_json& sum = counts[name];
    sum = (sum.is_null() ? 0.0 : sum.get<double>()) + value;
  };
  add("actors", 1);
  add("processed", static_cast<double>(actor.getProcessed()));
  add("failed", static_cast<double>(actor.getFailed()));
  add("restarts", actor.getRestarts());
}

}  // namespace

history_file::history_file(std::filesystem::path path) : path_(std::move(path)) {
  remove_cut_line(path_);
  rows_ = lines_of(path_).size();
}

void history_file::note(const node_snapshot& all_nodes, std::uint64_t now_ms) {
  if (now_ms < last_ms_ + interval_ms) return;
  const double seconds = static_cast<double>(now_ms - last_ms_) / 1000;
  const bool is_first = last_ms_ == 0;
  last_ms_ = now_ms;
  ordered_json busy = ordered_json::object();
  ordered_json queues = ordered_json::object();
  ordered_json rooms = ordered_json::object();
  ordered_json devices = ordered_json::object();
  for (const auto& [name, status] : all_nodes.actors) {
    const std::string room(view(status->getRoom()));
    if (room == "queue") {
      queues[name] = {{"queued", status->getQueued()}, {"in_flight", status->getInFlight()}};
      continue;
    }
    for (const auto one : status->getNumbers()) {
      const std::string_view of_device = view(one.getName());
      if ((of_device == "clock_mhz" || of_device == "temperature_c") && devices.size() < max_lanes)
        devices[name][std::string(of_device)] = one.getValue();
    }
    const std::string type(view(status->getDeviceType()));
    add_counts(rooms, type.empty() ? room : room + " of " + type, *status);
    const double now = status->getBusySeconds();
    double& before = busy_seconds_[name];
    if (!is_first && busy.size() < max_lanes)
      busy[name] = std::clamp((now - before) / seconds, 0.0, 1.0);
    before = now;
  }
  ordered_json row = {{"time_ms", now_ms}};
  if (all_nodes.run) {
    const auto run = *all_nodes.run;
    ordered_json outcomes = ordered_json::object();
    for (const auto one : run.getOutcomes())
      outcomes[std::string(view(one.getName()))] = one.getValue();
    row.update({{"stage", view(run.getStage())},
                {"step", run.getStep()},
                {"version", run.getVersion()},
                {"in_flight", run.getInFlight()},
                {"waiting_groups", run.getWaitingGroups()},
                {"ready_groups", run.getReadyGroups()},
                {"dropped_groups", run.getDroppedGroups()},
                {"lag", run.getLag()},
                {"outcomes", outcomes}});
  }
  if (!row.contains("stage")) return;  // the pool has not reported yet
  row.update({{"queues", queues}, {"rooms", rooms}, {"busy", busy}, {"devices", devices}});
  std::ofstream(path_, std::ios::app)
      << row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  if (++rows_ > max_rows) thin_out();
}

void history_file::thin_out() {
  const std::vector<std::string> lines = lines_of(path_);
  std::string kept;
  rows_ = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i < lines.size() / 2 && i % 2 == 1) continue;
    kept += lines[i] + "\n";
    ++rows_;
  }
  try {
    replace_file(path_, kept, 0644);
  } catch (const std::exception&) {  // the file stays as it is
  }
}

}  // namespace hone
