// Runs variant documents on the CPU device, without judging them, and writes what they return:
//   document_outputs < REQUESTS
// A request is a line of JSON: task, a task file; text, a document; calls, a list of objects with
// arguments and outputs, which name safetensors files. The arguments of a call, inputs first, are
// named 0, 1, ... and so are the outputs. The answer is a line of JSON: problem, which is null, or
// says why a document has no outputs.

#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "evaluation/backends/cpu/cpu_processes.hpp"
#include "evaluation/compile_ahead.hpp"
#include "evaluation/devices.hpp"
#include "evaluation/judge/time_budget.hpp"
#include "tasks/safetensors.hpp"

namespace hone::benchmark {
namespace {

constexpr auto call_limit = std::chrono::seconds(30);

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be read");
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

dtype type_of(const safetensor& tensor) {
  for (const dtype type : all_dtypes) {
    if (safetensors_name_of(type) == tensor.dtype) return type;
  }
  throw std::runtime_error(tensor.name + ": has the unknown type " + tensor.dtype);
}

// Returns the tensors that are named 0, 1, ...
value_set read_values(const std::string& path) {
  const std::string file = read_file(path);
  const std::vector<safetensor> tensors = parse_safetensors(file);
  value_set values(tensors.size());
  for (const safetensor& tensor : tensors) {
    const auto* bytes = reinterpret_cast<const std::byte*>(tensor.bytes.data());
    values.at(std::stoul(tensor.name)) = {{type_of(tensor), tensor.shape},
                                          {bytes, bytes + tensor.bytes.size()}};
  }
  return values;
}

void write_values(const std::string& path, const value_set& values) {
  std::vector<safetensor> tensors;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [layout, bytes] = values[i];
    tensors.push_back({std::to_string(i),
                       std::string(safetensors_name_of(layout.type)),
                       layout.shape,
                       {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
  }
  std::ofstream out(path, std::ios::binary);
  write_safetensors(out, tensors);
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

class document_runner {
 public:
  document_runner() : type_(find_devices().cpu), compiler_(variant_compiler::limits{}) {}

  program_result<void> run(const nlohmann::json& request) {
    const task t = load_task(request.at("task").get<std::string>());
    const auto compiled = compile_document(request.at("text"), t, *type_, compiler_);
    if (!compiled.artifact) return failed(compiled.artifact.error());
    time_budget budget;
    const auto session = processes_.open_candidate(**compiled.artifact, t, budget);
    if (!session) return failed(session.error());
    for (const auto& call : request.at("calls")) {
      if (auto made = run_call(**session, t, call); !made) return made;
    }
    return {};
  }

 private:
  static program_result<void> run_call(program_session& session, const task& t,
                                       const nlohmann::json& call) {
    value_set inputs = read_values(call.at("arguments"));
    if (inputs.size() != t.inputs.size() + t.parameters.size())
      throw std::runtime_error(t.name + ": a call has another number of arguments");
    const auto first_parameter = inputs.begin() + static_cast<std::ptrdiff_t>(t.inputs.size());
    const value_set parameters(first_parameter, inputs.end());
    inputs.erase(first_parameter, inputs.end());
    session.arrange(0, layouts_of(inputs), layouts_of(parameters), 1);
    session.write_parameters(parameters);
    session.write_inputs(0, inputs);
    session.require_row_major(~std::uint64_t{0});
    const std::size_t set = 0;
    const auto ran = session.run({&set, 1}, std::chrono::steady_clock::now() + call_limit);
    if (!ran) return failed(ran.error());
    const auto outputs = session.outputs(0);
    if (!outputs) return failed(outputs.error());
    write_values(call.at("outputs"), *outputs);
    return {};
  }

  record<schema::DeviceType> type_;
  variant_compiler compiler_;
  cpu_processes processes_;
};

int answer_requests() {
  document_runner runner;
  for (std::string line; std::getline(std::cin, line);) {
    const auto ran = runner.run(nlohmann::json::parse(line));
    nlohmann::json answer = {{"problem", nullptr}};
    if (!ran)
      answer["problem"] = std::string(name_of(ran.error().outcome)) + ": " + ran.error().message;
    std::cout << answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace hone::benchmark

int main() {
  try {
    return hone::benchmark::answer_requests();
  } catch (const std::exception& e) {
    std::cerr << "document_outputs: " << e.what() << "\n";
    return 1;
  }
}
