#include "evaluation/backends/cuda/gpu_sessions.hpp"

#include <chrono>

#include "evaluation/judge/oracle.hpp"
#include "messages/ids.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds open_limit{20000};

// Opens the reference's programs. Throws reference_error.
void open_programs_of(const task& t, gpu_process& in, const opened_settings& asked) {
  const auto opened =
      in.open(reference_oracle::programs(t), nullptr, asked, clock::now() + open_limit);
  if (!opened) throw reference_error(opened.error().outcome, opened.error().message);
}

}  // namespace

gpu_sessions::gpu_sessions(gpu_context& gpu, gpu_processes& processes, const compiled_block& tools,
                           int launch_core, std::uint64_t arena_bytes)
    : gpu_(&gpu),
      candidate_arena_(gpu, arena_bytes),
      reference_arena_(gpu, arena_bytes),
      processes_(&processes) {
  processes.attach(tools, launch_core, candidate_arena_, reference_arena_);
}

program_result<gpu_session*> gpu_sessions::open_candidate(role in,
                                                          const schema::Artifact::Reader& artifact,
                                                          const task& t, time_budget& budget) {
  candidate_arena_.poison_all(*gpu_);
  gpu_->finish();
  gpu_process& process = processes_->candidate(in);
  const settings asked = parse_settings(view(artifact.getSettings()));
  const program_source source{std::string(view(artifact.getPython())), t.inputs.size(),
                              t.parameters.size()};
  const auto opened = budget.for_candidate(open_limit, [&](time_point deadline) {
    return process.open({source}, &artifact, {asked}, deadline);
  });
  if (!opened) return failed(opened.error());
  candidate_tunes_ = asked.cudnn_benchmark && opened->convolutions > 0;
  return &candidate_session_.emplace(*gpu_, candidate_arena_, process);
}

gpu_session& gpu_sessions::open_reference_as_candidate(role in, const task& t) {
  candidate_arena_.poison_used(*gpu_);
  gpu_->finish();
  gpu_process& process = processes_->candidate(in);
  open_programs_of(t, process, {});
  candidate_tunes_ = false;
  return candidate_session_.emplace(*gpu_, candidate_arena_, process);
}

gpu_session& gpu_sessions::reference(const task& t) {
  gpu_process& process = processes_->reference();
  const opened_reference wanted{t.id, reference_settings_, process.serial()};
  if (opened_reference_ == wanted) return *reference_session_;
  opened_reference_.reset();
  reference_session_.reset();
  reference_arena_.poison_used(*gpu_);
  gpu_->finish();
  open_programs_of(t, process, reference_settings_);
  opened_reference_ = wanted;
  return reference_session_.emplace(*gpu_, reference_arena_, process);
}

void gpu_sessions::replace_candidate(role in) {
  candidate_session_.reset();
  processes_->replace(in);
  processes_->await_all();
}

void gpu_sessions::replace_reference() {
  opened_reference_.reset();
  reference_session_.reset();
  processes_->replace_reference();
  processes_->await_all();
}

}  // namespace hone
