#include "evaluation/judge/gpu/gpu_side.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr double most_repeats = 500;
constexpr auto trace_limit = std::chrono::seconds(5);  // for what CUPTI does beside the calls
// Where in its arena a side works is drawn anew, in such steps, whenever it gets new parameters:
// which memory a short kernel happens to have moves its time by several per cent
// (doc/decisions/012).
constexpr std::uint64_t offset_step = 2ULL << 20U;

double unseen_ns_of(const call_clock& call) { return call.host_ns - call.event_ns; }

// Of a sample: its first call does not count, where there are others.
double mean_unseen_ns(std::span<const call_clock> calls) {
  if (calls.size() > 1) calls = calls.subspan(1);
  double ns = 0;
  for (const call_clock& call : calls) ns += unseen_ns_of(call);
  return ns / static_cast<double>(calls.size());
}

}  // namespace

gpu_side::gpu_side(judge_gpu& gpu, gpu_task& of, gpu_session& session, const limits& l,
                   random_stream& random, part plays)
    : gpu_(&gpu),
      task_(&of),
      session_(&session),
      limits_(l),
      random_(&random),
      is_reference_(plays == part::reference),
      held_(l.sets) {
  arrange();
}

void gpu_side::arrange() {
  const std::uint64_t begin = random_->below(limits_.most_offset / offset_step + 1) * offset_step;
  session_->arrange(0, task_->inputs().layouts, task_->parameters().layouts, limits_.sets, begin);
  seen_calls_ = task_->reference_calls();
}

void gpu_side::fail(const program_failure& why) const {
  if (is_reference_) throw reference_error(why.outcome, why.message);
  throw timing_failure{why};
}

void gpu_side::write_parameters() {
  session_->write_parameters(task_->parameters());
  if (auto failed = session_->prepare(clock::now() + limits_.call)) fail(*failed);
}

void gpu_side::ensure_arranged() {
  if (!is_reference_ || seen_calls_ == task_->reference_calls()) return;
  arrange();
  write_parameters();
}

void gpu_side::share_head_start(gpu_side& candidate, gpu_side& reference) {
  candidate.beside_ = &reference;
  reference.beside_ = &candidate;
}

void gpu_side::take_parameters(std::uint64_t seed) {
  task_->draw_parameters(seed);
  arrange();
  write_parameters();
}

// Where drawing takes the reference's process, contents come by way of the judge's own memory: its
// arena may be the one to fill.
void gpu_side::write_inputs(std::span<const std::size_t> sets) {
  const auto& layouts = task_->inputs().layouts;
  const auto fill = [&](std::size_t set, const auto& place) {
    std::vector<CUdeviceptr> places;
    for (std::size_t i = 0; i < layouts.size(); ++i) places.push_back(place(i));
    task_->fill_inputs(places, held_[set].how, held_[set].seed);
  };
  if (!task_->draws_with_reference()) {
    ensure_arranged();
    for (const std::size_t set : sets)
      fill(set, [&](std::size_t i) { return session_->input(set, i); });
    return;
  }
  staging_.resize(limits_.sets * layouts.size());
  for (const std::size_t set : sets) {
    for (std::size_t i = 0; i < layouts.size(); ++i)
      gpu_->grow(staging_[set * layouts.size() + i], layouts[i].bytes());
    fill(set, [&](std::size_t i) { return staging_[set * layouts.size() + i].at(); });
  }
  ensure_arranged();
  for (const std::size_t set : sets) {
    for (std::size_t i = 0; i < layouts.size(); ++i)
      gpu_->copy(session_->input(set, i), staging_[set * layouts.size() + i].at(),
                 layouts[i].bytes());
  }
}

