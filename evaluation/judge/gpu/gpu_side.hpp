#pragma once

#include <chrono>
#include <vector>

#include "evaluation/judge/gpu/flushes_ahead.hpp"
#include "evaluation/judge/gpu/gpu_task.hpp"
#include "evaluation/judge/paired_rounds.hpp"

namespace hone {

// One of the two programs of a timed case on a GPU: its session and its sets of inputs, with fresh
// contents before every sample.
class gpu_side final : public clocked_program {
 public:
  struct limits {
    std::size_t sets = 2;
    std::uint64_t cache_bytes = 0;  // of L2, flushed before each timed call
    std::uint64_t most_offset = 0;  // where in its arena it may begin
    std::chrono::milliseconds call{2000};
  };
  // In a reference's session the task's oracle works as well, so that it is arranged again now and
  // then; what fails there is the task's fault and thrown as reference_error, not as
  // timing_failure.
  enum class part { candidate, reference };
  gpu_side(judge_gpu& gpu, gpu_task& of, gpu_session& session, const limits& l,
           random_stream& random, part plays);

  // In a round both have the same head start from now on, which is what the slower host of the two
  // needs. Both must stay where they are.
  static void share_head_start(gpu_side& candidate, gpu_side& reference);

  void take_parameters(std::uint64_t seed) override;
  void begin_round() override;
  std::vector<double> sample(std::size_t calls) override;
  std::size_t most_calls() const override { return limits_.sets; }

  // A sample like the last one but for one call, whose contents are drawn as `how`: not for its
  // times. The call.
  std::size_t sample_otherwise(distribution how);
  // Nanoseconds of a call, behind what loads code.
  double try_call();

  // By round, what the host saw of a call beyond what the call's own clock says, with what empties
  // the cache: of the calls that count, the mean.
  const std::vector<double>& unseen_ns() const { return unseen_ns_; }
  // Which part of a call, as the host sees it, the host is busy putting it on the stream: the
  // median of all.
  double host_share() const;

  // The sets over and over without a pause, for at least `ns` where a call takes `call_ns`.
  train_clock train(double ns, double call_ns, bool traced);

  // Of the last sample: how many calls, which set each used, and what that held.
  std::size_t last_calls() const { return last_.size(); }
  std::size_t set_of(std::size_t call) const { return last_.at(call); }
  struct contents {
    std::uint64_t seed = 0;
    distribution how = distribution::declared;
  };
  const contents& contents_of(std::size_t set) const { return held_.at(set); }

 private:
  void arrange();
  void write_parameters();
  void ensure_arranged();
  [[noreturn]] void fail(const program_failure& why) const;
  void take_sets(std::size_t calls);
  std::vector<call_clock> time_taken();
  std::uint32_t flushes_needed() const;
  void write_inputs(std::span<const std::size_t> sets);
  std::vector<std::vector<std::uint64_t>> make_unreadable(std::span<const std::size_t> sets);

  judge_gpu* gpu_;
  gpu_task* task_;
  gpu_session* session_;
  limits limits_;
  random_stream* random_;
  bool is_reference_;
  std::uint64_t seen_calls_ = 0;
  std::vector<contents> held_;  // by set
  std::vector<std::size_t> last_;
  std::vector<double> unseen_ns_;
  std::vector<double> host_shares_;  // by call
  host_time host_;
  double flush_ns_ = 0;               // one of those before the last call
  const gpu_side* beside_ = nullptr;  // whom the head start is shared with
  std::uint32_t flushes_ = 0;         // of the round; 0: there is none
  bool begins_round_ = false;
  std::size_t sampled_ = 1;  // calls of the last sample
  std::size_t next_ = 0;
  std::vector<gpu_memory> staging_;
};

}  // namespace hone
