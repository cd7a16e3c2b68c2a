#include "evaluation/judge/verification.hpp"

#include <algorithm>
#include <array>

#include "evaluation/judge/inputs.hpp"

namespace hone {
namespace {

constexpr std::size_t least_rounds = 5;
constexpr std::size_t twisted_rounds = 2;

std::vector<distribution> plan_rounds(const task& t) {
  std::vector<distribution> rounds = {distribution::declared, distribution::declared};
  for (const distribution d : t.distributions) {
    if (d != distribution::declared) rounds.push_back(d);
  }
  while (rounds.size() < least_rounds) rounds.push_back(distribution::declared);
  return rounds;
}

// "output 0 lies in the memory of the input A"
std::string describe_alias(const shared_memory_of_output& shared, const task& t) {
  using with = shared_memory_of_output::with;
  const std::string output = "output " + std::to_string(shared.output);
  switch (shared.what) {
    case with::input:
      return output + " lies in the memory of the input " + t.inputs.at(shared.index).name;
    case with::parameter:
      return output + " lies in the memory of the parameter " + t.parameters.at(shared.index).name;
    case with::output:
      return output + " shares memory with output " + std::to_string(shared.index);
    case with::earlier_call:
      return output + " lies in the memory of an earlier call's output";
    case with::foreign:
      return output + " lies in memory that the call did not allocate";
    case with::itself:
      return output + " has several elements in the same place";
  }
  return output;
}

}  // namespace

std::optional<program_failure> find_forbidden_alias(
    const std::set<shared_memory_of_output>& shared,
    const std::set<shared_memory_of_output>& allowed, const task& t) {
  for (const shared_memory_of_output& one : shared) {
    if (!allowed.contains(one))
      return program_failure{Outcome::CHEATING, "output_alias", describe_alias(one, t)};
  }
  return std::nullopt;
}

program_failure judge_outputs(const agreement& agreed, verification_result& totals) {
  totals.worst_element = std::max(totals.worst_element, agreed.worst_element);
  totals.relative_l2 = std::max(totals.relative_l2, agreed.relative_l2);
  if (!agreed.problem) return {Outcome::OK, "", ""};
  if (agreed.only_by_tolerance) return {Outcome::CHEATING, "constant", *agreed.problem};
  return {Outcome::WRONG_RESULT, "", *agreed.problem};
}

bool second_chance::take(const program_failure& wrong, const verification_result& totals) {
  constexpr double barely_wrong = 8;
  if (taken_ || wrong.outcome != Outcome::WRONG_RESULT || totals.worst_element <= 1 ||
      totals.worst_element > barely_wrong)
    return false;
  return taken_ = true;
}

bool writes_outputs(const std::set<shared_memory_of_output>& aliases) {
  using with = shared_memory_of_output::with;
  return std::all_of(aliases.begin(), aliases.end(), [](const shared_memory_of_output& shared) {
    return shared.what == with::output || shared.what == with::itself;
  });
}

program_failure check_call(program_session& candidate, std::size_t call, std::size_t set,
                           const value_set& inputs, const value_set& parameters,
                           const expected_outputs& expected,
                           const std::set<shared_memory_of_output>& allowed_aliases, const task& t,
                           verification_result& totals) {
  if (const auto damage = candidate.memory_damage())
    return {Outcome::CHEATING, "memory_fault", *damage};
  if (!candidate.inputs_hold(set, inputs))
    return {Outcome::CHEATING, "input_mutation", "an input was changed"};
  if (!candidate.parameters_hold(parameters))
    return {Outcome::CHEATING, "input_mutation", "a parameter was changed"};
  if (auto forbidden = find_forbidden_alias(candidate.aliases(call), allowed_aliases, t))
    return *forbidden;
  const auto outputs = candidate.outputs(call);
  if (const auto* failed = std::get_if<program_failure>(&outputs)) return *failed;
  return judge_outputs(compare_outputs(std::get<value_set>(outputs), expected, t), totals);
}

namespace {

class host_trial final : public trial {
 public:
  host_trial(program_session& candidate, reference_oracle& oracle)
      : candidate_(&candidate), oracle_(&oracle) {}

  const task& of() const override { return oracle_->of(); }

  void arrange(const task_case& at) override {
    recipe_.emplace(*oracle_, at);
    candidate_->arrange(0, recipe_->input_layouts(), recipe_->parameter_layouts(), 2);
  }

  void draw(distribution how, std::uint64_t inputs_seed, std::uint64_t parameters_seed) override {
    how_ = how;
    seed_ = inputs_seed;
    parameters_ = recipe_->draw_parameters(parameters_seed);
    inputs_ = recipe_->draw_inputs(how, inputs_seed);
    expected_ = oracle_->expect(inputs_, parameters_);
    candidate_->write_parameters(parameters_);
    for (std::size_t set = 0; set < 2; ++set) candidate_->write_inputs(set, inputs_);
  }

