#include "actors/device_shares.hpp"

#include <algorithm>

namespace hone {

std::vector<std::uint32_t> share_devices(std::vector<device_share> nodes, std::uint32_t wanted) {
  std::uint32_t all = 0;
  for (const device_share& node : nodes) all += node.at_work;
  const auto idle = [](const device_share& node) { return node.there - node.at_work; };
  for (; all > wanted; --all) {
    const auto most =
        std::max_element(nodes.begin(), nodes.end(),
                         [](const auto& a, const auto& b) { return a.at_work < b.at_work; });
    --most->at_work;
  }
  for (; all < wanted; ++all) {
    const auto most =
        std::max_element(nodes.begin(), nodes.end(),
                         [&](const auto& a, const auto& b) { return idle(a) < idle(b); });
    if (most == nodes.end() || idle(*most) == 0) break;
    ++most->at_work;
  }
  std::vector<std::uint32_t> counts;
  for (const device_share& node : nodes) counts.push_back(node.at_work);
  return counts;
}

bool is_type_named(std::string_view type, std::string_view name) {
  return !name.empty() && type.starts_with(name) &&
         (type.size() == name.size() || type[name.size()] == '-');
}

}  // namespace hone
