#include "launch/importing.hpp"

#include <stdexcept>
#include <utility>

#include "launch/files.hpp"
#include "process/find_program.hpp"
#include "tasks/operators.hpp"

namespace hone {

import_worker::settings worker_settings(const import_options& options,
                                        const std::filesystem::path& scratch,
                                        std::vector<std::filesystem::path> readable) {
  return {.python = find_python(),
          .program = find_python_program("tasks/importing/serve.py"),
          .folder = scratch,
          .readable = std::move(readable),
          .seconds = options.seconds,
          .bytes = std::uint64_t(options.megabytes) << 20U,
          .varies_constants = options.varies_constants,
          .is_relaxed = options.precision == "relaxed",
          .fixes_sizes = options.fixes_sizes,
          .dtype = options.dtype};
}

program_translator::program_translator(const import_options& options,
                                       std::vector<std::filesystem::path> readable)
    : worker_(worker_settings(options, scratch_.path(), std::move(readable))) {}

import_worker::translated_program program_translator::translate(const std::filesystem::path& file,
                                                                const task& t,
                                                                const std::string& name) {
  if (t.source_language != "python")
    throw std::runtime_error("the task " + t.name +
                             " has no PyTorch module (hone task import makes tasks that have one), "
                             "whose parameters those of ModelNew could be matched with");
  std::vector<std::string> parameters;
  for (const tensor_spec& one : t.parameters) parameters.push_back(one.name);
  return worker_.translate(file, t.source_text, parameters, name);
}

task task_of(const imported_module& module, const std::string& name) {
  for (const std::string& used : module.operators) {
    if (!is_allowed_operator(used))
      throw std::runtime_error("the operator " + used + " is not allowed in a reference");
  }
  std::vector<data_file> data;
  if (!module.data.empty()) data.push_back({name + ".safetensors", module.data});
  task made = parse_task(module.text, name + ".toml", data);
  if (made.name != name) throw std::runtime_error("the generated task has the name " + made.name);
  return made;
}

}  // namespace hone
