#include "tasks/teaching/teacher.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tasks/program_functions.hpp"

namespace hone {
namespace {

using nlohmann::json;
using steady = std::chrono::steady_clock;

constexpr std::size_t most_answer_bytes = 256U << 20U;
constexpr std::chrono::seconds answer_limit{300};  // loading torch on a busy machine included

json shape_of(const tensor_spec& tensor) {
  json shape = json::array();
  for (const dimension& one : tensor.shape)
    std::visit([&shape](const auto& size) { shape.push_back(size); }, one);
  return shape;
}

json describe(const task& t, std::string_view device_kind) {
  json tensors = json::array();
  for (const auto* list : {&t.inputs, &t.parameters}) {
    for (const tensor_spec& tensor : *list)
      tensors.push_back({{"name", tensor.name},
                         {"shape", shape_of(tensor)},
                         {"dtype", std::string(name_of(tensor.type))},
                         {"is_parameter", list == &t.parameters}});
  }
  json cases = json::array();
  for (const task_case& one : t.cases) {
    if (runs_on(one, device_kind)) cases.push_back({{"sizes", one.sizes}, {"timed", one.timed}});
  }
  return {{"name", t.name},
          {"reference", functions_of_program(t.reference)},
          {"relaxed", t.relaxed},
          {"tensors", std::move(tensors)},
          {"cases", std::move(cases)}};
}

}  // namespace

teacher::lesson teacher::write(const task& t, std::string_view device_kind, std::uint64_t first,
                               std::uint32_t count) {
  if (!python_.process.running())
    python_ = start_python(settings_.python, settings_.program, {}, "the teacher's process",
                           most_answer_bytes);
  const json request = {{"task", describe(t, device_kind)},
                        {"device", device_kind == "cpu" ? "cpu" : "cuda"},
                        {"seed", settings_.seed},
                        {"first", first},
                        {"count", count}};
  try {
    python_.connection.send(request.dump() + "\n");
    const auto line = python_.connection.read_line(steady::now() + answer_limit);
    if (!line) throw std::runtime_error("does not answer");
    const json answer = json::parse(*line);
    return {answer.at("documents"), answer.at("unfit")};
  } catch (const std::exception& e) {
    python_.process.kill();
    throw std::runtime_error("the teacher, task " + t.name + ": " + e.what());
  }
}

}  // namespace hone
