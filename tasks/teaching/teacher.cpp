#include "tasks/teaching/teacher.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tasks/program_functions.hpp"

namespace hone {
namespace {

using nlohmann::json;
using steady = std::chrono::steady_clock;

constexpr std::size_t max_answer_bytes = 256U << 20U;
constexpr int max_tries = 2;  // for a task whose process ends

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

// The document of a variant that is the reference as it is.
std::string reference_document(const task& t) {
  return "## Performance Analysis\nThe time goes to the operators of the reference, which stay as "
         "they are.\n## Algorithm Design\nThe operators stay as they are.\n"
         "## Code Implementation\n```python\n" +
         functions_of_program(t.reference) + "```\n";
}

// A task that the teacher can write for if it can write for any.
json smallest_task() {
  return {{"name", "smallest"},
          {"reference", "def forward(x: Tensor) -> Tensor:\n    return torch.relu(x)\n"},
          {"relaxed", false},
          {"tensors", json::array({json{{"name", "x"},
                                        {"shape", json::array({8})},
                                        {"dtype", "float32"},
                                        {"is_parameter", false}}})},
          {"cases", json::array({json{{"sizes", json::object()}, {"timed", true}}})}};
}

class no_answer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace

teacher::lesson teacher::ask(const std::string& request) {
  if (!python_.process.running())
    python_ = start_python(settings_.python, settings_.program, {}, "the teacher's process",
                           max_answer_bytes);
  python_.connection.send(request + "\n");
  const auto line = python_.connection.read_line(steady::now() + settings_.answer_limit);
  if (!line)
    throw no_answer("no answer within " + std::to_string(settings_.answer_limit.count()) + " s");
  const json answer = json::parse(*line);
  return {answer.at("documents"), answer.at("unfit")};
}

teacher::lesson teacher::write(const task& t, std::string_view device_kind, std::uint64_t first,
                               std::uint32_t count) {
  const auto request_for = [&](json about) {
    return json{{"task", std::move(about)},
                {"device", device_kind == "cpu" ? "cpu" : "cuda"},
                {"seed", settings_.seed},
                {"first", first},
                {"count", count}}
        .dump();
  };
  for (int tries = 1; !failed_.contains(t.id); ++tries) {
    try {
      return ask(request_for(describe(t, device_kind)));
    } catch (const std::exception& e) {
      python_.process.kill();
      const bool is_given_up = tries == max_tries || dynamic_cast<const no_answer*>(&e) != nullptr;
      if (!is_given_up) continue;
      failed_[t.id] = std::string("the teacher failed: ") + e.what();
    }
    try {
      ask(request_for(smallest_task()));  // the task is at fault, and not the installation
    } catch (const std::exception& e) {
      python_.process.kill();
      throw std::runtime_error("the teacher, task " + t.name + ": " + e.what());
    }
  }
  return {{reference_document(t)}, failed_.at(t.id)};
}

}  // namespace hone
