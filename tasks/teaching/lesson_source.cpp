#include "tasks/teaching/lesson_source.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "process/framing.hpp"

namespace hone {
namespace {

using nlohmann::json;
using steady = std::chrono::steady_clock;

constexpr std::size_t most_line_bytes = 16U << 20U;
constexpr std::chrono::seconds line_limit{300};  // loading torch on a busy machine included

}  // namespace

void lesson_process::start() {
  auto [ours, theirs] = socket_pair();
  connection_ = line_connection(std::move(ours), "the stream's process", most_line_bytes);
  child_options options;
  options.arguments = {settings_.python.string(),
                       "-I",
                       "-B",
                       settings_.program.string(),
                       "--seed",
                       std::to_string(settings_.seed),
                       "--first",
                       std::to_string(first_),
                       "--step",
                       std::to_string(step_),
                       "--variants",
                       std::to_string(settings_.variants),
                       "--tier-1-share",
                       std::to_string(settings_.tier_1_share),
                       "--device",
                       settings_.device_kind};
  if (!settings_.excluded.empty()) {
    options.arguments.emplace_back("--exclude");
    options.arguments.push_back(settings_.excluded.string());
  }
  inherit(options.environment, {"PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH"});
  options.environment.emplace_back("OMP_NUM_THREADS=1");
  options.descriptors = {{theirs.get(), 0}, {theirs.get(), 1}};
  options.ignores_stop_signals = true;  // the step that is under way is finished first
  process_ = child_process(options);
}

lesson lesson_process::next() {
  if (!process_.running()) start();
  try {
    const auto line = connection_.read_line(steady::now() + line_limit);
    if (!line) throw std::runtime_error("writes nothing");
    const json given = json::parse(*line);
    lesson made;
    made.number = given.at("number");
    if (given.contains("skipped")) {
      made.skipped = given.at("skipped");
      return made;
    }
    made.tier = given.at("tier");
    made.name = given.at("name");
    made.task = given.at("task");
    made.documents = given.at("documents");
    return made;
  } catch (const std::exception& e) {
    process_.kill();
    throw std::runtime_error(std::string("the stream of synthesised tasks: ") + e.what());
  }
}

}  // namespace hone
