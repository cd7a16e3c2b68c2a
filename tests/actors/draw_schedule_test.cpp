#include "actors/draw_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "tests/support/pool_records.hpp"

namespace hone {
namespace {

using testing_support::comparison;

class DrawSchedule : public testing::Test {
 protected:
  draw_schedule make(std::size_t max_groups) {
    draw_schedule s({{1, 0}, {2, 0}}, {max_groups, 16, 1000});
    s.change_devices("a", 1);
    s.change_devices("b", 1);
    return s;
  }
  std::optional<draw_schedule::assignment> draw(draw_schedule& s, std::size_t waiting = 0,
                                                std::size_t ready = 0) {
    auto next = s.next(Stage::CONTRASTIVE, 7, waiting, ready, {});
    if (next) s.issue({++number_, 0}, *next, 100);
    return next;
  }
  std::uint64_t number_ = 0;
};

TEST_F(DrawSchedule, GivesEveryTaskAndDeviceTypeItsTurn) {
  draw_schedule s = make(100);
  std::set<std::pair<std::uint64_t, std::string>> places;
  for (int i = 0; i < 4; ++i) {
    const auto next = draw(s);
    ASSERT_TRUE(next);
    places.emplace(next->where.task.high, next->where.device_type);
  }
  EXPECT_EQ(places.size(), 4U);
}

TEST_F(DrawSchedule, AResumedRunDoesNotBeginWithTheFirstTask) {
  draw_schedule::options options;
  options.first_place = 3;
  draw_schedule s({{1, 0}, {2, 0}}, options);
  s.change_devices("a", 1);
  EXPECT_EQ(draw(s)->where.task.high, 2U);
  EXPECT_EQ(draw(s)->where.task.high, 1U);
}

TEST_F(DrawSchedule, BoundsOutstandingDrawsWaitingAndReadyGroupsTogether) {
  draw_schedule s = make(3);
  EXPECT_TRUE(draw(s, 0, 1));
  EXPECT_TRUE(draw(s, 1, 0));
  EXPECT_FALSE(draw(s, 1, 0)) << "two draws are outstanding and one group waits";
  s.complete({1, 0});
  EXPECT_TRUE(draw(s, 1, 0));
}

TEST_F(DrawSchedule, DrawsNothingInTheSftStage) {
  EXPECT_FALSE(make(10).next(Stage::SFT, 0, 0, 0, {}));
}

TEST_F(DrawSchedule, DrawsNothingWithoutADevice) {
  draw_schedule s = make(10);
  s.change_devices("a", -1);
  s.change_devices("b", -1);
  EXPECT_FALSE(draw(s));
}

TEST_F(DrawSchedule, KeepsADeviceTypeUntilItsLastDeviceIsGone) {
  draw_schedule s = make(10);
  s.change_devices("a", 1);
  s.change_devices("a", -1);
  EXPECT_THAT(s.device_types(), testing::ElementsAre("a", "b"));
}

TEST_F(DrawSchedule, AComparisonComesFirstAndIgnoresTheBound) {
  draw_schedule s = make(0);
  EXPECT_EQ(s.compare(*comparison({3, 9}, 5)), 40U);
  std::map<std::pair<std::uint64_t, std::string>, int> samples;
  std::vector<std::uint64_t> versions;
  for (int i = 0; i < 40; ++i) {
    const auto next = s.next(Stage::CONTRASTIVE, 9, 0, 0, {});
    ASSERT_TRUE(next);
    EXPECT_EQ(next->stage, Stage::COMPARISON);
    EXPECT_EQ(next->samples, 1U);
    ++samples[{next->version, to_string(next->where.task) + next->where.device_type}];
    versions.push_back(next->version);
  }
  EXPECT_EQ(samples.size(), 8U);
  for (const auto& [place, count] : samples) EXPECT_EQ(count, 5);
  EXPECT_TRUE(std::is_sorted(versions.begin(), versions.end())) << "the weights change once";
  EXPECT_FALSE(s.next(Stage::CONTRASTIVE, 9, 0, 0, {}));
}

TEST_F(DrawSchedule, BothVersionsOfAComparisonShareTheirDraws) {
  draw_schedule s = make(0);
  s.compare(*comparison({3, 9}, 5));
  std::map<std::uint64_t, std::vector<std::pair<std::size_t, std::string>>> draws;
  while (const auto next = s.next(Stage::CONTRASTIVE, 9, 0, 0, {}))
    draws[next->version].emplace_back(next->comparison, next->where.device_type);
  EXPECT_EQ(draws[3], draws[9]);
  EXPECT_EQ(draws[3].size(), 20U);
}

TEST_F(DrawSchedule, AComparisonHasItsArmsAndItsHeldOutTasks) {
  using Arm = schema::Draw::Arm;
  draw_schedule s({{1, 0}, {2, 0}}, {0, 16, 1000}, {{9, 0}});
  s.change_devices("a", 1);
  record_builder<schema::ComparisonRequest> request(*comparison({3, 9}, 5));
  auto held_out = request->initHeldOutVersions(3);
  for (unsigned i = 0; i < 3; ++i) held_out.set(i, 3 * i + 3);
  request->setHeldOutSamples(7);
  request->setHeldOutBareSamples(6);
  request->setBareSamples(2);
  request->setGreedySamples(4);
  // Two tasks by two versions in three arms, and one held-out task by three versions in three
  // arms, of which the greedy one has one sample.
  const std::size_t groups = 2 * 2 * (5 + 2 + 4) + 3 * (7 + 6 + 1);
  EXPECT_EQ(s.compare(*request.finish()), groups);
  std::map<std::pair<bool, Arm>, std::map<std::uint64_t, int>> samples;
  std::map<std::size_t, std::set<std::pair<std::uint64_t, Arm>>> by_draw;  // task and arm
  std::vector<std::uint64_t> versions;
  for (std::size_t i = 0; i < groups; ++i) {
    const auto next = s.next(Stage::COMPARISON, 9, 0, 0, {});
    ASSERT_TRUE(next);
    ++samples[{next->where.task.high == 9, next->arm}][next->version];
    by_draw[next->comparison].emplace(next->where.task.high, next->arm);
    versions.push_back(next->version);
  }
  EXPECT_TRUE(std::is_sorted(versions.begin(), versions.end()));
  using counts = std::map<std::uint64_t, int>;
  EXPECT_EQ((samples[{false, Arm::SAMPLED}]), (counts{{3, 10}, {9, 10}}));
  EXPECT_EQ((samples[{false, Arm::BARE}]), (counts{{3, 4}, {9, 4}}));
  EXPECT_EQ((samples[{false, Arm::GREEDY}]), (counts{{3, 8}, {9, 8}}));
  EXPECT_EQ((samples[{true, Arm::SAMPLED}]), (counts{{3, 7}, {6, 7}, {9, 7}}));
  EXPECT_EQ((samples[{true, Arm::BARE}]), (counts{{3, 6}, {6, 6}, {9, 6}}));
  EXPECT_EQ((samples[{true, Arm::GREEDY}]), (counts{{3, 1}, {6, 1}, {9, 1}}));
  EXPECT_EQ(samples.size(), 6U);
  for (const auto& [draw, places] : by_draw) EXPECT_EQ(places.size(), 1U) << "draw " << draw;
}

TEST_F(DrawSchedule, AComparisonWaitsForADeviceTypeThatIsNotBack) {
  draw_schedule s({{1, 0}}, {0, 16, 1000});
  s.change_devices("a", 1);
  EXPECT_EQ(s.compare(*comparison({3}, 2), {"b"}), 4U);
  for (int i = 0; i < 2; ++i) {
    const auto next = s.next(Stage::COMPARISON, 3, 0, 0, {});
    ASSERT_TRUE(next);
    EXPECT_EQ(next->where.device_type, "a");
  }
  EXPECT_FALSE(s.next(Stage::COMPARISON, 3, 0, 0, {}));
  s.change_devices("b", 1);
  EXPECT_EQ(s.next(Stage::COMPARISON, 3, 0, 0, {})->where.device_type, "b");
}

TEST_F(DrawSchedule, SaysWhichHeldOutPlaceShowsExemplarsNext) {
  draw_schedule s({{1, 0}}, {0, 16, 1000}, {{9, 0}});
  s.change_devices("a", 1);
  EXPECT_EQ(s.next_held_out(), nullptr) << "nothing is compared";
  record_builder<schema::ComparisonRequest> request(*comparison({9}, 2));
  request->initHeldOutVersions(1).set(0, 9);
  request->setHeldOutSamples(1);
  request->setHeldOutBareSamples(2);
  const std::size_t groups = s.compare(*request.finish());
  std::size_t places = 0;
  for (std::size_t i = 0; i < groups; ++i) {
    const draw_schedule::place* const held_out = s.next_held_out();
    const std::optional<draw_schedule::place> expected =
        held_out == nullptr ? std::nullopt : std::optional(*held_out);
    const auto next = s.next(Stage::COMPARISON, 9, 0, 0, {});
    ASSERT_TRUE(next);
    EXPECT_EQ(expected.has_value(), next->is_held_out && next->arm != schema::Draw::Arm::BARE);
    if (expected) {
      EXPECT_EQ(*expected, next->where);
    }
    places += expected ? 1 : 0;
  }
  EXPECT_EQ(places, 1U) << "learned tasks and prompts without exemplars wait for nothing";
}

TEST_F(DrawSchedule, AComparisonOfSomeTasksSpreadsThemEvenly) {
  std::vector<task_id> tasks;
  for (std::uint64_t i = 0; i < 10; ++i) tasks.push_back({i, 0});
  draw_schedule s(tasks, {0, 16, 1000});
  s.change_devices("a", 1);
  record_builder<schema::ComparisonRequest> request(*comparison({3, 9}, 1));
  request->setTasks(4);
  EXPECT_EQ(s.compare(*request.finish()), 8U);
  std::map<std::uint64_t, std::vector<std::uint64_t>> by_version;
  while (const auto next = s.next(Stage::COMPARISON, 9, 0, 0, {}))
    by_version[next->version].push_back(next->where.task.high);
  EXPECT_THAT(by_version[3], testing::ElementsAre(0U, 2U, 5U, 7U));
  EXPECT_EQ(by_version[3], by_version[9]);
}

TEST_F(DrawSchedule, HeldOutTasksAreDrawnInComparisonsAlone) {
  draw_schedule s({{1, 0}}, {100, 16, 1000}, {{9, 0}});
  s.change_devices("a", 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(draw(s)->where.task.high, 1U);
}

TEST_F(DrawSchedule, AnEvenShareIsRoundedUp) {
  const draw_schedule s = make(10);
  EXPECT_EQ(s.groups_per_task(1), 1U);
  EXPECT_EQ(s.groups_per_task(2), 1U);
  EXPECT_EQ(s.groups_per_task(3), 2U);
}

TEST_F(DrawSchedule, IsExhaustedIfReadyGroupsFillTheBound) {
  draw_schedule s = make(3);
  EXPECT_TRUE(s.is_exhausted(Stage::CONTRASTIVE, 0, 3));
  EXPECT_FALSE(s.is_exhausted(Stage::CONTRASTIVE, 0, 2)) << "there is room for a draw";
  EXPECT_FALSE(s.is_exhausted(Stage::CONTRASTIVE, 1, 3)) << "one group will become ready";
  draw(s);
  EXPECT_FALSE(s.is_exhausted(Stage::CONTRASTIVE, 0, 3)) << "one group is being written";
}

TEST_F(DrawSchedule, ASlowDeviceTypeLeavesRoomForAStepOfTheOthers) {
  draw_schedule s({{1, 0}, {2, 0}}, {24, 16, 1000, 12});
  s.change_devices("slow", 1);
  s.change_devices("fast", 1);
  std::map<std::string, std::size_t> waiting;
  for (int i = 0; i < 100; ++i) {
    if (const auto next = s.next(Stage::CONTRASTIVE, 7, waiting["slow"], 0, waiting))
      // Groups of the fast type are consumed at once.
      waiting["slow"] += next->where.device_type == "slow" ? 1 : 0;
  }
  EXPECT_EQ(waiting["slow"], 12U);
}

TEST_F(DrawSchedule, ATypeWhoseGroupsAreDroppedGetsFewerDrawsUntilTheyAreTrainedOn) {
  draw_schedule s({{1, 0}}, {24, 16, 1000, 12});
  s.change_devices("slow", 1);
  s.change_devices("fast", 1);
  // Returns how many groups of the slow type may wait at a time.
  const auto bound = [&] {
    for (std::size_t waiting = 0;; ++waiting) {
      bool is_drawn = false;
      for (int turn = 0; turn < 2; ++turn) {
        const auto next = s.next(Stage::CONTRASTIVE, 7, 0, 0, {{"slow", waiting}});
        is_drawn = is_drawn || (next && next->where.device_type == "slow");
      }
      if (!is_drawn) return waiting;
    }
  };
  EXPECT_EQ(bound(), 12U);
  s.note_outcome("slow", 2, 3);
  EXPECT_EQ(bound(), 6U);
  s.note_outcome("slow", 0, 1);
  EXPECT_EQ(bound(), 3U);
  s.note_outcome("slow", 2, 0);
  EXPECT_EQ(bound(), 5U);
  s.note_outcome("slow", 100, 0);
  EXPECT_EQ(bound(), 12U);
  for (int i = 0; i < 10; ++i) s.note_outcome("slow", 0, 1);
  EXPECT_EQ(bound(), 1U) << "a type is never left out";
}

TEST_F(DrawSchedule, OutstandingDrawsCountForTheirDeviceType) {
  draw_schedule s({{1, 0}}, {4, 16, 1000, 2});
  s.change_devices("a", 1);
  s.change_devices("b", 1);
  std::map<std::string, int> drawn;
  for (int i = 0; i < 4; ++i) {
    if (const auto next = draw(s)) ++drawn[next->where.device_type];
  }
  EXPECT_EQ(drawn["a"], 2);
  EXPECT_EQ(drawn["b"], 2);
  s.complete({1, 0});
  EXPECT_EQ(draw(s)->where.device_type, "a");
}

TEST_F(DrawSchedule, AnExpiredDrawOfAComparisonIsIssuedAgain) {
  draw_schedule s = make(0);
  s.compare(*comparison({3}, 1));
  std::vector<draw_schedule::assignment> first;
  while (const auto next = draw(s)) first.push_back(*next);
  ASSERT_EQ(first.size(), 4U);
  for (std::uint64_t back = 2; back <= 4; ++back) s.complete({back, 0});
  s.expire(1101);
  EXPECT_FALSE(s.is_exhausted(Stage::COMPARISON, 0, 3));
  const auto again = draw(s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->where, first[0].where);
  EXPECT_EQ(again->comparison, first[0].comparison);
  EXPECT_FALSE(draw(s));
  s.complete({5, 0});
  EXPECT_TRUE(s.is_exhausted(Stage::COMPARISON, 0, 4));
}

TEST_F(DrawSchedule, AComparisonKeepsTheDrawsOfADeviceTypeUntilItReturns) {
  draw_schedule s = make(0);
  s.compare(*comparison({3, 9}, 5));
  const auto on_a = draw(s);
  ASSERT_EQ(on_a->where.device_type, "a");
  s.change_devices("a", -1);
  s.expire(2000);  // what was being written for the type is given up
  int on_b = 0;
  while (const auto next = s.next(Stage::CONTRASTIVE, 9, 0, 0, {})) {
    EXPECT_EQ(next->where.device_type, "b");
    ++on_b;
  }
  EXPECT_EQ(on_b, 20);
  EXPECT_FALSE(s.is_exhausted(Stage::COMPARISON, 0, 0));
  s.change_devices("a", 1);
  int on_a_later = 0;
  while (s.next(Stage::CONTRASTIVE, 9, 0, 0, {})) ++on_a_later;
  EXPECT_EQ(on_a_later, 20) << "the draw that was given up among them";
  EXPECT_TRUE(s.is_exhausted(Stage::COMPARISON, 0, 0));
}

TEST_F(DrawSchedule, AValidationDrawsOneGreedyAnswerForHeldOutTasks) {
  draw_schedule s({{1, 0}}, {100, 16, 1000}, {{2, 0}, {3, 0}, {4, 0}, {5, 0}});
  s.change_devices("a", 1);
  EXPECT_EQ(s.validate(7, 2), 2U);
  std::set<std::uint64_t> tasks;
  for (int i = 0; i < 2; ++i) {
    const auto next = s.next(Stage::SFT, 7, 0, 0, {});
    ASSERT_TRUE(next) << "it comes in every stage";
    EXPECT_EQ(next->stage, Stage::VALIDATION);
    EXPECT_EQ(next->arm, schema::Draw::Arm::GREEDY);
    EXPECT_EQ(next->samples, 1U);
    tasks.insert(next->where.task.high);
  }
  EXPECT_EQ(tasks.size(), 2U);
  EXPECT_FALSE(s.next(Stage::SFT, 7, 0, 0, {}));
  EXPECT_EQ(s.validate(8, 0), 4U) << "all of them";
  EXPECT_EQ(s.compare(*comparison({8}, 1)), 1U);
  EXPECT_EQ(s.next(Stage::COMPARISON, 8, 0, 0, {})->stage, Stage::COMPARISON);
  EXPECT_FALSE(s.next(Stage::COMPARISON, 8, 0, 0, {})) << "a comparison ends the validation";
}

TEST_F(DrawSchedule, ADrawWithoutAGroupExpires) {
  draw_schedule s = make(1);
  EXPECT_TRUE(draw(s));
  s.expire(1100);
  EXPECT_FALSE(draw(s));
  s.expire(1101);  // issued at 100, limit 1000
  EXPECT_TRUE(draw(s));
}

// With a list of all places for each draw, a draw for 500,000 tasks took 82 ms.
TEST_F(DrawSchedule, ADrawTakesAsLongForManyTasksAsForFew) {
  std::vector<task_id> tasks;
  for (std::uint64_t i = 0; i < 500000; ++i) tasks.push_back({i, 0});
  draw_schedule s(std::move(tasks), {100000, 16, 1000});
  s.change_devices("a", 1);
  s.change_devices("b", 1);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(s.next(Stage::CONTRASTIVE, 7, 0, 0, {}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(DrawSchedule, ATypeThatIsFullLeavesItsTurnsToOthers) {
  draw_schedule::options options;
  options.max_groups = 4;
  options.step_groups = 2;
  draw_schedule s({{1, 0}, {2, 0}}, options);
  s.change_devices("a", 1);
  s.change_devices("b", 1);
  for (int i = 0; i < 4; ++i) {
    const auto next = s.next(Stage::CONTRASTIVE, 7, 0, 0, {{"a", 2}});
    ASSERT_TRUE(next);
    EXPECT_EQ(next->where.device_type, "b");
  }
}

}  // namespace
}  // namespace hone
