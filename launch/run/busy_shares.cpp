#include "launch/run/busy_shares.hpp"

#include <utility>

namespace hone {

std::map<std::string, double> busy_shares(const node_snapshot& snapshot) {
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
      if (view(number.getName()) != "leased_seconds") continue;
      sums[room + " leased"].first += number.getValue();
      sums[room + " leased"].second += status->getAliveSeconds();
    }
  }
  std::map<std::string, double> shares;
  for (const auto& [room, sum] : sums) shares[room] = sum.first / sum.second;
  return shares;
}

}  // namespace hone
