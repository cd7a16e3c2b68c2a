#include "evaluation/judge/evidence.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/failures.hpp"

namespace hone {
namespace {

const program_result<void> right;
const program_result<void> wrong = failed(Outcome::WRONG_RESULT, "off");

// A judge of one call, which is right from some evidence on.
struct judged_call {
  evidence needed = evidence::own_types;
  worst_errors errors{};
  std::vector<evidence> gathered{};

  program_result<void> judge(evidence_plan& plan) {
    gathered.clear();
    const auto gather = [this](evidence wanted) { gathered.push_back(wanted); };
    plan.begin(gather);
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

TEST(EvidencePlan, BeginsWithWhatTheLastCallNeeded) {
  evidence_plan plan;
  judged_call call{evidence::noise};
  call.judge(plan);
  call.judge(plan);
  EXPECT_EQ(call.gathered, std::vector{evidence::noise});
  call.needed = evidence::thorough;
  call.judge(plan);
  call.judge(plan);
  EXPECT_EQ(call.gathered.front(), evidence::noise) << "more is too dear to begin with";
  call.needed = evidence::own_types;
  call.judge(plan);
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
  plan.begin(gather);
  worst_errors totals;
  plan.judge(totals, gather, [&](worst_errors& errors) {
    errors.worst_element = have == evidence::full ? 0.5 : 3;
    return have == evidence::full ? right : wrong;
  });
  EXPECT_EQ(totals.worst_element, 0.5);
}

TEST(ReferenceStudy, HasARunForEachOutputThatItPromises) {
  for (const evidence wanted : {evidence::noise, evidence::full, evidence::thorough}) {
    const reference_study errors = study_of_errors(wanted, true, 100);
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
  EXPECT_LE(study_of_errors(evidence::thorough, true, 2).noisy, 2U) << "memory is limited";
}

}  // namespace
}  // namespace hone
