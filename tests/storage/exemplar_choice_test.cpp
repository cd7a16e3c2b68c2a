#include "storage/exemplar_choice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;

const task_id some_task{1, 1};
const std::string some_device = "d";

variant_id numbered(std::uint64_t i) { return {i + 1, i}; }

class ExemplarTest : public testing::Test {
 protected:
  ExemplarTest() : db_(folder_ / "db", database::mode::create_or_open), index_(db_) {}

  exemplar_selector selector(exemplar_method method, double temperature = 1.0) {
    exemplar_options options;
    options.method = method;
    options.temperature = temperature;
    options.islands = 4;
    options.reset_after = 40;
    return {index_, options};
  }

  temporary_folder folder_;
  database db_;
  exemplar_index index_;
  std::mt19937_64 random_{1};
};

TEST_F(ExemplarTest, BucketsAreAFactorWideAndAscendWithTheScore) {
  EXPECT_EQ(exemplar_index::bucket_of(1.0), exemplar_index::bucket_of(1.24));
  EXPECT_LT(exemplar_index::bucket_of(1.0), exemplar_index::bucket_of(1.26));
  EXPECT_GT(exemplar_index::bucket_of(1.0), exemplar_index::bucket_of(0.99));
  EXPECT_EQ(exemplar_index::bucket_of(0), exemplar_index::bucket_of(1e-13));
}

TEST_F(ExemplarTest, ScoresCanBeShuffledAmongThePrograms) {
  const population_key all{some_task, some_device, 0};
  index_.place(all, numbered(1), 1.0);
  index_.place(all, numbered(2), 4.0);
  exemplar_options options;
  options.shuffles_scores = true;
  exemplar_selector shuffled(index_, options);
  for (int i = 0; i < 20; ++i) {
    const auto chosen = shuffled.choose(some_task, some_device, random_).exemplars;
    ASSERT_EQ(chosen.size(), 2U);
    EXPECT_EQ(chosen[0].score, 1.0) << "the scores are those of the programs, in order";
    EXPECT_EQ(chosen[1].score, 4.0);
    EXPECT_EQ(chosen[0].variant, numbered(2)) << "no program keeps its score";
  }
}

TEST_F(ExemplarTest, MovesKeepTheIndexDense) {
  const population_key all{some_task, some_device, 0};
  std::map<variant_id, double> scores;
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; ++i) {
    const variant_id v = numbered(random() % 200);
    const double score = std::exp(static_cast<double>(random() % 1000) / 300.0);
    if (random() % 10 == 0) {
      index_.remove(all, v);
      scores.erase(v);
    } else {
      index_.place(all, v, score);
      scores[v] = score;
    }
    if (i % 7 == 0) db_.commit();
  }
  std::map<variant_id, double> found;
  for (const auto& [which, bucket] : index_.buckets(all)) {
    double sum = 0;
    for (std::uint32_t ordinal = 0; ordinal < bucket.count; ++ordinal) {
      const auto one = index_.at(all, which, ordinal);
      EXPECT_TRUE(found.emplace(one.variant, one.score).second);
      sum += one.score;
    }
    EXPECT_NEAR(sum, bucket.score_sum, 1e-6);
  }
  EXPECT_EQ(found, scores);
  double highest = 0;
  for (const auto& [v, score] : scores) highest = std::max(highest, score);
  EXPECT_EQ(index_.best(all)->score, highest);
}

TEST_F(ExemplarTest, BestVariantFollowsEveryChange) {
  const population_key all{some_task, some_device, 0};
  EXPECT_FALSE(index_.best(all));
  index_.place(all, numbered(1), 2.0);
  EXPECT_EQ(index_.best(all)->variant, numbered(1));
  index_.place(all, numbered(2), 5.0);
  EXPECT_EQ(index_.best(all)->variant, numbered(2));
  index_.place(all, numbered(2), 1.0);  // a later measurement lowered its score
  EXPECT_EQ(index_.best(all)->variant, numbered(1));
  index_.remove(all, numbered(1));
  EXPECT_EQ(index_.best(all)->variant, numbered(2));
}

TEST_F(ExemplarTest, BucketsAreDrawnBySoftmaxOfTheLogarithmsOfTheirMeans) {
  // Three buckets have the means 1, 2 and 3. The choice of one exemplar follows the mean, whatever
  // the sizes of the buckets.
  auto choose = selector(exemplar_method::buckets);
  for (std::uint64_t i = 0; i < 50; ++i)
    choose.accept(some_task, some_device, 0, numbered(i), 1.0, random_);
  choose.accept(some_task, some_device, 0, numbered(100), 2.0, random_);
  for (std::uint64_t i = 200; i < 210; ++i)
    choose.accept(some_task, some_device, 0, numbered(i), 3.0, random_);
  exemplar_options one;
  one.count = 1;
  exemplar_selector single(index_, one);
  std::map<double, int> counts;
  constexpr int draws = 6000;
  for (int i = 0; i < draws; ++i)
    ++counts[single.choose(some_task, some_device, random_).exemplars.at(0).score];
  for (const double mean : {1.0, 2.0, 3.0})
    EXPECT_NEAR(counts[mean] / static_cast<double>(draws), mean / 6, 0.02);
}

