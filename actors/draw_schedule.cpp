#include "actors/draw_schedule.hpp"

namespace hone {

void draw_schedule::change_devices(const std::string& device_type, int by) {
  int& count = devices_[device_type];
  count += by;
  if (count <= 0) devices_.erase(device_type);
}

std::vector<std::string> draw_schedule::device_types() const {
  std::vector<std::string> names;
  for (const auto& [name, count] : devices_) names.push_back(name);
  return names;
}

std::vector<draw_schedule::place> draw_schedule::places() const {
  std::vector<place> all;
  for (const task_id& task : tasks_) {
    for (const auto& [name, count] : devices_) all.push_back({task, name});
  }
  return all;
}

std::optional<draw_schedule::assignment> draw_schedule::next(Stage stage, std::uint64_t version, std::size_t waiting, std::size_t ready) {
  if (!comparisons_.empty()) {
    const assignment first = comparisons_.front();
    comparisons_.pop_front();
    return first;
  }
  if (stage != Stage::SELF_SUPERVISED && stage != Stage::CONTRASTIVE) return std::nullopt;
  const auto all = places();
  if (all.empty() || out_.size() + waiting + ready >= options_.max_groups) return std::nullopt;
  return assignment{all[turn_++ % all.size()], stage, version, 0, options_.samples};
}

std::size_t draw_schedule::compare(const std::vector<std::uint64_t>& versions, std::uint32_t samples) {
  const auto all = places();
  // Version by version: a generator changes its weights as seldom as possible.
  for (const std::uint64_t version : versions) {
    for (std::size_t draw = 0; draw < samples * all.size(); ++draw) comparisons_.push_back({all[draw % all.size()], Stage::COMPARISON, version, draw, 1});
  }
  return versions.size() * samples * all.size();
}

void draw_schedule::give_up_old(std::uint64_t now_ms) {
  std::erase_if(out_, [&](const auto& entry) { return entry.second + options_.draw_limit_ms < now_ms; });
}

}  // namespace hone
