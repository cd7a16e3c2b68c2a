#include "evaluation/backends/cuda/gpu_side.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace hone {
namespace {

constexpr double max_repeats = 500;
constexpr std::chrono::milliseconds trace_limit{5000};  // for CUPTI's own work
// A side's offset in its arena is a random multiple of this, drawn anew with every set of
// parameters: the memory that a short kernel happens to use changes its time by several
// per cent.
constexpr std::uint64_t offset_step = 2ULL << 20U;

double unseen_ns_of(const call_clock& call) { return call.host_ns - call.event_ns; }

// Returns the mean over a sample. The first call does not count if there are others.
double mean_unseen_ns(std::span<const call_clock> calls) {
  if (calls.size() > 1) calls = calls.subspan(1);
  double ns = 0;
  for (const call_clock& call : calls) ns += unseen_ns_of(call);
  return ns / static_cast<double>(calls.size());
}

}  // namespace

gpu_side::gpu_side(gpu_context& gpu, gpu_task& of, gpu_session& session, const limits& l,
                   time_budget& budget, random_stream& random, role plays)
    : sampled_side(plays, l.long_call_ns),
      gpu_(&gpu),
      task_(&of),
      session_(&session),
      limits_(l),
      budget_(&budget),
      random_(&random),
      held_(l.sets),
      contents_(random.bits()) {
  arrange();
}

void gpu_side::arrange() {
  const std::uint64_t begin = random_->below(limits_.max_offset / offset_step + 1) * offset_step;
  session_->arrange(0, task_->inputs().layouts, task_->parameters().layouts, limits_.sets, begin);
  seen_calls_ = task_->reference_calls();
  has_outputs_ = false;
}

// Runs work of the program on the budget and returns its result. A reference's failures are the
// task's fault.
template <class Work>
auto gpu_side::charged(std::chrono::milliseconds limit, Work&& work)
    -> decltype(work(time_point())) {
  auto done =
      is_reference() ? budget_->for_reference(limit, work) : budget_->for_candidate(limit, work);
  if (!done && is_reference()) throw reference_error(done.error().outcome, done.error().message);
  if (!done) throw timing_failure{done.error()};
  return done;
}

void gpu_side::write_parameters() {
  session_->write_parameters(task_->parameters(), parameters_.seed);
  charged(limits_.call, [&](time_point deadline) { return session_->prepare(deadline); });
}

void gpu_side::ensure_arranged() {
  if (!is_reference() || seen_calls_ == task_->reference_calls()) return;
  arrange();
  write_parameters();
}

void gpu_side::pair_up(gpu_side& candidate, gpu_side& reference) {
  sampled_side::pair_up(candidate, reference);
  candidate.other_ = &reference;
  reference.other_ = &candidate;
}

void gpu_side::set_parameters(const drawn_contents& drawn) {
  task_->draw_parameters(drawn.how, drawn.seed);
  parameters_ = drawn;
  arrange();
  write_parameters();
  if (!session_->warms_up()) return;
  take_sets(1);
  write_inputs(last_);
  charged(limits_.call + limits_.first,
          [&](time_point deadline) { return session_->run(last_, deadline); });
}

void gpu_side::write_inputs(std::span<const std::size_t> sets) {
  if (task_->draws_with_reference()) return write_inputs_by_staging(sets);
  ensure_arranged();
  for (const std::size_t set : sets) {
    std::vector<CUdeviceptr> places;
    for (std::size_t i = 0; i < task_->inputs().layouts.size(); ++i)
      places.push_back(session_->input(set, i));
    task_->fill_inputs(places, held_[set].how, held_[set].seed);
  }
}

// Draws into the judge's own memory and copies from there, because drawing needs the reference's
// process, and the session's arena may be that process's arena.
void gpu_side::write_inputs_by_staging(std::span<const std::size_t> sets) {
  const auto& layouts = task_->inputs().layouts;
  staging_.resize(limits_.sets * layouts.size());
  for (const std::size_t set : sets) {
    std::vector<CUdeviceptr> places;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      gpu_memory& memory = staging_[set * layouts.size() + i];
      gpu_->grow(memory, layouts[i].bytes());
      places.push_back(memory.at());
    }
    task_->fill_inputs(places, held_[set].how, held_[set].seed);
  }
  ensure_arranged();
  for (const std::size_t set : sets) {
    for (std::size_t i = 0; i < layouts.size(); ++i)
      gpu_->copy(session_->input(set, i), staging_[set * layouts.size() + i].at(),
                 layouts[i].bytes());
  }
}

// Encrypts the inputs of the sets and returns the keys, by call and input.
std::vector<std::vector<std::uint64_t>> gpu_side::encrypt(std::span<const std::size_t> sets) {
  std::vector<std::vector<std::uint64_t>> keys(sets.size());
  const auto& layouts = task_->inputs().layouts;
  for (std::size_t c = 0; c < sets.size(); ++c) {
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      keys[c].push_back(random_->bits());
      gpu_->scramble(session_->input(sets[c], i), layouts[i].bytes(), keys[c].back());
    }
  }
  return keys;
}

