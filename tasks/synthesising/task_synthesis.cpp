#include "tasks/synthesising/task_synthesis.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "process/child_process.hpp"
#include "process/framing.hpp"
#include "process/line_connection.hpp"
#include "tasks/program_functions.hpp"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::size_t max_answer_bytes = 1U << 20U;
constexpr std::chrono::seconds end_limit{60};

child_process start_synthesis(const synthesis_options& options, int theirs) {
  child_options child;
  child.arguments = {options.python.string(), "-I", "-B", options.program.string()};
  inherit(child.environment, {"PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "CUDA_HOME",
                              "CUDA_VISIBLE_DEVICES"});
  child.descriptors = {{theirs, 0}, {theirs, 1}};
  return child_process(child);
}

json describe(const synthesis_options& options) {
  json given = json::array();
  for (const task& t : options.given)
    given.push_back({{"name", t.name}, {"reference", functions_of_program(t.reference)}});
  return {{"count", options.count},
          {"seed", options.seed},
          {"workers", options.workers},
          {"min_us", options.min_us},
          {"max_us", options.max_us},
          {"device", options.device},
          {"bound", options.bound},
          {"dtype", std::string(name_of(options.type))},
          {"given", std::move(given)},
          {"is_relaxed", options.is_relaxed},
          {"looks_imported", options.looks_imported}};
}

synthesised read_answer(const std::string& line) {
  const json answer = json::parse(line);
  synthesised one;
  one.unfit = answer.value("unfit", "");
  one.nearest = answer.value("nearest", "");
  one.similarity = answer.value("similarity", 0.0);
  if (!one.unfit.empty()) return one;
  one.us = answer.at("us");
  one.operators = answer.at("operators");
  const std::string name = answer.at("name");
  one.made = parse_task(answer.at("text"), name + ".toml");
  return one;
}

}  // namespace

void synthesise_tasks(const synthesis_options& options,
                      const std::function<void(const synthesised&)>& listener) {
  if (options.count == 0) return;
  auto [ours, theirs] = socket_pair();
  child_process drawer = start_synthesis(options, theirs.get());
  theirs.reset();
  line_connection connection(std::move(ours), "the process that draws tasks", max_answer_bytes);
  connection.send(describe(options).dump());
  connection.end_sending();
  for (std::size_t made = 0; made < options.count;) {
    const synthesised one = read_answer(connection.read_line().value());
    made += one.made ? 1 : 0;
    listener(one);
  }
  if (!drawer.wait(std::chrono::steady_clock::now() + end_limit))
    throw std::runtime_error("the process that draws tasks does not end");
}

}  // namespace hone
