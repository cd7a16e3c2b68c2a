#include "actors/draw_schedule.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "messages/even_spacing.hpp"

namespace hone {
namespace {

// Returns at most `count` of the tasks, evenly spaced; all of them if `count` is 0.
std::vector<task_id> spread(const std::vector<task_id>& tasks, std::size_t count) {
  if (count == 0) return tasks;
  std::vector<task_id> chosen;
  for (const std::size_t i : evenly_spaced(count, tasks.size())) chosen.push_back(tasks[i]);
  return chosen;
}

}  // namespace

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

std::vector<draw_schedule::place> draw_schedule::places_of(const std::vector<task_id>& tasks,
                                                           const std::set<std::string>& types) {
  std::vector<place> all;
  for (const task_id& task : tasks) {
    for (const std::string& type : types) all.push_back({task, type});
  }
  return all;
}

// Returns the maximum number of outstanding draws and waiting groups of one device type. All types
// but one may be slow, and together they must leave room for the groups of a step.
std::size_t draw_schedule::max_per_type() const {
  if (devices_.size() < 2) return options_.max_groups;
  const std::size_t spare =
      options_.max_groups - std::min(options_.max_groups, options_.step_groups);
  return std::max<std::size_t>(1, spare / (devices_.size() - 1));
}

std::size_t draw_schedule::max_of_type(const std::string& device_type) const {
  const auto lowered = lowered_.find(device_type);
  return lowered == lowered_.end() ? max_per_type() : std::min(lowered->second, max_per_type());
}

void draw_schedule::note_outcome(const std::string& device_type, std::size_t taken,
                                 std::size_t dropped) {
  const std::size_t now = max_of_type(device_type);
  const std::size_t next = dropped > 0 ? std::max<std::size_t>(1, now / 2) : now + taken;
  if (next < max_per_type()) {
    lowered_[device_type] = next;
  } else {
    lowered_.erase(device_type);
  }
}

std::optional<draw_schedule::assignment> draw_schedule::next(
    Stage stage, std::uint64_t version, std::size_t waiting, std::size_t ready,
    const std::map<std::string, std::size_t>& waiting_by_type) {
  if (const auto compared = next_compared(); compared != comparisons_.end()) {
    const assignment first = *compared;
    comparisons_.erase(compared);
    return first;
  }
  if (stage != Stage::SELF_SUPERVISED && stage != Stage::CONTRASTIVE) return std::nullopt;
  if (tasks_.empty() || devices_.empty() ||
      outstanding_.size() + waiting + ready >= options_.max_groups)
    return std::nullopt;
  std::map<std::string, std::size_t> held = waiting_by_type;
  for (const auto& [draw, issued] : outstanding_) ++held[issued.what.where.device_type];
  // A task's device types follow each other, so that as many places show every type.
  for (std::size_t tries = 0; tries < devices_.size(); ++tries) {
    const std::size_t at = next_place_++ % (tasks_.size() * devices_.size());
    const auto type =
        std::next(devices_.begin(), static_cast<std::ptrdiff_t>(at % devices_.size()));
    const place where{tasks_[at / devices_.size()], type->first};
    if (held[where.device_type] < max_of_type(where.device_type))
      return assignment{where, stage, version, 0, options_.samples};
  }
  return std::nullopt;
}

std::deque<draw_schedule::assignment>::const_iterator draw_schedule::next_compared() const {
  return std::find_if(comparisons_.begin(), comparisons_.end(), [this](const assignment& one) {
    return devices_.contains(one.where.device_type);
  });
}

void draw_schedule::drop_validation() {
  std::erase_if(comparisons_, [](const assignment& one) { return one.stage == Stage::VALIDATION; });
}

std::size_t draw_schedule::validate(std::uint64_t version, std::size_t tasks) {
  drop_validation();
  const auto present = device_types();
  const std::vector<place> places =
      places_of(spread(held_out_, tasks), {present.begin(), present.end()});
  for (const place& where : places)
    comparisons_.push_back(
        {where, Stage::VALIDATION, version, 0, 1, schema::Draw::Arm::GREEDY, true});
  return places.size();
}

std::size_t draw_schedule::compare(const schema::ComparisonRequest::Reader& request,
                                   std::set<std::string> types) {
  for (const std::string& present : device_types()) types.insert(present);
  using Arm = schema::Draw::Arm;
  struct part {
    std::vector<place> places;
    std::set<std::uint64_t> versions;
    std::map<Arm, std::uint32_t> samples;
    bool is_held_out;
  };
  const auto set_of = [](const capnp::List<std::uint64_t>::Reader& versions) {
    return std::set<std::uint64_t>(versions.begin(), versions.end());
  };
  // Without exemplars, nothing differs between two greedy completions.
  const std::vector<part> parts = {{places_of(held_out_, types),
                                    set_of(request.getHeldOutVersions()),
                                    {{Arm::SAMPLED, request.getHeldOutSamples()},
                                     {Arm::BARE, request.getHeldOutBareSamples()},
                                     {Arm::GREEDY, std::min(request.getGreedySamples(), 1U)}},
                                    true},
                                   {places_of(spread(tasks_, request.getTasks()), types),
                                    set_of(request.getVersions()),
                                    {{Arm::SAMPLED, request.getSamples()},
                                     {Arm::BARE, request.getBareSamples()},
                                     {Arm::GREEDY, request.getGreedySamples()}},
                                    false}};
  drop_validation();
  std::set<std::uint64_t> versions;
  for (const part& one : parts) versions.insert(one.versions.begin(), one.versions.end());
  const std::size_t before = comparisons_.size();
  // One version after the other, so that generators load weights as rarely as possible.
  for (const std::uint64_t version : versions) {
    std::size_t draw = 0;
    for (const part& one : parts) {
      for (const auto& [arm, samples] : one.samples) {
        for (std::size_t sample = 0; sample < samples; ++sample) {
          for (const place& where : one.places) {
            if (one.versions.contains(version))
              comparisons_.push_back(
                  {where, Stage::COMPARISON, version, draw, 1, arm, one.is_held_out});
            ++draw;
          }
        }
      }
    }
  }
  return comparisons_.size() - before;
}

template <class IsLost>
void draw_schedule::give_up(const IsLost& is_lost) {
  std::erase_if(outstanding_, [&](const auto& entry) {
    if (!is_lost(entry.second)) return false;
    const assignment& what = entry.second.what;
    if (what.stage == Stage::COMPARISON) comparisons_.push_back(what);
    return true;
  });
}

void draw_schedule::expire(std::uint64_t now_ms) {
  give_up([&](const issued_draw& one) { return one.issued_ms + options_.draw_limit_ms < now_ms; });
}

void draw_schedule::forget(std::uint64_t generator) {
  give_up([&](const issued_draw& one) { return one.generator == generator; });
}

}  // namespace hone
