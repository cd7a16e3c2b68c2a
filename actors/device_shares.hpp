#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hone {

// Devices of one type that a node has.
struct device_share {
  std::uint32_t there = 0;
  std::uint32_t at_work = 0;
};

// Returns how many devices of each node are to be at work, so that they are `wanted` in all, or as
// many as there are. As few as possible change: they are taken from the node that has most at work,
// and added to the node that has most idle; of equal nodes, the first.
std::vector<std::uint32_t> share_devices(std::vector<device_share> nodes, std::uint32_t wanted);

// Returns whether a device type has this name, or a name that begins with it and '-': "h200" is
// "h200-sm90-580.159-cu130" as well.
bool is_type_named(std::string_view type, std::string_view name);

}  // namespace hone
