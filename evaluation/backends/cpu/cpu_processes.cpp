#include "evaluation/backends/cpu/cpu_processes.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "evaluation/backends/cpu/cpu_session.hpp"
#include "evaluation/backends/cpu/module_session.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/sandbox/module_programs.hpp"
#include "tasks/program_functions.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::uint64_t arena_bytes = 1ULL << 30U;  // virtual; a page is allocated once touched
constexpr std::uint64_t private_bytes = 4ULL << 30U;
constexpr std::uint64_t min_oracle_bytes = 1ULL << 30U;
constexpr std::chrono::milliseconds open_limit{20000};
constexpr std::chrono::milliseconds constructor_limit{60000};

// Draws parameters with the module that a task was imported from.
class module_constructor final : public parameter_source {
 public:
  module_constructor(const task& t, std::unique_ptr<sandbox_session> process,
                     std::unique_ptr<arena> memory)
      : memory_(std::move(memory)), session_(std::move(process), *memory_) {
    // Parameters have the same shape in every case.
    session_.arrange(0, {}, layouts_of(t.parameters, t.cases.front()), 1);
  }

  value_set draw(std::uint64_t seed) override {
    session_.write_parameters({}, seed);
    if (const auto made = session_.prepare(steady::now() + constructor_limit); !made)
      throw reference_error(made.error().outcome, made.error().message);
    return session_.parameters();
  }

 private:
  std::unique_ptr<arena> memory_;
  module_session session_;
};

// Returns the size of an oracle's arena: half of the machine's memory, divided by its cores, each
// of which may be a device. Runs with noise keep twenty results, and each operator's errors.
std::uint64_t oracle_arena_bytes() {
  const auto memory = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto cores = static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  return std::max(min_oracle_bytes, memory / 2 / cores);
}

std::unique_ptr<arena> make_module_arena() {
  return std::make_unique<arena>(module_heap_begin + module_heap_bytes);
}

std::unique_ptr<sandbox_session> fork_from(std::shared_ptr<sandbox_zygote>& zygote,
                                           std::shared_ptr<sandbox_zygote> (*start)(),
                                           arena& memory) {
  for (int attempt = 0;; ++attempt) {
    try {
      if (zygote == nullptr) zygote = start();
      return zygote->fork_session(&memory, private_bytes);
    } catch (const std::exception&) {
      zygote.reset();  // the old zygote has died; a new one is tried once
      if (attempt > 0) throw;
    }
  }
}

}  // namespace

program_result<std::unique_ptr<program_session>> cpu_processes::open_candidate(
    const schema::Artifact::Reader& artifact, const task& t, time_budget& budget) {
  if (is_python_module(view(artifact.getPython()))) return open_module(artifact, t, budget);
  if (candidate_arena_ == nullptr) candidate_arena_ = std::make_unique<arena>(arena_bytes);
  candidate_arena_->forget();
  auto process = fork(*candidate_arena_);
  const program_source source{artifact.getPython(), t.inputs.size(), t.parameters.size()};
  const auto opened = budget.for_candidate(open_limit, [&](time_point deadline) {
    return process->open({source}, std::string(view(artifact.getCode())), true, deadline);
  });
  if (!opened) return failed(opened.error());
  return std::make_unique<cpu_session>(std::move(process), *candidate_arena_);
}

program_result<std::unique_ptr<program_session>> cpu_processes::open_module(
    const schema::Artifact::Reader& artifact, const task& t, time_budget& budget) {
  if (module_arena_ == nullptr) module_arena_ = make_module_arena();
  module_arena_->forget();
  auto process = fork_for_module(*module_arena_);
  const auto opened = budget.for_candidate(open_limit, [&](time_point deadline) {
    return process->open({module_program(artifact.getPython(), t)}, "", true, deadline);
  });
  if (!opened) return failed(opened.error());
  return std::make_unique<module_session>(std::move(process), *module_arena_);
}

std::unique_ptr<sandbox_session> cpu_processes::open_trusted_module(const task& t, arena& memory) {
  auto process = fork_for_module(memory);
  const auto opened = process->open({module_of(t)}, "", false, steady::now() + open_limit);
  if (!opened) throw reference_error(opened.error().outcome, opened.error().message);
  return process;
}

std::unique_ptr<program_session> cpu_processes::open_reference_module(const task& t) {
  if (reference_module_arena_ == nullptr) reference_module_arena_ = make_module_arena();
  reference_module_arena_->forget();
  return std::make_unique<module_session>(open_trusted_module(t, *reference_module_arena_),
                                          *reference_module_arena_);
}

std::unique_ptr<parameter_source> cpu_processes::open_constructor(const task& t) {
  auto memory = make_module_arena();
  auto process = open_trusted_module(t, *memory);
  return std::make_unique<module_constructor>(t, std::move(process), std::move(memory));
}

std::unique_ptr<program_session> cpu_processes::open_reference(const task& t) {
  if (reference_arena_ == nullptr) reference_arena_ = std::make_unique<arena>(arena_bytes);
  auto process =
      open_trusted({{t.reference, t.inputs.size(), t.parameters.size()}}, *reference_arena_);
  return std::make_unique<cpu_session>(std::move(process), *reference_arena_);
}

std::unique_ptr<program_session> cpu_processes::open_oracle(const task& t) {
  auto memory = std::make_unique<arena>(oracle_arena_bytes());
  auto process = open_trusted(reference_oracle::programs(t), *memory);
  return std::make_unique<cpu_session>(std::move(process), std::move(memory));
}

std::unique_ptr<sandbox_session> cpu_processes::fork(arena& memory) {
  return fork_from(zygote_, sandbox_zygote::start, memory);
}

std::unique_ptr<sandbox_session> cpu_processes::fork_for_module(arena& memory) {
  return fork_from(module_zygote_, sandbox_zygote::start_for_modules, memory);
}

std::unique_ptr<sandbox_session> cpu_processes::open_trusted(
    const std::vector<program_source>& programs, arena& memory) {
  auto process = fork(memory);
  const auto opened = process->open(programs, "", false, steady::now() + open_limit);
  if (!opened) throw reference_error(opened.error().outcome, opened.error().message);
  return process;
}

}  // namespace hone