  void twist(std::size_t set, std::uint64_t twist) override {
    inputs_ = recipe_->draw_inputs(how_, seed_, twist);
    expected_ = oracle_->expect(inputs_, parameters_);
    candidate_->write_inputs(set, inputs_);
  }

  void hide_outlier(std::size_t set, std::uint64_t inputs_seed, bool mirrored) override {
    inputs_ = recipe_->draw_inputs_with_an_outlier(inputs_seed, mirrored);
    expected_ = oracle_->expect(inputs_, parameters_);
    candidate_->write_inputs(set, inputs_);
  }

  program_failure call(std::size_t set, std::chrono::steady_clock::time_point until,
                       verification_result& totals) override {
    const auto ran = candidate_->run({&set, 1}, until);
    if (const auto* failed = std::get_if<program_failure>(&ran)) return *failed;
    return check_call(*candidate_, 0, set, inputs_, parameters_, expected_, oracle_->aliases(),
                      of(), totals);
  }

 private:
  program_session* candidate_;
  reference_oracle* oracle_;
  std::optional<input_recipe> recipe_;
  distribution how_ = distribution::declared;
  std::uint64_t seed_ = 0;
  value_set inputs_;
  value_set parameters_;
  expected_outputs expected_;
};

}  // namespace

verification_result verify_program(trial& candidate, std::string_view device_kind,
                                   std::uint64_t seed, const verification_limits& limits) {
  using clock = std::chrono::steady_clock;
  const task& t = candidate.of();
  clock::duration spent{0};  // in calls: what the judge takes for itself is not the candidate's
  random_stream random(seed);
  verification_result result;
  second_chance chance;
  for (const task_case& at : t.cases) {
    if (!runs_on(at, device_kind)) continue;
    candidate.arrange(at);
    std::array<std::size_t, 2> sets = {0, 1};
    // One round; `totals` keeps its worst errors.
    const auto judge_round = [&](std::size_t round, distribution how,
                                 verification_result& totals) -> program_failure {
      const std::uint64_t contents = random.bits();
      candidate.draw(how, contents, random.bits());
      // The same contents at two addresses: what depends on an address or on a race shows. The
      // order is random, but the second round begins where the first has ended: there is always a
      // call that finds new contents at the address of the call before.
      if (round == 1 || random.below(2) == 1) std::swap(sets[0], sets[1]);
      const auto call = [&](std::size_t set) {
        if (spent > limits.whole)
          return program_failure{Outcome::TIMEOUT, "",
                                 "verification took longer than " +
                                     std::to_string(limits.whole.count() / 1000) + " s"};
        const auto begin = clock::now();
        program_failure result_of_call = candidate.call(
            set, begin + std::min<clock::duration>(limits.whole - spent, limits.call), totals);
        spent += clock::now() - begin;
        return result_of_call;
      };
      for (const std::size_t set : sets) {
        if (auto wrong = call(set); wrong.outcome != Outcome::OK) return wrong;
      }
      // Nearly the same contents, where a moment ago the others were: what is kept under a sample
      // of them is out of date.
      if (round < twisted_rounds) {
        candidate.twist(sets[1], random.bits() | 1U);
        if (auto wrong = call(sets[1]); wrong.outcome != Outcome::OK) return wrong;
      }
      // One outlier in five thousand shows in any sample of some size; a single one has to be
      // looked for. Both signs: to a sum of exponentials a negative one is nothing.
      if (how == distribution::outliers) {
        const std::uint64_t hiding = random.bits();
        for (const bool mirrored : {false, true}) {
          candidate.hide_outlier(sets[1], hiding, mirrored);
          if (auto wrong = call(sets[1]); wrong.outcome != Outcome::OK) return wrong;
        }
      }
      return {Outcome::OK, "", ""};
    };
    std::size_t round = 0;
    for (const distribution how : plan_rounds(t)) {
      verification_result totals;
      program_failure wrong = judge_round(round, how, totals);
      if (chance.take(wrong, totals)) {
        totals = {};
        wrong = judge_round(round, how, totals);
      }
      result.worst_element = std::max(result.worst_element, totals.worst_element);
      result.relative_l2 = std::max(result.relative_l2, totals.relative_l2);
      if (wrong.outcome != Outcome::OK) {
        const std::string sizes = print_sizes(at);
        wrong.message += " (" + (sizes.empty() ? "" : "case " + sizes + ", ") +
                         std::string(name_of(how)) + " inputs)";
        result.failure = std::move(wrong);
        return result;
      }
      ++round;
      ++result.rounds;
    }
  }
  result.failure = {Outcome::OK, "", ""};
  return result;
}

verification_result verify_program(program_session& candidate, reference_oracle& oracle,
                                   std::string_view device_kind, std::uint64_t seed,
                                   const verification_limits& limits) {
  host_trial one(candidate, oracle);
  return verify_program(one, device_kind, seed, limits);
}

}  // namespace hone