TEST_F(ExemplarTest, TwoExemplarsComeFromDistinctBuckets) {
  auto choose = selector(exemplar_method::buckets);
  for (std::uint64_t i = 0; i < 20; ++i)
    choose.accept(some_task, some_device, 0, numbered(i), i < 10 ? 1.0 : 4.0, random_);
  for (int i = 0; i < 100; ++i) {
    const auto shown = choose.choose(some_task, some_device, random_).exemplars;
    ASSERT_EQ(shown.size(), 2U);
    EXPECT_EQ(shown[0].score, 1.0);
    EXPECT_EQ(shown[1].score, 4.0);
  }
}

TEST_F(ExemplarTest, VariantsOfABucketAreEquallyLikely) {
  auto choose = selector(exemplar_method::buckets);
  for (std::uint64_t i = 0; i < 10; ++i)
    choose.accept(some_task, some_device, 0, numbered(i), 1.0 + 0.01 * static_cast<double>(i),
                  random_);
  std::map<variant_id, int> counts;
  for (int i = 0; i < 5000; ++i)
    ++counts[choose.choose(some_task, some_device, random_).exemplars.at(0).variant];
  EXPECT_EQ(counts.size(), 10U);
  for (const auto& [v, count] : counts) EXPECT_NEAR(count, 500, 110);  // five standard deviations
}

TEST_F(ExemplarTest, RandomChoosesDistinctVariantsEquallyOften) {
  auto choose = selector(exemplar_method::random);
  for (std::uint64_t i = 0; i < 30; ++i)
    choose.accept(some_task, some_device, 0, numbered(i), std::exp(static_cast<double>(i) / 5),
                  random_);
  std::map<variant_id, int> counts;
  for (int i = 0; i < 6000; ++i) {
    const auto shown = choose.choose(some_task, some_device, random_).exemplars;
    ASSERT_EQ(shown.size(), 2U);
    EXPECT_NE(shown[0].variant, shown[1].variant);
    for (const auto& one : shown) ++counts[one.variant];
  }
  for (const auto& [v, count] : counts) EXPECT_NEAR(count, 400, 100);  // five standard deviations
}

TEST_F(ExemplarTest, NoneChoosesNothing) {
  auto choose = selector(exemplar_method::none);
  choose.accept(some_task, some_device, 0, numbered(1), 1.0, random_);
  EXPECT_TRUE(choose.choose(some_task, some_device, random_).exemplars.empty());
}

TEST_F(ExemplarTest, SingleVariantIsTheOnlyExemplar) {
  auto choose = selector(exemplar_method::buckets);
  choose.accept(some_task, some_device, 0, numbered(1), 1.0, random_);
  EXPECT_EQ(choose.choose(some_task, some_device, random_).exemplars.size(), 1U);
  EXPECT_EQ(
      selector(exemplar_method::random).choose(some_task, some_device, random_).exemplars.size(),
      1U);
}

TEST_F(ExemplarTest, IslandsEvolveApartAndTheWeakerHalfIsReset) {
  auto choose = selector(exemplar_method::islands);
  const auto first = index_.islands(some_task, some_device, 4);
  // Each island accepts ten variants, island 3 those with the highest scores. The fortieth
  // acceptance resets two of the four islands.
  std::uint64_t next = 0;
  for (int round = 0; round < 10; ++round) {
    for (std::uint32_t island = 0; island < 4; ++island) {
      choose.accept(some_task, some_device, first->getPopulations()[island], numbered(next),
                    1.0 + island + 0.001 * static_cast<double>(next), random_);
      ++next;
    }
  }
  const auto after = index_.islands(some_task, some_device, 4);
  int replaced = 0;
  for (std::uint32_t island = 0; island < 4; ++island)
    replaced += after->getPopulations()[island] != first->getPopulations()[island] ? 1 : 0;
  EXPECT_EQ(replaced, 2);
  EXPECT_EQ(after->getPopulations()[2], first->getPopulations()[2]);
  EXPECT_EQ(after->getPopulations()[3], first->getPopulations()[3]);
  const auto founder = index_.best({some_task, some_device, after->getPopulations()[0]});
  ASSERT_TRUE(founder);
  EXPECT_GT(founder->score, 3.0) << "a reset island starts from the best variant of a stronger one";
  std::uint32_t members = 0;
  for (const auto& [which, bucket] :
       index_.buckets({some_task, some_device, after->getPopulations()[0]}))
    members += bucket.count;
  EXPECT_EQ(members, 1U);
}

TEST_F(ExemplarTest, ADrawOnAnIslandNamesItsPopulation) {
  auto choose = selector(exemplar_method::islands);
  for (std::uint64_t i = 0; i < 20; ++i)
    choose.accept(some_task, some_device, 0, numbered(i), i % 2 == 0 ? 1.0 : 3.0, random_);
  std::set<std::uint32_t> populations;
  for (int i = 0; i < 200; ++i)
    populations.insert(choose.choose(some_task, some_device, random_).population);
  EXPECT_EQ(populations.size(), 4U);
  EXPECT_FALSE(populations.contains(0));
}

TEST_F(ExemplarTest, MethodNamesAreThoseOfTheConfiguration) {
  for (const char* name : {"buckets", "islands", "random", "none"})
    EXPECT_EQ(name_of(*exemplar_method_named(name)), name);
  EXPECT_FALSE(exemplar_method_named("best"));
}

}  // namespace
}  // namespace hone
