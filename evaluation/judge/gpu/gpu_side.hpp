#pragma once

#include <chrono>
#include <vector>

#include "evaluation/judge/gpu/gpu_task.hpp"
#include "evaluation/judge/paired_rounds.hpp"

namespace hone {

// One of the two programs of a timed case on a GPU: its session and its sets of inputs, with fresh contents before every sample.
class gpu_side final : public clocked_program {
 public:
  struct limits {
    std::size_t sets = 2;
    std::uint64_t flush_bytes = 0;
    std::chrono::milliseconds call{2000};
  };
  // `shares_session`: the task's oracle works in the same session, so that it must be arranged again now and then.
  gpu_side(judge_gpu& gpu, gpu_task& right, gpu_session& session, const limits& l, random_stream& random, bool shares_session);

  void take_parameters(std::uint64_t seed) override;
  std::vector<double> sample(std::size_t calls) override;
  std::size_t most_calls() const override { return limits_.sets; }

  // The sets over and over without a pause, for at least `ns` where a call takes `call_ns`.
  train_clock train(double ns, double call_ns, bool traced);

  // Of the last sample: how many calls, which set each used, and what that held.
  std::size_t last_calls() const { return last_.size(); }
  std::size_t set_of(std::size_t call) const { return last_.at(call); }
  std::uint64_t contents_of(std::size_t set) const { return held_.at(set); }

 private:
  void arrange();
  void write_parameters();
  void ensure_arranged();
  void write_inputs(std::span<const std::size_t> sets);
  std::vector<std::vector<std::uint64_t>> make_unreadable(std::span<const std::size_t> sets);

  judge_gpu* gpu_;
  gpu_task* right_;
  gpu_session* session_;
  limits limits_;
  random_stream* random_;
  bool shares_session_;
  std::uint64_t seen_calls_ = 0;
  std::vector<std::uint64_t> held_;  // seeds, by set
  std::vector<std::size_t> last_;
  std::size_t next_ = 0;
  std::vector<gpu_memory> staging_;
};

}  // namespace hone
