#include "evaluation/judge/evidence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "evaluation/judge/oracle.hpp"
#include "tests/support/failures.hpp"

namespace hone {
namespace {

const program_result<void> right;
const program_result<void> wrong = failed(Outcome::WRONG_RESULT, "off");

// A judge of one call, which is right from some evidence on.
struct judged_call {
  evidence needed = evidence::own_types;
  worst_errors errors{};
  distribution how = distribution::mixed;
  std::vector<evidence> gathered{};

  program_result<void> judge(evidence_plan& plan) {
    gathered.clear();
    const auto gather = [this](evidence wanted) { gathered.push_back(wanted); };
    plan.begin(how, gather);
    worst_errors totals;
    return plan.judge(totals, gather, [this](worst_errors& seen) {
      seen = errors;
      return gathered.back() >= needed ? right : wrong;
    });
  }
};

TEST(EvidencePlan, StopsAtTheLeastEvidenceThatExplainsACall) {
  for (const evidence needed :
       {evidence::own_types, evidence::noise, evidence::full, evidence::thorough}) {
    evidence_plan plan;
    judged_call call{needed};
    EXPECT_EQ(outcome_of(call.judge(plan)), Outcome::OK);
    EXPECT_EQ(call.gathered.size(), static_cast<std::size_t>(needed) + 1);
    EXPECT_EQ(call.gathered.back(), needed);
  }
}

TEST(EvidencePlan, BeginsWithNoiseWhereTheTypicalErrorDoesNotSuffice) {
  evidence_plan plan;
  judged_call call{evidence::noise};
  call.judge(plan);
  call.needed = evidence::own_types;  // the first call has taught the typical error
  for (int i = 0; i < 5; ++i) {
    call.judge(plan);
    EXPECT_EQ(call.gathered, std::vector{evidence::own_types});
  }
  call.needed = evidence::thorough;
  call.judge(plan);
  call.judge(plan);
  EXPECT_EQ(call.gathered.front(), evidence::noise) << "more is too dear to begin with";
  call.how = distribution::declared;
  call.judge(plan);
  EXPECT_EQ(call.gathered.front(), evidence::own_types) << "other contents";
}

// The studies that a reference has been asked for, of which each takes decisions or not.
struct studied_reference {
  bool decides = false;
  std::vector<std::size_t> runs{};

