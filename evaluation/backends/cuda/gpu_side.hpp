#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "evaluation/backends/cuda/gpu_task.hpp"
#include "evaluation/backends/cuda/head_start.hpp"
#include "evaluation/judge/sampled_side.hpp"
#include "evaluation/judge/time_budget.hpp"

namespace hone {

// Time that a program's first call in a process may take in addition to the limit for a call:
// LibTorch loads the code of an operator when it is first called, and compiles some.
inline constexpr std::chrono::milliseconds loading_limit{8000};
// cuDNN times its algorithms in the first call, for each convolution of a network.
inline constexpr std::chrono::milliseconds tuning_limit{20000};

// One of the two programs of a timed case on a GPU: its session and its input sets, with fresh
// contents before every sample. The task uses a reference's session to compute expected outputs as
// well, after which the side arranges the session again. Everything passed by reference, except the
// limits, must outlive the side.
class gpu_side final : public sampled_side {
 public:
  struct limits {
    std::size_t sets = 2;           // input sets
    std::uint64_t cache_bytes = 0;  // size of the L2 cache, which is flushed before each timed call
    std::uint64_t max_offset = 0;   // largest offset in its arena at which the side may begin
    std::chrono::milliseconds call{2000};  // for one call
    // For the first call in addition: loading_limit, and tuning_limit where it may try algorithms.
    std::chrono::milliseconds first{loading_limit};
    double long_call_ns = hone::long_call_ns;  // length from which a call is a run by itself
  };
  gpu_side(gpu_context& gpu, gpu_task& of, gpu_session& session, const limits& l,
           time_budget& budget, random_stream& random, role plays);

  // Times both sides in the same way from now on. In every round they have the same head start, the
  // one that the side with the slower host needs. Neither side may be moved afterwards.
  static void pair_up(gpu_side& candidate, gpu_side& reference);

  void set_parameters(const drawn_contents& drawn) override;
  void begin_round(const drawn_round& round) override;
  std::vector<double> sample(std::size_t calls) override;
  std::size_t max_calls() const override { return limits_.sets; }

  // Makes two calls, of which the first may load code. Returns the nanoseconds of the second.
  double try_call();

  // Returns for each round the host-side time per call that the call's own clock does not show,
  // flushes included: the mean over the calls that count. Nanoseconds.
  const std::vector<double>& unseen_ns() const { return unseen_ns_; }
  // Returns the median share of a call, by the host's clock, during which the host launches it.
  double host_share() const;

  // Makes a burst over all input sets. It lasts at least `ns` if a call takes `call_ns`.
  burst_clock burst(double ns, double call_ns, bool traced);

  // The last sample: its number of calls, the set that each call used, and the contents of a set.
  struct contents {
    std::uint64_t seed = 0;
    distribution how = distribution::declared;
    drawn_contents parameters{};
    bool operator==(const contents&) const = default;
  };
  std::size_t last_calls() const { return last_.size(); }
  std::size_t set_of(std::size_t call) const { return last_.at(call); }
  const contents& contents_of(std::size_t set) const { return held_.at(set); }
  // Returns the call of the last sample that had these contents, if its outputs can still be read.
  std::optional<std::size_t> readable_call_on(const contents& wanted) const;

 private:
  void arrange();
  void write_parameters();
  void ensure_arranged();
  template <class Work>
  auto charged(std::chrono::milliseconds limit, Work&& work) -> decltype(work(time_point()));
  void take_sets(std::size_t calls);
  std::vector<call_clock> time_last_sets();
  std::uint32_t flushes_needed() const;
  void write_inputs(std::span<const std::size_t> sets);
  void write_inputs_by_staging(std::span<const std::size_t> sets);
  std::vector<std::vector<std::uint64_t>> encrypt(std::span<const std::size_t> sets);

  gpu_context* gpu_;
  gpu_task* task_;
  gpu_session* session_;
  limits limits_;
  time_budget* budget_;
  random_stream* random_;
  std::uint64_t seen_calls_ = 0;  // task_->reference_calls() when the session was arranged
  std::vector<contents> held_;    // by set
  random_stream contents_;        // seeds of the contents of the next calls
  drawn_contents parameters_;
  drawn_round round_;
  std::size_t calls_of_round_ = 0;
  bool has_outputs_ = false;  // of the last sample
  std::vector<std::size_t> last_;
  std::vector<double> unseen_ns_;
  std::vector<double> host_shares_;  // by call
  host_time host_;
  double flush_ns_ = 0;              // of one flush before the last call
  const gpu_side* other_ = nullptr;  // the side that the head start is shared with
  std::uint32_t flushes_ = 0;        // before each call of this round; 0: no round has begun
  bool begins_round_ = false;
  std::size_t next_ = 0;
  std::vector<gpu_memory> staging_;
};

}  // namespace hone
