#include "evaluation/backends/cpu/cpu_processes.hpp"

#include <chrono>
#include <cstdint>
#include <string>

#include "evaluation/backends/cpu/cpu_session.hpp"
#include "evaluation/judge/oracle.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::uint64_t arena_bytes = 1ULL << 30U;  // virtual; a page is allocated once touched
constexpr std::uint64_t private_bytes = 4ULL << 30U;
constexpr std::chrono::milliseconds open_limit{20000};

}  // namespace

program_result<std::unique_ptr<program_session>> cpu_processes::open_candidate(
    const schema::Artifact::Reader& artifact, const task& t, time_budget& budget) {
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

std::unique_ptr<program_session> cpu_processes::open_reference(const task& t) {
  if (reference_arena_ == nullptr) reference_arena_ = std::make_unique<arena>(arena_bytes);
  auto process =
      open_trusted({{t.reference, t.inputs.size(), t.parameters.size()}}, *reference_arena_);
  return std::make_unique<cpu_session>(std::move(process), *reference_arena_);
}

std::unique_ptr<program_session> cpu_processes::open_oracle(const task& t) {
  auto memory = std::make_unique<arena>(arena_bytes);
  auto process = open_trusted(reference_oracle::programs(t), *memory);
  return std::make_unique<cpu_session>(std::move(process), std::move(memory));
}

std::unique_ptr<sandbox_session> cpu_processes::fork(arena& memory) {
  for (int attempt = 0;; ++attempt) {
    try {
      if (zygote_ == nullptr) zygote_ = sandbox_zygote::start();
      return zygote_->fork_session(&memory, private_bytes);
    } catch (const std::exception&) {
      zygote_.reset();  // the old zygote has died; a new one is tried once
      if (attempt > 0) throw;
    }
  }
}

std::unique_ptr<sandbox_session> cpu_processes::open_trusted(
    const std::vector<program_source>& programs, arena& memory) {
  auto process = fork(memory);
  const auto opened = process->open(programs, "", false, steady::now() + open_limit);
  if (!opened) throw reference_error(opened.error().outcome, opened.error().message);
  return process;
}

}  // namespace hone
