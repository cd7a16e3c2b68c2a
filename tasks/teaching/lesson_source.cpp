#include "tasks/teaching/lesson_source.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hone {
namespace {

using nlohmann::json;
using steady = std::chrono::steady_clock;

constexpr std::size_t max_line_bytes = 16U << 20U;
constexpr std::chrono::seconds line_limit{300};  // loading torch on a busy machine included

}  // namespace

void lesson_process::start() {
  std::vector<std::string> arguments;
  const auto add = [&](const char* option, std::string value) {
    arguments.insert(arguments.end(), {option, std::move(value)});
  };
  add("--seed", std::to_string(settings_.seed));
  add("--first", std::to_string(first_));
  add("--step", std::to_string(step_));
  add("--variants", std::to_string(settings_.variants));
  add("--tier-1-share", std::to_string(settings_.tier_1_share));
  add("--tier-1-last-share", std::to_string(settings_.tier_1_last_share));
  add("--mix-numbers", std::to_string(settings_.mix_lessons));
  add("--contrast-share", std::to_string(settings_.contrast_share));
  add("--device", settings_.device_kind);
  if (!settings_.excluded.empty()) add("--exclude", settings_.excluded.string());
  // The step that is under way when a run is stopped is finished first.
  constexpr bool ignores_stop_signals = true;
  python_ = start_python(settings_.python, settings_.program, arguments, "the stream's process",
                         max_line_bytes, ignores_stop_signals);
}

lesson lesson_process::next() {
  if (!python_.process.running()) start();
  try {
    const auto line = python_.connection.read_line(steady::now() + line_limit);
    if (!line) throw std::runtime_error("writes nothing");
    const json given = json::parse(*line);
    lesson made;
    made.number = given.at("number");
    if (given.contains("skipped")) {
      made.skipped = given.at("skipped");
      return made;
    }
    made.name = given.at("name");
    made.task = given.at("task");
    made.documents = given.at("documents");
    if (given.contains("contrast")) {
      const json& contrast = given.at("contrast");
      made.contrast.emplace().document = contrast.at("document");
      for (const json& shown : contrast.at("shown"))
        made.contrast->shown.push_back({shown.at("estimate"), shown.at("document")});
    }
    return made;
  } catch (const std::exception& e) {
    python_.process.kill();
    throw std::runtime_error(std::string("the stream of synthesised tasks: ") + e.what());
  }
}

}  // namespace hone
