#include "tasks/compiling/compiled_references.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "messages/names.hpp"
#include "process/child_process.hpp"
#include "process/framing.hpp"
#include "process/line_connection.hpp"
#include "tasks/program_functions.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t max_answer_bytes = 1U << 20U;
constexpr std::chrono::seconds end_limit{60};

struct compiling_job {
  const task* of;
  const task_case* at;
};

std::vector<compiling_job> jobs_of(const std::vector<task>& tasks, const fs::path& folder) {
  std::vector<compiling_job> jobs;
  for (const task& t : tasks) {
    for (const task_case& at : t.cases) {
      if (at.timed && runs_on(at, "cuda") && !fs::exists(compiled_reference(folder, t, at)))
        jobs.push_back({&t, &at});
    }
  }
  return jobs;
}

json describe_job(const compiling_job& job, const fs::path& folder) {
  json tensors = json::array();
  for (const auto* specs : {&job.of->inputs, &job.of->parameters}) {
    for (const tensor_spec& spec : *specs)
      tensors.push_back({resolve_shape(spec, *job.at), std::string(name_of(spec.type))});
  }
  const fs::path file = compiled_reference(folder, *job.of, *job.at);
  return {{"reference", functions_of_program(job.of->reference)},
          {"tensors", tensors},
          {"file", file.string()}};
}

// Starts the Python process that compiles, with `theirs` as its standard input and output.
child_process start_compiler(const compiling_options& options, int theirs) {
  child_options child;
  child.arguments = {options.python.string(), "-I", "-B", options.program.string()};
  inherit(child.environment, {"PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "CUDA_HOME",
                              "CUDA_VISIBLE_DEVICES", "CC", "CXX"});
  child.descriptors = {{theirs, 0}, {theirs, 1}};
  return child_process(child);
}

}  // namespace

fs::path compiled_reference(const fs::path& folder, const task& t, const task_case& at) {
  std::string sizes = print_sizes(at);
  std::replace(sizes.begin(), sizes.end(), ' ', '_');
  return folder / t.name / to_string(t.id) / ((sizes.empty() ? "case" : sizes) + ".so");
}

std::size_t compile_references(const std::vector<task>& tasks, const compiling_options& options,
                               const compiling_listener& listener) {
  const fs::path folder = fs::absolute(options.folder);
  const auto jobs = jobs_of(tasks, folder);
  if (jobs.empty()) return 0;
  json work = {{"device", "cuda"},
               {"workers", options.workers},
               {"max_autotune", options.max_autotune},
               {"cache", (folder / "inductor").string()},
               {"jobs", json::array()}};
  for (const compiling_job& job : jobs) work["jobs"].push_back(describe_job(job, folder));
  auto [ours, theirs] = socket_pair();
  child_process compiler = start_compiler(options, theirs.get());
  theirs.reset();
  line_connection connection(std::move(ours), "the process that compiles references",
                             max_answer_bytes);
  connection.send(work.dump());
  connection.end_sending();
  std::size_t failed = 0;
  for (std::size_t done = 0; done < jobs.size(); ++done) {
    const json answer = json::parse(connection.read_line().value());
    const compiling_job& job = jobs.at(answer.at("number").get<std::size_t>());
    const std::string error = answer.at("error");
    failed += error.empty() ? 0 : 1;
    listener(*job.of, *job.at, answer.at("seconds"), error);
  }
  // The compiler's own processes hold a GPU's memory until it has ended.
  if (!compiler.wait(std::chrono::steady_clock::now() + end_limit))
    throw std::runtime_error("the process that compiles references does not end");
  return failed;
}

}  // namespace hone