  bool gather(reference_facts& facts, evidence wanted) {
    return facts.gather(
        wanted, true, 100,
        [this](const reference_study& study) {
          runs.push_back(study.plan.runs.size());
          return decides;
        },
        [] {});
  }
};

TEST(ReferenceFacts, RepeatNoRunWithoutNoiseWhereThereAreNoDecisions) {
  reference_facts facts;
  studied_reference reference;
  EXPECT_FALSE(reference.gather(facts, evidence::noise));
  EXPECT_FALSE(reference.gather(facts, evidence::noise));
  EXPECT_EQ(reference.runs, (std::vector<std::size_t>{2, 1}));
  reference_facts others;
  studied_reference deciding{true};
  EXPECT_TRUE(deciding.gather(others, evidence::noise));
  EXPECT_TRUE(deciding.gather(others, evidence::full));
  EXPECT_EQ(deciding.runs, (std::vector<std::size_t>{2, 5, 6}));
}

TEST(ReferenceFacts, GiveUpKindsOfRunsThatTheReferenceCannotMake) {
  reference_facts facts;
  std::size_t restarts = 0;
  facts.gather(
      evidence::full, true, 100,
      [](const reference_study& study) -> bool {
        if (study.wide) throw reference_error(Outcome::CRASH, "no float64");
        return false;
      },
      [&] { ++restarts; });
  EXPECT_EQ(restarts, 1U);
  EXPECT_FALSE(facts.possible().wide());
  EXPECT_TRUE(facts.possible().noise());
  EXPECT_THAT(facts.possible().missing(), testing::HasSubstr("no float64"));
  agreement compared;
  facts.possible().complete(compared);
  EXPECT_FALSE(compared.problem) << "it needs no explanation";
  compared.problem = "element [0] is 1";
  facts.possible().complete(compared);
  EXPECT_EQ(compared.problem, "element [0] is 1; runs in float64 are not possible (no float64)");
  EXPECT_THROW(
      facts.gather(
          evidence::noise, true, 100,
          [](const reference_study&) -> bool { throw reference_error(Outcome::TIMEOUT, "slow"); },
          [] {}),
      reference_error);
}

TEST(ReferenceFacts, KeepTheSmallestTypicalErrorOfADistribution) {
  reference_facts facts;
  agreement compared;
  compared.typical_errors = {3e-7, 0};
  facts.learn(distribution::declared, compared);
  compared.typical_errors = {2e-7, 0};
  facts.learn(distribution::declared, compared);
  compared.typical_errors = {4e-7, 0};
  facts.learn(distribution::declared, compared);
  EXPECT_EQ(facts.typical_error(distribution::declared, 0), 2e-7);
  EXPECT_EQ(facts.typical_error(distribution::declared, 1), 0);
  EXPECT_EQ(facts.typical_error(distribution::shifted, 0), 0);
  EXPECT_EQ(facts.typical_error(distribution::mixed, 0), 0);
}

TEST(EvidencePlan, RefusesByThoroughEvidenceAlone) {
  evidence_plan plan;
  judged_call call;
  call.errors.worst_element = 2;
  call.needed = static_cast<evidence>(99);
  EXPECT_EQ(outcome_of(call.judge(plan)), Outcome::WRONG_RESULT);
  EXPECT_EQ(call.gathered.back(), evidence::thorough);
}

TEST(EvidencePlan, GathersNoMoreForErrorsFarBeyondRounding) {
  evidence_plan plan;
  judged_call call;
  call.needed = static_cast<evidence>(99);
  call.errors.worst_element = 1e6;
  EXPECT_EQ(outcome_of(call.judge(plan)), Outcome::WRONG_RESULT);
  EXPECT_EQ(call.gathered.back(), evidence::full);
  call.errors.may_be_decisions = true;
  call.judge(plan);
  EXPECT_EQ(call.gathered.back(), evidence::thorough) << "other decisions may explain them";
  call.errors = {};
  call.errors.is_malformed = true;
  call.judge(plan);
  EXPECT_EQ(call.gathered.size(), 1U) << "an output of another shape";
}

TEST(EvidencePlan, ReportsTheErrorsOfTheCheckThatDecides) {
  evidence_plan plan;
  evidence have = evidence::own_types;
  const auto gather = [&](evidence wanted) { have = wanted; };
  plan.begin(distribution::mixed, gather);
  worst_errors totals;
  plan.judge(totals, gather, [&](worst_errors& errors) {
    errors.worst_element = have == evidence::full ? 0.5 : 3;
    return have == evidence::full ? right : wrong;
  });
  EXPECT_EQ(totals.worst_element, 0.5);
}

TEST(ReferenceStudy, HasARunForEachOutputThatItPromises) {
  for (const evidence wanted : {evidence::noise, evidence::full, evidence::thorough}) {
    const reference_study errors = study_of_errors(wanted, true, 100, true);
    EXPECT_FALSE(errors.plan.runs.front().is_wide);
    EXPECT_EQ(errors.plan.runs.front().amplitude, 0);
    for (std::size_t i = 0; i < errors.noisy; ++i) {
      const studied_run& run = errors.plan.runs.at(errors.first_noisy + i);
      EXPECT_GT(run.amplitude, 0);
      EXPECT_EQ(run.use, studied_run::decisions::replay);
    }
    EXPECT_EQ(errors.wide.has_value(), wanted >= evidence::full);
    if (errors.wide) {
      EXPECT_TRUE(errors.plan.runs.at(*errors.wide).is_wide);
    }
  }
  const reference_study decisions = study_of_decisions(evidence::full, true, 100);
  ASSERT_TRUE(decisions.settled);
  EXPECT_EQ(decisions.plan.runs.at(*decisions.settled).use, studied_run::decisions::replay);
  for (std::size_t i = 0; i < decisions.alternatives; ++i)
    EXPECT_EQ(decisions.plan.runs.at(decisions.first_alternative + i).use,
              studied_run::decisions::ignore);
  EXPECT_LE(study_of_errors(evidence::thorough, true, 2, true).noisy, 2U) << "memory is limited";
}

}  // namespace
}  // namespace hone
