#include "evaluation/backends/cpu/cpu_judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "evaluation/compile/cpu/host_toolchain.hpp"
#include "evaluation/judge/host_timing.hpp"
#include "evaluation/judge/host_trial.hpp"
#include "evaluation/judge/timed_checks.hpp"
#include "messages/ids.hpp"
#include "tasks/program_functions.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t kept_tasks = 16;  // with their input sets
// Processor time in which Python wraps the tensors of a call, with cold caches.
constexpr double staging_of_a_module_ns = 10e3;
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

// Returns true if no element of a floating-point output is NaN or infinite.
bool are_numbers(const value_set& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const tensor_value& output) {
    if (!is_floating(output.layout.type)) return true;
    const std::vector<double> numbers = to_doubles(output);
    return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
  });
}

}  // namespace

struct cpu_judge::prepared_task {
  prepared_task(task copied, cpu_processes& processes)
      : own(std::move(copied)),
        oracle(own, processes.open_oracle(own)),
        timed(own.cases.size()),
        timed_modules(own.cases.size()),
        usable(own.cases.size()),
        random(random_bits()) {}

  const task& of() const { return own; }

  std::size_t number_of(const task_case& at) const {
    return static_cast<std::size_t>(std::find(own.cases.begin(), own.cases.end(), at) -
                                    own.cases.begin());
  }

  expected_outputs expect(input_recipe& recipe, distribution how, std::uint64_t inputs_seed,
                          evidence wanted) {
    return oracle.expect(recipe.draw_inputs(how, inputs_seed),
                         recipe.draw_parameters(how, random.bits()), wanted, how);
  }

  // Returns the distributions that checks of a case may use.
  const std::vector<distribution>& usable_of(const task_case& at) {
    auto& one = usable.at(number_of(at));
    if (!one.empty()) return one;
    input_recipe recipe(oracle, own.cases.at(number_of(at)));
    return one = usable_distributions(own, random, [&](distribution how, std::uint64_t seed) {
             return are_numbers(expect(recipe, how, seed, evidence::own_types).own);
           });
  }

  // Returns the distributions that checks of a Python module may use. It cannot be given other
  // parameters than its constructor makes.
  std::vector<distribution> usable_of_modules(const task_case& at) {
    std::vector<distribution> some = usable_of(at);
    std::erase(some, distribution::weights);
    return some;
  }

  // Returns what draws the parameters of Python modules.
  parameter_source* constructor_of_modules(cpu_processes& processes) {
    if (constructor == nullptr) constructor = processes.open_constructor(own);
    return constructor.get();
  }

  // Returns the input sets for timing a case, of Python modules or of host programs.
  timed_inputs& inputs_of(const task_case& at, bool of_module) {
    const std::size_t number = number_of(at);
    auto& one = (of_module ? timed_modules : timed).at(number);
    if (one != nullptr) return *one;
    input_recipe recipe(oracle, own.cases.at(number), of_module ? constructor.get() : nullptr);
    const expected_outputs expected =
        expect(recipe, distribution::declared, random.bits(), evidence::own_types);
    const std::size_t bytes_per_call =
        total_bytes(recipe.input_layouts()) + total_bytes(expected.own);
    one = std::make_unique<timed_inputs>(recipe, affordable_sets(bytes_per_call, timing_bytes),
                                         of_module ? usable_of_modules(at) : usable_of(at), random);
    return *one;
  }

  task own;
  reference_oracle oracle;
  std::unique_ptr<parameter_source> constructor;             // of Python modules; null: not opened
  std::vector<std::unique_ptr<timed_inputs>> timed;          // by case
  std::vector<std::unique_ptr<timed_inputs>> timed_modules;  // by case
  std::vector<std::vector<distribution>> usable;             // by case; empty: not known yet
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
  time_budget budget;
  const bool is_module = is_python_module(view(artifact.getPython()));
  parameter_source* constructor = is_module ? prepared.constructor_of_modules(processes_) : nullptr;
  const auto candidate = processes_.open_candidate(artifact, t, budget);
  if (seed == 0) seed = random_bits();
  if (!candidate) return {candidate.error(), 0, {}};
  host_trial trial(
      **candidate, prepared.oracle,
      [&](const task_case& at) {
        return is_module ? prepared.usable_of_modules(at) : prepared.usable_of(at);
      },
      constructor);
  return verify_program(trial, kind(), seed, {.call = call_limit_}, budget);
}

// All cases are timed in one pair of fresh processes.
program_result<void> cpu_judge::begin_timing(const schema::Artifact::Reader& artifact,
                                             const task& t,
                                             const std::vector<wanted_timing>& /*cases*/,
                                             int /*earlier*/, time_budget& budget,
                                             random_stream& /*random*/) {
  timed_ = &prepare(t);
  budget_ = &budget;
  times_module_ = is_python_module(view(artifact.getPython()));
  if (times_module_) timed_->constructor_of_modules(processes_);
  auto candidate = processes_.open_candidate(artifact, t, budget);
  if (!candidate) return failed(candidate.error());
  candidate_ = *std::move(candidate);
  reference_ = times_module_ ? processes_.open_reference_module(t) : processes_.open_reference(t);
  return {};
}

// Ignores an expected speed-up: seven rounds are the least of any measurement.
case_timing cpu_judge::time_case(const wanted_timing& wanted, random_stream& random) {
  timing_rules rules = wanted.is_screening ? screening_rules(rules_) : rules_;
  if (times_module_) rules.new_parameters_one_in = rounds_of_an_instance;
  timing_limits limits{call_limit_, floor_us_per_byte_};
  if (times_module_) limits.outside_per_call_ns = staging_of_a_module_ns;
  case_timing timing = hone::time_case({*candidate_, *reference_, timed_->oracle},
                                       timed_->inputs_of(*wanted.at, times_module_), rules, limits,
                                       *budget_, random);
  if (times_module_) discount_harness(processes_.harness_us(), timing);
  return timing;
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
    const std::vector<distribution>& usable = prepared.usable_of(at);
    const expected_outputs others = prepared.expect(recipe, distribution::declared,
                                                    prepared.random.bits(), evidence::own_types);
    const expected_outputs expected =
        prepared.expect(recipe, distribution::declared, prepared.random.bits(), evidence::full);
    lines.push_back(
        describe(t, {at, layouts_of(expected.own), usable, prepared.oracle.facts().possible(),
                     prepared.oracle.compare(others.own, expected)}));
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
