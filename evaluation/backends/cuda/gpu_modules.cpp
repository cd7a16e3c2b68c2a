#include "evaluation/backends/cuda/gpu_modules.hpp"

#include <chrono>
#include <utility>

#include "evaluation/judge/oracle.hpp"
#include "evaluation/sandbox/module_programs.hpp"
#include "messages/ids.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds open_limit{20000};
constexpr std::uint64_t times_the_cache = 4;
constexpr std::size_t max_spares = 4;

}  // namespace

gpu_modules::gpu_modules(gpu_context& gpu, const gpu_facts& facts, std::string visible,
                         int launch_core, gpu_arena& candidates, gpu_arena& references)
    : gpu_(&gpu),
      l2_bytes_(facts.l2_bytes),
      visible_(std::move(visible)),
      launch_core_(launch_core),
      candidates_{&candidates, gpu.make_event()},
      references_{&references, gpu.make_event()} {}

std::unique_ptr<gpu_process> gpu_modules::start(const place& in) {
  // Each process has a fence to itself, which admits facts about no other process.
  const module_interpreter python(module_interpreter::device::gpu);
  auto started = std::make_unique<gpu_process>(python, visible_);
  gpu_attachment attachment;
  attachment.handle = in.arena->handle();
  attachment.bytes = in.arena->size();
  attachment.head = in.arena->head_descriptor();
  attachment.begins = in.begins->handle();
  attachment.core = launch_core_;
  started->attach(attachment);
  return started;
}

// Finds out how long a flush takes, which tells how many of them give the host its head start.
const flush_memory& gpu_modules::flush() {
  if (flush_) return *flush_;
  constexpr int flushes = 16;
  flush_.emplace(flush_memory{gpu_->allocate(times_the_cache * l2_bytes_), 0});
  const auto flush_all = [this] {
    for (int i = 0; i < flushes; ++i)
      gpu_->fill(flush_->memory.at(), static_cast<unsigned char>(i), flush_->memory.bytes());
    gpu_->finish();
  };
  flush_all();
  const auto begin = clock::now();
  flush_all();
  flush_->each_ns =
      std::chrono::duration<double, std::nano>(clock::now() - begin).count() / flushes;
  return *flush_;
}

program_result<gpu_session*> gpu_modules::open_candidate(const schema::Artifact::Reader& artifact,
                                                         const task& t, time_budget& budget) {
  const gpu_module_session& own = reference(t);
  end_candidate();
  ensure_spares();
  candidate_ = std::move(spares_.front());
  spares_.pop_front();
  candidates_.arena->poison_all(*gpu_);
  gpu_->finish();
  const auto opened = budget.for_candidate(open_limit, [&](time_point deadline) {
    return candidate_->open({module_program(std::string(view(artifact.getPython())), t)}, &artifact,
                            {}, deadline);
  });
  if (!opened) return failed(opened.error());
  candidate_->freeze();
  return &candidate_session_.emplace(*gpu_, *candidates_.arena, *candidate_, *candidates_.begins,
                                     flush(), &own);
}

// Waits for all of them, because a starting process would disturb timing.
void gpu_modules::ensure_spares() {
  if (!spares_.empty()) return;
  while (spares_.size() < max_spares) spares_.push_back(start(candidates_));
  for (const auto& one : spares_) one->await_ready();
}

void gpu_modules::end_candidate() {
  candidate_session_.reset();
  candidate_.reset();
}

gpu_module_session& gpu_modules::reference(const task& t) {
  if (reference_ != nullptr && !reference_->alive()) {
    reference_session_.reset();
    reference_.reset();
  }
  if (reference_session_ && opened_reference_ == t.id) return *reference_session_;
  end_candidate();  // its session refers to the reference's
  reference_session_.reset();
  if (reference_ == nullptr) {
    reference_ = start(references_);
    ensure_spares();
    reference_->await_ready();
  }
  references_.arena->poison_used(*gpu_);
  gpu_->finish();
  const auto opened = reference_->open({module_of(t)}, nullptr, {}, clock::now() + open_limit);
  if (!opened) throw reference_error(opened.error().outcome, opened.error().message);
  opened_reference_ = t.id;
  return reference_session_.emplace(*gpu_, *references_.arena, *reference_, *references_.begins,
                                    flush(), nullptr);
}

void gpu_modules::end() {
  for (const auto& one : spares_) one->send_kill();
  end_candidate();
  reference_session_.reset();
  reference_.reset();
  spares_.clear();
}

}  // namespace hone