// Takes the next sets in turn and chooses their contents.
void gpu_side::take_sets(std::size_t calls) {
  last_.resize(std::min(calls, limits_.sets));
  for (std::size_t& set : last_) {
    set = next_;
    next_ = (next_ + 1) % limits_.sets;
    held_[set] = {contents_.bits(), round_.of_call(calls_of_round_++), parameters_};
  }
}

std::optional<std::size_t> gpu_side::readable_call_on(const contents& wanted) const {
  if (!has_outputs_ || seen_calls_ != task_->reference_calls()) return std::nullopt;
  const auto found = std::find_if(last_.begin(), last_.end(),
                                  [&](std::size_t set) { return held_[set] == wanted; });
  if (found == last_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - last_.begin());
}

std::uint32_t gpu_side::flushes_needed() const {
  if (other_ == nullptr) return flushes_ahead(host_.ns(), flush_ns_);
  return is_reference() ? flushes_of_round(other_->host_, host_, flush_ns_)
                        : flushes_of_round(host_, other_->host_, other_->flush_ns_);
}

void gpu_side::begin_round(const drawn_round& round) {
  contents_ = random_stream(round.seed);
  round_ = round;
  calls_of_round_ = 0;
  flushes_ = flushes_needed();
  begins_round_ = true;
}

std::vector<call_clock> gpu_side::time_last_sets() {
  write_inputs(last_);
  const std::vector<std::vector<std::uint64_t>> keys = encrypt(last_);
  const flush_plan flushes{limits_.cache_bytes, flushes_ > 0 ? flushes_ : flushes_needed()};
  // A sample has several calls only if calls are short, so all of them get the time of two.
  const auto limit = limits_.call * (last_.size() > 1 ? 2 : 1) + std::exchange(limits_.first, {});
  std::vector<call_clock> clocks = *charged(
      limit, [&](time_point deadline) { return session_->time(last_, keys, flushes, deadline); });
  has_outputs_ = true;
  for (const call_clock& clock : clocks) {
    host_.see(clock.launch_ns);
    flush_ns_ = clock.flush_ns;
  }
  return clocks;
}

std::vector<double> gpu_side::sample(std::size_t calls) {
  take_sets(calls);
  const std::vector<call_clock> clocks = time_last_sets();
  std::vector<double> ns;
  for (const call_clock& clock : clocks) {
    ns.push_back(clock.event_ns);
    host_shares_.push_back(clock.launch_ns / std::max(clock.host_ns, 1.0));
  }
  const double unseen_ns = mean_unseen_ns(clocks);
  // The mean does not include the first call of several, whose events may be forged like those of
  // any other call. Its own unseen time is therefore added to its time.
  if (clocks.size() > 1) ns.front() += std::max(0.0, unseen_ns_of(clocks.front()) - unseen_ns);
  if (std::exchange(begins_round_, false)) unseen_ns_.push_back(unseen_ns);
  return ns;
}

double gpu_side::host_share() const { return host_shares_.empty() ? 0 : median(host_shares_); }

double gpu_side::try_call() {
  sample(1);
  return sample(1).back();
}

burst_clock gpu_side::burst(double ns, double call_ns, bool traced) {
  std::vector<std::size_t> sets(limits_.sets);
  std::iota(sets.begin(), sets.end(), std::size_t{0});
  std::rotate(sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(random_->below(sets.size())),
              sets.end());
  // A few long calls are a burst already, and so is one very long call.
  const double enough = std::ceil(ns / std::max(call_ns, 1.0));
  const std::size_t least = call_ns >= very_long_call_ns ? 1 : 2;
  if (enough < static_cast<double>(sets.size()))
    sets.resize(std::min(sets.size(), std::max(least, static_cast<std::size_t>(enough))));
  for (const std::size_t set : sets)
    held_[set] = {random_->bits(), distribution::declared, parameters_};
  write_inputs(sets);
  last_ = {sets.back()};  // the set whose outputs are kept
  has_outputs_ = false;
  const double round_ns = std::max(call_ns, 1e3) * static_cast<double>(sets.size());
  // Both the order of the sets and the number of repeats are random: a program that cannot predict
  // the last call must do its work in all calls.
  burst_plan plan;
  plan.repeats = static_cast<std::uint32_t>(std::clamp(std::ceil(ns / round_ns), 1.0, max_repeats));
  plan.repeats += static_cast<std::uint32_t>(random_->below(1 + plan.repeats / 4));
  if (call_ns >= very_long_call_ns) plan.warm_ups = 0;
  plan.traced = traced;
  // The limit allows ten times the time that the calls take one by one.
  const auto expected = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double, std::nano>(round_ns * plan.repeats));
  const auto limit = limits_.call + 10 * expected + (traced ? trace_limit : trace_limit.zero());
  burst_clock clocks =
      *charged(limit, [&](time_point deadline) { return session_->burst(sets, plan, deadline); });
  clocks.calls = std::max<std::uint64_t>(clocks.calls, 1);
  return clocks;
}

}  // namespace hone