// Keys, by call and input.
std::vector<std::vector<std::uint64_t>> gpu_side::make_unreadable(
    std::span<const std::size_t> sets) {
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

// The next sets in turn, with contents of their own to come.
void gpu_side::take_sets(std::size_t calls) {
  last_.resize(std::min(calls, limits_.sets));
  for (std::size_t& set : last_) {
    set = next_;
    next_ = (next_ + 1) % limits_.sets;
    held_[set] = {random_->bits(), distribution::declared};
  }
}

std::uint32_t gpu_side::flushes_needed() const {
  if (beside_ == nullptr) return flushes_ahead(host_.ns(), flush_ns_);
  return is_reference_ ? flushes_of_round(beside_->host_, host_, flush_ns_)
                       : flushes_of_round(host_, beside_->host_, beside_->flush_ns_);
}

void gpu_side::begin_round() {
  flushes_ = flushes_needed();
  begins_round_ = true;
}

std::vector<call_clock> gpu_side::time_taken() {
  write_inputs(last_);
  const std::vector<std::vector<std::uint64_t>> keys = make_unreadable(last_);
  auto timed = session_->time(
      last_, keys, {limits_.cache_bytes, flushes_ > 0 ? flushes_ : flushes_needed()},
      clock::now() + limits_.call * (last_.size() > 1 ? 2 : 1));  // of several calls none is long
  if (const auto* failed = std::get_if<program_failure>(&timed)) fail(*failed);
  auto& clocks = std::get<std::vector<call_clock>>(timed);
  for (const call_clock& clock : clocks) {
    host_.see(clock.launch_ns);
    flush_ns_ = clock.flush_ns;
  }
  return std::move(clocks);
}

std::vector<double> gpu_side::sample(std::size_t calls) {
  sampled_ = calls;
  take_sets(calls);
  const std::vector<call_clock> clocks = time_taken();
  std::vector<double> ns;
  for (const call_clock& clock : clocks) {
    ns.push_back(clock.event_ns);
    host_shares_.push_back(clock.launch_ns / std::max(clock.host_ns, 1.0));
  }
  const double unseen_ns = mean_unseen_ns(clocks);
  // A first call does not count unless it is long, and what its events say of that may be forged
  // like any other's.
  if (clocks.size() > 1) ns.front() += std::max(0.0, unseen_ns_of(clocks.front()) - unseen_ns);
  if (std::exchange(begins_round_, false)) unseen_ns_.push_back(unseen_ns);
  return ns;
}

double gpu_side::host_share() const { return host_shares_.empty() ? 0 : median(host_shares_); }

std::size_t gpu_side::sample_otherwise(distribution how) {
  take_sets(sampled_);
  const std::size_t call = random_->below(last_.size());
  held_[last_[call]].how = how;
  (void)time_taken();
  return call;
}

double gpu_side::try_call() {
  sample(1);
  return sample(1).back();
}

train_clock gpu_side::train(double ns, double call_ns, bool traced) {
  std::vector<std::size_t> sets(limits_.sets);
  std::iota(sets.begin(), sets.end(), std::size_t{0});
  std::rotate(sets.begin(), sets.begin() + static_cast<std::ptrdiff_t>(random_->below(sets.size())),
              sets.end());
  for (contents& held : held_) held = {random_->bits(), distribution::declared};
  write_inputs(sets);
  last_ = {sets.back()};  // whose outputs are kept
  const double round_ns = std::max(call_ns, 1e3) * static_cast<double>(sets.size());
  // Neither the last set nor how many calls there will be is known to a program: it must do its
  // work in all of them.
  auto repeats =
      static_cast<std::uint32_t>(std::clamp(std::ceil(ns / round_ns), 1.0, most_repeats));
  repeats += static_cast<std::uint32_t>(random_->below(1 + repeats / 4));
  // Ten times what its calls took one by one, so that nobody waits for long.
  const auto expected = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::duration<double, std::nano>(round_ns * repeats));
  auto ran = session_->train(sets, repeats, traced,
                             clock::now() + limits_.call + 10 * expected +
                                 (traced ? trace_limit : std::chrono::seconds(0)));
  if (const auto* failed = std::get_if<program_failure>(&ran)) fail(*failed);
  auto& clocks = std::get<train_clock>(ran);
  clocks.calls = std::max<std::uint64_t>(clocks.calls, 1);
  return clocks;
}

}  // namespace hone
