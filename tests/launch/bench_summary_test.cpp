#include "launch/bench/bench_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

bench_result result(const std::string& task, const std::string& group, const std::string& document,
                    const std::string& outcome) {
  bench_result one;
  one.task = task;
  one.group = group;
  one.document = document;
  one.device_type = "gpu";
  one.outcome = outcome;
  return one;
}

bench_result ok(const std::string& task, double speedup, const std::string& group = "level1") {
  bench_result one = result(task, group, "a", "ok");
  one.speedup = speedup;
  one.low = speedup - 0.1;
  one.high = speedup + 0.1;
  one.reference_us = 100;
  one.candidate_us = 100 / speedup;
  one.baselines_us = {{"eager", 100}, {"graph", 50}};
  return one;
}

bench_result wrong(const std::string& task, const std::string& group = "level1") {
  bench_result one = result(task, group, "b, \"c\"", "wrong_result");
  one.message = "element [0] is 1,\nexpected 2";
  return one;
}

TEST(BenchSummary, CountsTheBestDocumentOfEachTask) {
  const auto all =
      summarize({ok("a", 2), ok("a", 4), wrong("a"), ok("b", 1), ok("c", 0.5), wrong("d")});
  ASSERT_EQ(all.size(), 2U);
  for (const bench_summary& s : all) {
    EXPECT_EQ(s.tasks, 4U);
    EXPECT_EQ(s.correct, 3U);
    EXPECT_EQ(s.documents, 6U);
    EXPECT_EQ(s.outcomes.at("wrong_result"), 2U);
    const auto& eager = s.against.at("eager");
    EXPECT_NEAR(eager.geometric_mean, std::cbrt(4 * 1 * 0.5), 1e-9);
    EXPECT_DOUBLE_EQ(eager.median, 1);
    EXPECT_DOUBLE_EQ(eager.fast.at(0), 0.75);
    EXPECT_DOUBLE_EQ(eager.fast.at(1), 0.25) << "a speed-up of 1 is not above 1";
    EXPECT_DOUBLE_EQ(s.against.at("graph").median, 0.5);
  }
  EXPECT_EQ(all[0].group, "all");
  EXPECT_EQ(all[1].group, "level1");
}

TEST(BenchSummary, KeepsGroupsAndDeviceTypesApart) {
  bench_result other = ok("a", 3);
  other.device_type = "cpu";
  const auto all = summarize({ok("a", 2), ok("b", 8, "level2"), other, ok("z", 5, "all")});
  std::map<std::string, double> means;
  for (const bench_summary& s : all)
    means[s.device_type + " " + s.group] = s.against.at("eager").geometric_mean;
  EXPECT_EQ(means.size(), 5U);
  EXPECT_NEAR(means.at("gpu all"), std::cbrt(80), 1e-9);
  EXPECT_NEAR(means.at("gpu level2"), 8, 1e-9);
  EXPECT_NEAR(means.at("cpu level1"), 3, 1e-9);
}

TEST(BenchSummary, HasNoMeanWithoutACorrectDocument) {
  const auto all = summarize({wrong("a")});
  EXPECT_EQ(all.front().correct, 0U);
  EXPECT_EQ(all.front().against.at("eager").geometric_mean, 0);
  EXPECT_EQ(all.front().against.at("eager").fast.at(0), 0);
  EXPECT_TRUE(summarize({}).empty());
}

TEST(BenchSummary, PrintsCsvThatQuotesItsFields) {
  EXPECT_EQ(print_csv({ok("a", 2), wrong("b")}),
            "device_type,group,task,document,outcome,speedup,low,high,reference_us,candidate_us,"
            "graph_us,message\n"
            "gpu,level1,a,a,ok,2.000,1.900,2.100,100.000,50.000,50.000,\n"
            "gpu,level1,b,\"b, \"\"c\"\"\",wrong_result,,,,,,,\"element [0] is 1,\nexpected 2\"\n");
}

TEST(BenchSummary, PrintsMarkdownTables) {
  const std::string text = print_markdown({ok("a", 2), wrong("b")});
  EXPECT_THAT(text, HasSubstr("1 of 2 tasks have a correct document; 2 documents: 1 ok, 1 "
                              "wrong_result."));
  EXPECT_THAT(text, HasSubstr("| eager | 1 | 2.00 | 2.00 | 50.0 % | 50.0 % | 50.0 % | 0.0 % |"));
  EXPECT_THAT(text, HasSubstr("| gpu | a | a | ok | 2.00 | 1.900 to 2.100 | 100.0 | 50.0 |"));
  EXPECT_THAT(text, Not(HasSubstr("Missing baselines")));
}

TEST(BenchSummary, LeavesOutTasksWithoutAResult) {
  bench_result none = ok("c", 50);
  none.has_result = false;
  const std::vector<bench_summary> all = summarize({ok("a", 2), wrong("b"), none});
  const bench_summary& s = all.front();
  EXPECT_EQ(s.tasks, 2U);
  EXPECT_EQ(s.correct, 1U);
  EXPECT_EQ(s.documents, 2U);
  EXPECT_EQ(s.left_out, 1U);
  EXPECT_EQ(s.against.at("eager").geometric_mean, 2);
  EXPECT_EQ(s.against.at("eager").fast.at(1), 0.5);
  const std::string text = print_markdown({ok("a", 2), none});
  EXPECT_THAT(text, HasSubstr("1 ok. Left out: 1 task without a result."));
  EXPECT_THAT(text, HasSubstr("| gpu | c | a | ok |")) << "its documents are listed";
}

TEST(BenchSummary, SaysOnceForATaskWhyItLacksABaseline) {
  bench_result one = ok("a", 2);
  one.missing_baselines["graph"] = "cannot be captured:\na | vector<int>";
  bench_result other = one;
  other.missing_baselines["graph"] = "another reason";
  const std::string text = print_markdown({one, other, ok("b", 3)});
  const std::string line = "| gpu | a | graph | cannot be captured: a \\| vector&lt;int> |\n";
  EXPECT_THAT(text, EndsWith("|---|---|---|---|\n" + line));
  EXPECT_EQ(text.find(line), text.rfind(line));
}

}  // namespace
}  // namespace hone
