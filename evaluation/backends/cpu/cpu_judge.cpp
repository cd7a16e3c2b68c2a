#include "evaluation/backends/cpu/cpu_judge.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "evaluation/compile/cpu/host_toolchain.hpp"
#include "evaluation/judge/host_timing.hpp"
#include "evaluation/judge/host_trial.hpp"
#include "messages/ids.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t kept_tasks = 16;           // with their input sets
constexpr std::size_t timing_bytes = 8U << 20U;  // for the inputs and outputs of one side

// Returns the bytes per nanosecond that this core can write to its first-level cache. It is the
// best of many short attempts, because a slow moment must not make an honest time impossible.
double measure_write_bandwidth() {
  std::vector<char> buffer(16U << 10U);
  double best = 0;
  for (int attempt = 0; attempt < 200; ++attempt) {
    const auto begin = steady::now();
    constexpr int passes = 32;
    for (int i = 0; i < passes; ++i) {
      std::memset(buffer.data(), i, buffer.size());
      asm volatile("" : : "r"(buffer.data()) : "memory");
    }
    const double ns = std::chrono::duration<double, std::nano>(steady::now() - begin).count();
    best = std::max(best, static_cast<double>(passes) * static_cast<double>(buffer.size()) / ns);
  }
  return best;
}

}  // namespace

struct cpu_judge::prepared_task {
  prepared_task(task copied, cpu_processes& processes)
      : own(std::move(copied)),
        oracle(own, processes.open_oracle(own)),
        timed(own.cases.size()),
        random(random_bits()) {}

  const task& of() const { return own; }

  // Returns the input sets for timing a case.
  timed_inputs& inputs_of(const task_case& at) {
    const auto found = std::find(own.cases.begin(), own.cases.end(), at);
    auto& one = timed.at(static_cast<std::size_t>(found - own.cases.begin()));
    if (one != nullptr) return *one;
    input_recipe recipe(oracle, *found);
    const expected_outputs expected =
        oracle.expect(recipe.draw_inputs(distribution::declared, random.bits()),
                      recipe.draw_parameters(random.bits()));
    const std::size_t bytes_per_call =
        total_bytes(recipe.input_layouts()) + total_bytes(expected.own);
    one = std::make_unique<timed_inputs>(recipe, affordable_sets(bytes_per_call, timing_bytes),
                                         random);
    return *one;
  }

  task own;
  reference_oracle oracle;
  std::vector<std::unique_ptr<timed_inputs>> timed;  // by case
  random_stream random;
};

cpu_judge::cpu_judge(int core, unique_fd core_lock, std::chrono::milliseconds call_limit)
    : core_(core),
      core_lock_(std::move(core_lock)),
      call_limit_(call_limit),
      // Half of the time that the fastest writer needs, so that only impossible times lie below it.
      floor_us_per_byte_(1 / (2 * measure_write_bandwidth()) / 1e3),
      prepared_(kept_tasks) {}

cpu_judge::~cpu_judge() = default;

cpu_judge::prepared_task& cpu_judge::prepare(const task& t) {
  return prepared_.of(t.id, [&] { return std::make_unique<prepared_task>(t, processes_); });
}

void cpu_judge::forget(const task& t) { prepared_.forget(t.id); }

verification_result cpu_judge::verify(const schema::Artifact::Reader& artifact, const task& t,
                                      std::uint64_t& seed) {
  prepared_task& prepared = prepare(t);
  const auto candidate = processes_.open_candidate(artifact, t);
  if (seed == 0) seed = random_bits();
  if (!candidate) return {candidate.error(), 0, {}};
  host_trial trial(**candidate, prepared.oracle);
  return verify_program(trial, kind(), seed, {.call = call_limit_});
}

// All cases are timed in one pair of fresh processes.
program_result<void> cpu_judge::begin_timing(const schema::Artifact::Reader& artifact,
                                             const task& t,
                                             const std::vector<wanted_timing>& /*cases*/,
                                             int /*earlier*/, random_stream& /*random*/) {
  timed_ = &prepare(t);
  auto candidate = processes_.open_candidate(artifact, t);
  if (!candidate) return failed(candidate.error());
  candidate_ = *std::move(candidate);
  reference_ = processes_.open_reference(t);
  return {};
}

// Ignores an expected speed-up: seven rounds are the least of any measurement.
case_timing cpu_judge::time_case(const wanted_timing& wanted, random_stream& random) {
  return hone::time_case({*candidate_, *reference_, timed_->oracle}, timed_->inputs_of(*wanted.at),
                         rules_, {call_limit_, floor_us_per_byte_}, random);
}

void cpu_judge::end_timing() {
  timed_ = nullptr;
  candidate_.reset();
  reference_.reset();
}

std::vector<std::string> cpu_judge::check_task(const task& t) {
  std::vector<std::string> lines;
  prepared_task& prepared = prepare(t);
  for (const task_case& at : prepared.own.cases) {
    if (!runs_on(at, kind())) continue;
    input_recipe recipe(prepared.oracle, at);
    expected_outputs expected;
    double inexactness = 0;
    for (const distribution how : prepared.own.distributions) {
      expected = prepared.oracle.expect(recipe.draw_inputs(how, prepared.random.bits()),
                                        recipe.draw_parameters(prepared.random.bits()));
      inexactness = std::max(
          inexactness, compare_outputs(expected.own, expected, prepared.own).reference_inexactness);
    }
    lines.push_back(describe_case(at, layouts_of(expected.own),
                                  expected.wide ? std::optional(inexactness) : std::nullopt));
  }
  return lines;
}

double cpu_judge::clock_mhz() const {
  std::ifstream in("/proc/cpuinfo");
  int at = -1;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("processor")) at = std::stoi(line.substr(line.find(':') + 1));
    if (at == core_ && line.starts_with("cpu MHz"))
      return std::stod(line.substr(line.find(':') + 1));
  }
  return 0;
}

std::string cpu_judge::toolchain() const { return compiler_name(); }

}  // namespace hone
