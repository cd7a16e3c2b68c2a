#include "tasks/compiling/compiled_references.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "messages/names.hpp"
#include "process/child_process.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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
  return {{"reference", job.of->reference}, {"tensors", tensors}, {"file", file.string()}};
}

// The Python process that compiles.
class compiling_process {
 public:
  compiling_process(const compiling_options& options, const json& work) {
    auto [ours, theirs] = socket_pair();
    connection_ = std::move(ours);
    child_options child;
    child.arguments = {options.python.string(), "-I", "-B", options.program.string()};
    inherit(child.environment, {"PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "CUDA_HOME",
                                "CUDA_VISIBLE_DEVICES", "CC", "CXX"});
    child.descriptors = {{theirs.get(), 0}, {theirs.get(), 1}};
    process_ = child_process(child);
    const std::string text = work.dump();
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t n =
          send(connection_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) fail();
      sent += static_cast<std::size_t>(n);
    }
    shutdown(connection_.get(), SHUT_WR);
  }

  // Waits until the process has ended, because its workers hold a GPU's memory until then.
  void await_end() {
    if (!process_.wait(std::chrono::steady_clock::now() + std::chrono::seconds(60))) fail();
  }

  json next_answer() {
    std::size_t end = 0;
    while ((end = received_.find('\n')) == std::string::npos) {
      char buffer[4096];
      const ssize_t n = read(connection_.get(), buffer, sizeof buffer);
      if (n <= 0) fail();
      received_.append(buffer, static_cast<std::size_t>(n));
    }
    json answer = json::parse(received_.substr(0, end));
    received_.erase(0, end + 1);
    return answer;
  }

 private:
  [[noreturn]] static void fail() {
    throw std::runtime_error("the process that compiles references has ended");
  }

  child_process process_;
  unique_fd connection_;
  std::string received_;
};

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
  compiling_process process(options, work);
  std::size_t failed = 0;
  for (std::size_t done = 0; done < jobs.size(); ++done) {
    const json answer = process.next_answer();
    const compiling_job& job = jobs.at(answer.at("number").get<std::size_t>());
    const std::string error = answer.at("error");
    failed += error.empty() ? 0 : 1;
    listener(*job.of, *job.at, answer.at("seconds"), error);
  }
  process.await_end();
  return failed;
}

}  // namespace hone
