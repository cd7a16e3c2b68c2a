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
  const expected_outputs expected = oracle.expect(x, w);
  EXPECT_EQ(expected.own[0].layout.type, dtype::float32);
  ASSERT_TRUE(expected.wide);
  EXPECT_EQ((*expected.wide)[0].layout.type, dtype::float64);
  EXPECT_EQ(to_doubles((*expected.wide)[0]), (std::vector<double>{4, 6}));
}

TEST(Oracle, RunsTheReferenceOnceIfItsOwnTypesSuffice) {
  const task t = scale_task();
  auto session = std::make_unique<fake_session>(right_program());
  const fake_session& watched = *session;
  reference_oracle oracle(t, std::move(session));
  const expected_outputs expected = oracle.expect(x, w, exactness::own_types);
  EXPECT_EQ(to_doubles(expected.own[0]), (std::vector<double>{4, 6}));
  EXPECT_FALSE(expected.wide);
  EXPECT_EQ(watched.runs, 1U);
  EXPECT_TRUE(oracle.expect(x, w).wide) << "another call may ask for it";
}

TEST(Oracle, OmitsDoublePrecisionIfTheReferenceFailsInIt) {
  fake_session::behaviour b = right_program();
  auto last = std::make_shared<dtype>(dtype::float32);
  b.programs = {[](const value_set& inputs, const value_set& parameters) -> value_set {
    value_set y = testing_support::scaled(inputs, parameters);
    return {convert_floating(y[0], dtype::float32)};
  }};
  auto session = std::make_unique<fake_session>(b);
  fake_session* watched = session.get();
  const task t = scale_task();
  reference_oracle oracle(t, std::move(session));
  EXPECT_TRUE(oracle.expect(x, w).wide) << "a reference may return float32 for float64 inputs";

  fake_session::behaviour refuses = right_program();
  refuses.fails = [run = 0](std::size_t) mutable {
    return ++run == 2 ? program_result<void>(failed(Outcome::CRASH, "expected float"))
                      : program_result<void>();
  };
  reference_oracle strict(t, std::make_unique<fake_session>(refuses));
  EXPECT_FALSE(strict.expect(x, w).wide);
  EXPECT_FALSE(strict.expect(x, w).wide) << "it is not tried again";
  EXPECT_EQ(watched->runs, 2U);
}

TEST(Oracle, ReportsTheAliasesOfTheReferencesOutputs) {
  fake_session::behaviour b = right_program();
  b.aliases = {{0, output_alias::with::input, 0}};
  const task t = scale_task();
  reference_oracle oracle(t, std::make_unique<fake_session>(b));
  oracle.expect(x, w);
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
  fake_session::behaviour b;
  b.programs = {nullptr, [](const value_set& inputs, const value_set&) {
                  std::vector<double> raw = to_doubles(inputs[0]);
                  for (double& number : raw) number *= 10;
                  return value_set{from_doubles(raw, inputs[0].layout)};
                }};
  reference_oracle oracle(t, std::make_unique<fake_session>(b));
  const tensor_value realised =
      oracle.realise(0, from_doubles({0.15, -0.26, 1}, {dtype::float32, {3}}));
  EXPECT_EQ(realised.layout.type, dtype::int32);
  EXPECT_EQ(to_doubles(realised), (std::vector<double>{1, -2, 10}));
}

TEST(Oracle, RequiresThatAnExpressionKeepsTheShape) {
  const task t = with_expression();
  fake_session::behaviour b;
  b.programs = {nullptr, [](const value_set&, const value_set&) {
                  return value_set{from_doubles({1}, {dtype::float32, {1}})};
                }};
  reference_oracle oracle(t, std::make_unique<fake_session>(b));
  EXPECT_THROW(oracle.realise(0, from_doubles({1, 2, 3}, {dtype::float32, {3}})), reference_error);
}

}  // namespace
}  // namespace hone
