#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/ui/markup.hpp"
#include "ui/plots/marks.hpp"
#include "ui/plots/run_plots.hpp"
#include "ui/plots/speedup_plots.hpp"

namespace hone::plots {
namespace {

using html::url;
using testing_support::hostile_texts;
using testing_support::parsed;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();
const std::vector<double> odd_values = {
    nan,  inf, -inf, 0, -1, 1e-300, 1e300, 1e6, 1, 2.5, std::numeric_limits<double>::denorm_min(),
    -0.0, 1e15};

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Checks both elements of a plot, and that no coordinate is not a number or far outside.
void expect_sound(const plot& p, const std::string& about = "") {
  const std::string picture = p.picture.str();
  EXPECT_EQ(parsed(picture).error, "") << about;
  EXPECT_EQ(parsed(p.table.str()).error, "") << about;
  EXPECT_EQ(parsed(figure(p, about).str()).error, "") << about;
  EXPECT_NE(picture.find("<title>"), picture.npos);
  EXPECT_NE(picture.find("<desc>"), picture.npos);
  for (const std::string_view name :
       {" x", " y", " x1", " y1", " x2", " y2", " cx", " cy", " width", " height", " d"}) {
    const std::string opening = std::string(name) + "=\"";
    for (std::size_t at = picture.find(opening); at != picture.npos;
         at = picture.find(opening, at + 1)) {
      const std::size_t begin = at + opening.size();
      const std::string value = picture.substr(begin, picture.find('"', begin) - begin);
      EXPECT_EQ(value.find_first_not_of("0123456789.- MLHVZhvl"), value.npos) << about << value;
      EXPECT_LT(std::abs(std::strtod(value.c_str(), nullptr)), 20'000) << about << value;
    }
  }
}

axis axis_of(axis_scale scale, std::vector<double> values) {
  value_range range(scale);
  for (const double v : values) range.add(v);
  return axis(range, 100, 500);
}

std::string labels(const axis& a, std::size_t max_ticks = 8) {
  std::string all;
  for (const axis_tick& t : a.ticks(max_ticks)) all += (all.empty() ? "" : " ") + t.label;
  return all;
}

TEST(AxisTest, TicksAreRound) {
  EXPECT_EQ(labels(axis_of(axis_scale::ratio, {0.5, 8})), "1/2x 1x 2x 4x 8x");
  EXPECT_EQ(labels(axis_of(axis_scale::ratio, {1, 1e6})),
            "1x 10x 100x 1000x 10000x 100000x 1000000x");
  EXPECT_EQ(labels(axis_of(axis_scale::ratio, {2.41, 2.73})),
            "2.45x 2.50x 2.55x 2.60x 2.65x 2.70x");
  EXPECT_EQ(labels(axis_of(axis_scale::linear, {-0.3, 1.2})), "-0.2 0.0 0.2 0.4 0.6 0.8 1.0 1.2");
  EXPECT_EQ(labels(axis_of(axis_scale::whole, {0, 3})), "0 1 2 3");
  EXPECT_EQ(labels(axis_of(axis_scale::whole, {0, 20000})), "0 5000 10k 15k 20k");
  EXPECT_EQ(labels(axis_of(axis_scale::seconds, {0, 3600})),
            "0 s 10 min 20 min 30 min 40 min 50 min 60 min");
}

TEST(AxisTest, PositionsAreProportionalAndClamped) {
  const axis ratio = axis_of(axis_scale::ratio, {1, 16});
  EXPECT_DOUBLE_EQ(ratio(4), 300);
  EXPECT_DOUBLE_EQ(ratio(0.001), 100);
  EXPECT_DOUBLE_EQ(axis_of(axis_scale::linear, {0, 10})(2.5), 200);
}

TEST(AxisTest, AnyRangeHasTicksInsideIt) {
  std::mt19937_64 random(3);
  for (const auto scale :
       {axis_scale::linear, axis_scale::whole, axis_scale::ratio, axis_scale::seconds}) {
    for (int round = 0; round < 3000; ++round) {
      const auto value = [&] {
        const double v = std::exp(std::uniform_real_distribution<>(-27, 27)(random));
        return scale == axis_scale::ratio || random() % 2 == 0 ? v : -v;
      };
      const double low = value();
      const axis a = axis_of(scale, {low, round % 3 == 0   ? low
                                          : round % 3 == 1 ? low * 1.001
                                                           : value()});
      const std::size_t max_ticks = 2 + random() % 10;
      const auto ticks = a.ticks(max_ticks);
      ASSERT_FALSE(ticks.empty());
      EXPECT_LE(ticks.size(), max_ticks + 2);
      for (const axis_tick& t : ticks) {
        EXPECT_GE(a(t.value), 99.9);
        EXPECT_LE(a(t.value), 500.1);
        EXPECT_FALSE(t.label.empty());
      }
    }
  }
}

TEST(ValueRangeTest, CountsValuesThatCannotBeDrawn) {
  value_range range(axis_scale::ratio);
  for (const double v : odd_values) range.add(v);
  EXPECT_EQ(range.skipped(), odd_values.size() - 3);
  EXPECT_EQ(range.low(), 1);
  EXPECT_EQ(range.high(), 1e6);
  value_range negative(axis_scale::linear);
  negative.add(-3);
  EXPECT_EQ(negative.high(), -3);
}

TEST(LegendTest, EntriesDoNotOverlap) {
  std::vector<legend_entry> entries;
  for (std::size_t i = 0; i < 40; ++i) entries.push_back({std::string(i * 3, 'w'), "s0"});
  picture p(640);
  const double end = p.add_legend(entries, 56);
  EXPECT_LT(end, 200);
  const std::string svg = std::move(p).finish(400, "", "").str();
  EXPECT_EQ(count(svg, "<line"), max_legend_entries);
  EXPECT_NE(svg.find("and 24 more"), svg.npos);
  // Boxes of labels by the width that the layout assumes.
  std::vector<std::array<double, 3>> boxes;  // y, from, to
  for (std::size_t at = svg.find("<text"); at != svg.npos; at = svg.find("<text", at + 1)) {
    const double x = std::strtod(svg.c_str() + svg.find(" x=\"", at) + 4, nullptr);
    const double y = std::strtod(svg.c_str() + svg.find(" y=\"", at) + 4, nullptr);
    const std::string one = parsed(svg.substr(at, svg.find("</text>", at) + 7 - at)).text;
    const std::size_t length = std::min<std::size_t>(one.size(), 24);
    boxes.push_back({y, x, x + static_cast<double>(length) * column_px});
  }
  for (std::size_t i = 1; i < boxes.size(); ++i) {
    EXPECT_LE(boxes[i][2], 640 + 1);
    if (boxes[i][0] == boxes[i - 1][0]) {
      EXPECT_GE(boxes[i][1], boxes[i - 1][2]);
    }
  }
}

TEST(PlotsTest, WithoutDataSayNoData) {
  for (const plot& p :
       {learning_curve("t", {}, {}, "step"),
        learning_curve("t", {{"a", {{nan, 1, 1, 1}}}}, {}, "step"), outcome_shares("t", {}, "step"),
        outcome_shares("t", {{1, {}}}, "step"), lanes("t", {}, 10), lanes("t", {{"a", {1}}}, nan),
        lanes("t", {{"a", {}}}, 10), speedups_by_task("t", {}),
        speedups_by_task("t", {{"a", 0, {nan}, {}, {}}}), measurements("t", {}),
        measurements("t", {{"a", -1, 1, 2}}), variant_scatter("t", {}), histogram("t", {})}) {
    expect_sound(p);
    EXPECT_NE(p.picture.str().find(">no data</text>"), std::string::npos);
  }
  EXPECT_EQ(parsed(sparkline("t", {nan, -1}).str()).error, "");
}

TEST(LearningCurveTest, DrawsLineBandAndBorders) {
  const plot p = learning_curve(
      "curve", {{"run", {{0, 0, -0.1, 0.1}, {10, 0.7, 0.5, 0.9}}}, {"other", {{5, 0.2, nan, nan}}}},
      {{4, "contrastive"}}, "step");
  const std::string svg = p.picture.str();
  EXPECT_EQ(count(svg, "class=\"line s0 dash0\""), 1U);
  EXPECT_EQ(count(svg, "class=\"band s0\""), 1U);
  EXPECT_EQ(count(svg, "<circle class=\"s1 dash0\""), 1U);
  EXPECT_NE(svg.find(">contrastive</text>"), svg.npos);
  EXPECT_NE(svg.find(">2x</text>"), svg.npos);
  EXPECT_NE(svg.find("role=\"img\""), svg.npos);
  EXPECT_NE(svg.find("Without interval: 1."), svg.npos);
  EXPECT_NE(p.table.str().find("<td class=\"n\">0.700</td><td class=\"n\">0.500</td>"),
            std::string::npos);
}

TEST(LearningCurveTest, MergesNeighborsAboveFourHundred) {
  learning_series s{"run", {}};
  for (int i = 0; i < 1000; ++i)
    s.points.push_back({1.0 * i, i == 500 ? 3.0 : 0.0, i == 499 ? -2. : 0., 1});
  const plot p = learning_curve("t", {s}, {}, "step");
  expect_sound(p);
  EXPECT_NE(p.picture.str().find("merged"), std::string::npos);
  EXPECT_EQ(count(p.table.str(), "<tr>"), 335U);  // ceil(1000 / 3) and the header
  EXPECT_NE(p.table.str().find("1.000</td><td class=\"n\">-2.000</td><td class=\"n\">1.000"),
            std::string::npos);
}

TEST(OutcomeSharesTest, StackFromOkInFixedOrder) {
  const plot p = outcome_shares("t", {{1, {6, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0}}, {2, {}}}, "step");
  const std::string svg = p.picture.str();
  const auto bar = svg.find("1: ok 60.0 %");
  ASSERT_NE(bar, svg.npos);
  EXPECT_LT(bar, svg.find("1: compile_error 30.0 %"));
  EXPECT_LT(svg.find("1: compile_error 30.0 %"), svg.find("1: wrong_result 10.0 %"));
  EXPECT_EQ(svg.find("cheating"), svg.npos);
  EXPECT_NE(svg.find("Left out: 1 bars without samples"), svg.npos);
}

TEST(OutcomeSharesTest, AddUpNeighborsAboveEighty) {
  const plot p = outcome_shares(
      "t", std::vector<outcome_point>(1000, {1, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}), "step");
  expect_sound(p);
  EXPECT_LE(count(p.picture.str(), "<rect"), 80U * 11U + 11U);
  outcome_point huge{1, {}};
  huge.counts.fill(std::numeric_limits<std::uint64_t>::max());
  expect_sound(outcome_shares("t", {huge, huge}, "step"));
}

TEST(VariantScatterTest, LinksPointsAndDrawsLanesAndFrontier) {
  const plot p = variant_scatter(
      "t", {{1, 1.5, 0, variant_origin::corpus, "a1", url("/variant").segment("a1")},
            {2, 0, 3, variant_origin::generated, "b2", url("/variant").segment("b2")},
            {3, 2.5, 0, variant_origin::copied, "c3", {}},
            {3, nan, 0, variant_origin::copied, "d4", {}},
            {nan, 2, 0, variant_origin::copied, "e5", {}},
            {3, 2, 99, variant_origin::copied, "f6", {}}});
  const std::string svg = p.picture.str();
  EXPECT_EQ(parsed(svg).links, (std::vector<std::string>{"/variant/a1", "/variant/b2"}));
  EXPECT_NE(svg.find("role=\"group\""), svg.npos);  // an image cannot contain links
  EXPECT_EQ(count(svg, "class=\"dot o0\""), 2U);
  EXPECT_EQ(count(svg, "class=\"dot o3\""), 1U);
  EXPECT_NE(svg.find(">compile_error</text>"), svg.npos);
  EXPECT_NE(svg.find("Left out: 3 variants"), svg.npos);
  EXPECT_NE(svg.find("3 variants by version and speed-up, best 2.50x"), svg.npos);
  EXPECT_EQ(parsed(p.table.str()).links.size(), 2U);
}

TEST(VariantScatterTest, DrawsCellsAboveTwoThousandPoints) {
  std::mt19937 random(5);
  std::vector<variant_point> points;
  for (std::size_t i = 0; i < 50'000; ++i) {
    points.push_back({static_cast<double>(random() % 500),
                      std::exp2(static_cast<double>(random() % 700) / 100.), random() % 11,
                      variant_origin::generated, "v" + std::to_string(i),
                      url("/variant").segment("v")});
  }
  const plot p = variant_scatter("t", points);
  expect_sound(p);
  const std::string svg = p.picture.str();
  EXPECT_LT(svg.size(), 600'000U);
  EXPECT_NE(svg.find("Each cell merges several variants"), svg.npos);
  EXPECT_EQ(count(svg, "<circle"), 1U);  // of the legend
  points.resize(2000);
  EXPECT_GT(count(variant_scatter("t", points).picture.str(), "<circle"), 1900U);
}

TEST(MeasurementsTest, DrawIntervalsAndMedian) {
  const plot p =
      measurements("t", {{"14:02 cpu:1", 2, 1.9, 2.1}, {"14:20", 3, nan, 3.1}, {"15:00", 8, 7, 9}});
  const std::string svg = p.picture.str();
  EXPECT_EQ(count(svg, "class=\"interval s0\""), 2U);
  EXPECT_EQ(count(svg, "class=\"median\""), 1U);
  EXPECT_NE(svg.find("median 3.00x."), svg.npos);
  EXPECT_NE(svg.find("Left out: 1 values"), svg.npos);
}

TEST(SpeedupsByTaskTest, DrawHeadlineMeasurementsAndBaselines) {
  const plot p = speedups_by_task("t", {{"softmax",
                                         2.5,
                                         {2.4, 2.5, 2.6},
                                         {{"tf32", 1.2}, {"graph", nan}},
                                         url("/task").segment("softmax")}});
  const std::string svg = p.picture.str();
  EXPECT_EQ(count(svg, "class=\"headline s0\""), 1U);
  EXPECT_EQ(count(svg, "class=\"measured\""), 3U);
  EXPECT_EQ(count(svg, "class=\"baseline s1 dash0\""), 2U);  // one in the legend
  EXPECT_EQ(parsed(svg).links, std::vector<std::string>{"/task/softmax"});
  EXPECT_NE(p.table.str().find("tf32 1.20x, graph -"), std::string::npos);
}

TEST(SpeedupsByTaskTest, DrawTheFirstRowsAndListAll) {
  const plot p = speedups_by_task("t", std::vector<task_speedups>(1000, {"task", 2, {}, {}, {}}));
  expect_sound(p);
  EXPECT_EQ(count(p.picture.str(), "class=\"headline s0\""), 400U);
  EXPECT_EQ(count(p.table.str(), "<tr>"), 1001U);
  EXPECT_NE(p.picture.str().find("Left out: 600 rows"), std::string::npos);
}

TEST(LanesTest, AverageCellsAndShowTheMean) {
  const plot p = lanes("t", {{"cpu:1", std::vector<double>(1000, 0.5)}, {"idle", {0, nan, 2}}}, 10);
  expect_sound(p);
  const std::string svg = p.picture.str();
  EXPECT_NE(svg.find(">50.0 %</text>"), svg.npos);
  EXPECT_EQ(count(svg, "fill-opacity=\"0.5\""), 113U);  // ceil(1000 / 9), and the mean of 0 and 1
  EXPECT_NE(svg.find("Left out: 1 cells that are unknown"), svg.npos);
}

TEST(HistogramTest, DrawsABarPerBucket) {
  const plot p = histogram(
      "t", {{0.8, 1, 3}, {1, 1.25, 7}, {nan, 1, 1}, {1.25, 1.5625, std::uint64_t{1} << 63U}});
  expect_sound(p);
  EXPECT_EQ(count(p.picture.str(), "<rect"), 2U);
}

TEST(PlotsTest, OddValuesAreSound) {
  for (const double a : odd_values) {
    for (const double b : odd_values) {
      const std::string about = std::to_string(a) + " " + std::to_string(b);
      for (const auto scale : {axis_scale::whole, axis_scale::seconds}) {
        expect_sound(
            learning_curve("t", {{"s", {{a, b, a, b}, {b, a, b, a}, {1, b, -b, b}, {2, 0, b, a}}}},
                           {{a, "x"}, {b, "y"}}, "x", scale),
            about);
      }
      expect_sound(outcome_shares("t", {{a, {1}}, {b, {1}}}, "x"), about);
      expect_sound(lanes("t", {{"a", {a, b}}}, a), about);
      expect_sound(lanes("t", {{"a", {a, b}}}, 1), about);
      expect_sound(
          speedups_by_task("t", {{"a", a, {b, 1}, {{"b", b}}, {}}, {"b", b, {}, {{"b", a}}, {}}}),
          about);
      expect_sound(measurements("t", {{"a", a, b, b}, {"b", b, a, b}, {"c", b, b, a}}), about);
      expect_sound(variant_scatter("t", {{a, b, 0, variant_origin::copied, "a", {}},
                                         {b, a, 0, variant_origin::corpus, "b", {}},
                                         {a, b, 4, variant_origin::corpus, "c", {}}}),
                   about);
      expect_sound(histogram("t", {{a, b, 1}, {b, a, 0}}), about);
      EXPECT_EQ(parsed(sparkline("t", {a, b, a}).str()).error, "");
    }
  }
}

TEST(PlotsTest, HostileNamesStayTextAndAreShortened) {
  for (std::string hostile : hostile_texts()) {
    hostile = hostile.substr(0, 20'000);
    const url link = url("/x").segment(hostile);
    expect_sound(learning_curve(hostile, {{hostile, {{0, 0, 0, 0}, {1, 1, 0, 2}}}}, {{0, hostile}},
                                hostile));
    expect_sound(outcome_shares(hostile, {{1, {1}}}, hostile));
    expect_sound(lanes(hostile, {{hostile, {1}}}, 1));
    const plot tasks = speedups_by_task(hostile, {{hostile, 2, {2}, {{hostile, 1}}, link}});
    expect_sound(tasks);
    expect_sound(measurements(hostile, {{hostile, 2, 1, 3}}));
    expect_sound(variant_scatter(hostile, {{1, 2, 0, variant_origin::copied, hostile, link}}));
    EXPECT_EQ(parsed(sparkline(hostile, {1, 2}).str()).error, "");
    for (const std::string& target : parsed(tasks.picture.str()).links) {
      EXPECT_TRUE(target.starts_with("/x/"));
    }
  }
  const std::string name(1000, 'n');
  const std::string svg = measurements("t", {{name, 2, 1, 3}}).picture.str();
  EXPECT_NE(svg.find("<title>" + name + "</title>" + std::string(21, 'n') + "…</text>"), svg.npos);
}

TEST(PlotsTest, ThousandsOfHostileRowsAreSound) {
  std::vector<task_speedups> rows;
  std::vector<learning_series> series;
  for (int i = 0; i < 5000; ++i) {
    const auto& hostile = hostile_texts()[static_cast<std::size_t>(i) % hostile_texts().size()];
    const std::string name = hostile.substr(0, 300) + std::to_string(i);
    rows.push_back({name,
                    odd_values[static_cast<std::size_t>(i) % odd_values.size()],
                    odd_values,
                    {{name, 1.5}},
                    {}});
    if (i < 300) series.push_back({name, {{0, 0, 0, 0}, {1, 1, 0, 2}}});
  }
  expect_sound(speedups_by_task("t", rows));
  expect_sound(learning_curve("t", series, {}, "step"));
}

}  // namespace
}  // namespace hone::plots
