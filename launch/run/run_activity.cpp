#include "launch/run/run_activity.hpp"

#include <utility>

#include "results/printing.hpp"

namespace hone {

run_activity activity_of(const node_snapshot& snapshot) {
  run_activity found;
  std::map<std::string, std::pair<double, double>> sums;
  for (const auto& [name, status] : snapshot.actors) {
    const std::string room(view(status->getRoom()));
    if (room == "queue" || status->getAliveSeconds() <= 0) continue;
    sums[room].first += status->getBusySeconds();
    sums[room].second += status->getAliveSeconds();
    if (const auto before = snapshot.earlier.find(name); before != snapshot.earlier.end()) {
      sums[room].first += before->second.busy_seconds;
      sums[room].second += before->second.alive_seconds;
    }
    for (const auto number : status->getNumbers()) {
      add_number(found.endpoints, view(number.getName()), number.getValue());
      if (view(number.getName()) != "leased_seconds") continue;
      sums[room + " leased"].first += number.getValue();
      sums[room + " leased"].second += status->getAliveSeconds();
    }
  }
  for (const auto& [room, sum] : sums) found.busy[room] = sum.first / sum.second;
  return found;
}

run_report describe_activity(const run_activity& activity, double seconds, bool is_resumed) {
  run_report part;
  if (activity.busy.empty()) return part;
  auto& [text, json] = part;
  text = "Busy shares over " + fixed(seconds, 0) + " s" +
         (is_resumed ? ", since the run was resumed" : "") + "\n";
  json["busy"] = nlohmann::ordered_json::object();
  for (const auto& [room, share] : activity.busy) {
    text += "  " + room + " " + percent(share);
    json["busy"][room] = share;
  }
  text += "\n";
  json["seconds"] = seconds;
  if (!activity.endpoints.empty()) text += "Endpoints in this time\n";
  for (const auto& [name, usage] : activity.endpoints) {
    text += "  " + name + ": " + describe(usage) + "\n";
    for (const auto& [key, value] : numbers_of(usage)) json["endpoints"][name][key] = value;
  }
  return part;
}

}  // namespace hone
