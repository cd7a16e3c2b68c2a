#include "evaluation/judge/oracle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_session.hpp"

namespace hone {
namespace {

using testing_support::fake_session;
using testing_support::right_program;
using testing_support::scale_task;

const value_set x = {from_doubles({1.5, 2.5}, {dtype::float32, {2}})};
const value_set w = {from_doubles({1, 1}, {dtype::float32, {2}})};

TEST(Oracle, RunsTheReferenceInItsOwnTypesAndInDoublePrecision) {
  const task t = scale_task();
  reference_oracle oracle(t, std::make_unique<fake_session>(right_program()));
  const expected_outputs expected = oracle.expect(x, w, evidence::full);
  EXPECT_EQ(expected.own[0].layout.type, dtype::float32);
  EXPECT_EQ(expected.noisy.size(), 3U);
  ASSERT_TRUE(expected.wide);
  EXPECT_EQ((*expected.wide)[0].layout.type, dtype::float64);
  EXPECT_EQ(to_doubles((*expected.wide)[0]), (std::vector<double>{4, 6}));
}

TEST(Oracle, RunsTheReferenceOnceIfItsOwnTypesSuffice) {
  const task t = scale_task();
  auto session = std::make_unique<fake_session>(right_program());
  const fake_session& watched = *session;
  reference_oracle oracle(t, std::move(session));
  const expected_outputs expected = oracle.expect(x, w, evidence::own_types);
  EXPECT_EQ(to_doubles(expected.own[0]), (std::vector<double>{4, 6}));
  EXPECT_FALSE(expected.wide);
  EXPECT_TRUE(expected.noisy.empty());
  EXPECT_EQ(watched.runs, 1U);
  EXPECT_TRUE(oracle.expect(x, w, evidence::full).wide) << "another call may ask for it";
}

TEST(Oracle, StudiesDecisionsOnlyWhereTheReferenceTakesAny) {
  const task t = scale_task();
  for (const std::uint64_t decisions : {0U, 12U}) {
    fake_session::behavior b = right_program();
    b.decisions = decisions;
    reference_oracle oracle(t, std::make_unique<fake_session>(b));
    EXPECT_EQ(oracle.expect(x, w, evidence::full).alternatives.empty(), decisions == 0);
  }
}

TEST(Oracle, OmitsDoublePrecisionIfTheReferenceFailsInIt) {
  fake_session::behavior refuses = right_program();
  refuses.programs = {[](const value_set& inputs, const value_set& parameters) -> value_set {
    if (inputs[0].layout.type == dtype::float64) return {from_doubles({1}, {dtype::float64, {1}})};
    return testing_support::scaled(inputs, parameters);
  }};
  const task t = scale_task();
  auto session = std::make_unique<fake_session>(refuses);
  const fake_session& watched = *session;
  reference_oracle oracle(t, std::move(session));
  EXPECT_FALSE(oracle.expect(x, w, evidence::full).wide);
  const std::size_t studies = watched.studies.size();
  EXPECT_FALSE(oracle.expect(x, w, evidence::full).wide);
  EXPECT_EQ(watched.studies.size(), studies + 1) << "it is not tried again";
}

TEST(Oracle, ReportsTheAliasesOfTheReferencesOutputs) {
  fake_session::behavior b = right_program();
  b.aliases = {{0, output_alias::with::input, 0}};
  const task t = scale_task();
  reference_oracle oracle(t, std::make_unique<fake_session>(b));
  oracle.expect(x, w, evidence::own_types);
  EXPECT_EQ(oracle.aliases(), b.aliases);
}

task with_expression() {
  return parse_task(
      "name = \"t\"\nsummary = \"s\"\nreference = '''\ndef forward(x: Tensor) -> Tensor:\n    "
      "return x\n'''\n[[input]]\nname = \"x\"\nshape = [3]\ndtype = \"int32\"\ninit = { of = "
      "\"normal\", expr = \"x * 10\" }\n[[case]]\ntimed = true\n",
      "t.toml");
}

TEST(Oracle, EvaluatesExpressionsAsProgramsAndCastsLast) {
  const task t = with_expression();
  const auto programs = reference_oracle::programs(t);
  ASSERT_EQ(programs.size(), 2U);
  EXPECT_THAT(programs[1].python, testing::HasSubstr("return x * 10"));
  fake_session::behavior b;
  b.programs = {nullptr, [](const value_set& inputs, const value_set&) {
                  std::vector<double> raw = to_doubles(inputs[0]);
                  for (double& number : raw) number *= 10;
                  return value_set{from_doubles(raw, inputs[0].layout)};
                }};
  reference_oracle oracle(t, std::make_unique<fake_session>(b));
  const tensor_value realized =
      oracle.realize(0, from_doubles({0.15, -0.26, 1}, {dtype::float32, {3}}));
  EXPECT_EQ(realized.layout.type, dtype::int32);
  EXPECT_EQ(to_doubles(realized), (std::vector<double>{1, -2, 10}));
}

TEST(Oracle, RequiresThatAnExpressionKeepsTheShape) {
  const task t = with_expression();
  fake_session::behavior b;
  b.programs = {nullptr, [](const value_set&, const value_set&) {
                  return value_set{from_doubles({1}, {dtype::float32, {1}})};
                }};
  reference_oracle oracle(t, std::make_unique<fake_session>(b));
  EXPECT_THROW(oracle.realize(0, from_doubles({1, 2, 3}, {dtype::float32, {3}})), reference_error);
}

}  // namespace
}  // namespace hone
