#include "evaluation/devices/host_judge.hpp"

#include "messages/ids.hpp"

namespace hone {
namespace {

constexpr const char* kind = "cpu";
constexpr std::size_t kept_tasks = 16;  // with their input sets

}  // namespace

struct host_judge::prepared_task {
  prepared_task(task copied, program_host& host)
      : own(std::move(copied)),
        oracle(own, host.open_oracle(own)),
        timed(own.cases.size()),
        random(random_bits()) {}

  const task& of() const { return own; }

  // Input sets for timing a case.
  timed_inputs& timing_of(std::size_t index, std::size_t memory_bytes) {
    auto& one = timed[index];
    if (one != nullptr) return *one;
    input_recipe recipe(oracle, own.cases[index]);
    const expected_outputs expected =
        oracle.expect(recipe.draw_inputs(distribution::declared, random.bits()),
                      recipe.draw_parameters(random.bits()));
    const std::size_t bytes_a_call =
        total_bytes(recipe.input_layouts()) + total_bytes(expected.own);
    one =
        std::make_unique<timed_inputs>(recipe, affordable_sets(bytes_a_call, memory_bytes), random);
    return *one;
  }

  task own;
  reference_oracle oracle;
  std::vector<std::unique_ptr<timed_inputs>> timed;
  random_stream random;
};

host_judge::host_judge(std::unique_ptr<program_host> host)
    : host_(std::move(host)), prepared_(kept_tasks) {}

host_judge::~host_judge() = default;

host_judge::prepared_task& host_judge::prepare(const task& t) {
  return prepared_.of(t.id, [&] { return std::make_unique<prepared_task>(t, *host_); });
}

void host_judge::forget(const task& t) { prepared_.forget(t.id); }

verification_result host_judge::verify(const schema::Artifact::Reader& artifact, const task& t,
                                       std::uint64_t& seed) {
  prepared_task& prepared = prepare(t);
  auto opened = host_->open_candidate(artifact, t);
  if (seed == 0) seed = random_bits();
  if (auto* failed = std::get_if<program_failure>(&opened)) return {.failure = *failed};
  return verify_program(*std::get<std::unique_ptr<program_session>>(opened), prepared.oracle, kind,
                        seed, host_->limits());
}

// All timed cases, in one pair of fresh processes, up to the first that fails.
timed_program host_judge::time(const schema::Artifact::Reader& artifact, const task& t,
                               random_stream& random, int /*earlier*/) {
  timed_program result;
  result.reverify_agreement = host_->rules().reverify_agreement;
  prepared_task& prepared = prepare(t);
  auto opened = host_->open_candidate(artifact, prepared.own);
  if (auto* failed = std::get_if<program_failure>(&opened)) {
    result.failure = *failed;
    return result;
  }
  const auto candidate = std::get<std::unique_ptr<program_session>>(std::move(opened));
  const auto reference = host_->open_reference(prepared.own);
  for (std::size_t i = 0; i < prepared.own.cases.size() && result.failure.outcome == Outcome::OK;
       ++i) {
    const task_case& at = prepared.own.cases[i];
    if (!at.timed || !runs_on(at, kind)) continue;
    timed_inputs& timed = prepared.timing_of(i, host_->timing_memory_bytes());
    timing_limits limits;
    limits.call = host_->limits().call;
    limits.floor_us_a_byte = host_->floor_us_a_byte();
    case_timing timing =
        time_case({*candidate, *reference, prepared.oracle}, timed, host_->rules(), limits, random);
    result.failure = timing.failure;
    if (result.failure.outcome != Outcome::OK)
      result.failure.message += " (case " + print_sizes(at) + ")";
    result.timings.emplace_back(at, std::move(timing));
  }
  if (result.timings.empty())
    result.failure = {Outcome::INFRASTRUCTURE, "",
                      "the task has no timed case for this kind of device"};
  return result;
}

std::vector<std::string> host_judge::check_task(const task& t) {
  std::vector<std::string> lines;
  prepared_task& prepared = prepare(t);
  for (const task_case& at : prepared.own.cases) {
    if (!runs_on(at, kind)) continue;
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

}  // namespace hone
