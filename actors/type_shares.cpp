#include "actors/type_shares.hpp"

#include <algorithm>
#include <utility>

namespace hone {

void type_shares::begin_to_wait(const std::string& device_type) {
  share& one = of_[device_type];
  one.had = std::max(one.had, now_);
}

void type_shares::count(const std::string& device_type) {
  share& one = of_[device_type];
  now_ = one.had;
  one.had += one.job;
  one.turn = ++turn_;
}

void type_shares::learn(const std::string& device_type, seconds taken) {
  constexpr double weight = 0.1;  // of the newest job in the estimate
  share& one = of_[device_type];
  one.job = std::max(min_of_a_job, one.job + weight * (taken - one.job));
}

std::vector<std::string> type_shares::in_turn(std::vector<std::string> device_types) const {
  const auto place = [this](const std::string& type) {
    const auto known = of_.find(type);
    return known == of_.end() ? std::pair{seconds{}, std::uint64_t{0}}
                              : std::pair{known->second.had, known->second.turn};
  };
  std::sort(device_types.begin(), device_types.end(),
            [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return device_types;
}

}  // namespace hone
