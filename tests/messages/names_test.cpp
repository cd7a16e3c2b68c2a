#include "messages/names.hpp"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(Names, OutcomesHaveTheFixedNamesAndParseBack) {
  EXPECT_EQ(name_of(Outcome::OK), "ok");
  EXPECT_EQ(name_of(Outcome::COMPILE_ERROR), "compile_error");
  EXPECT_EQ(name_of(Outcome::INFRASTRUCTURE), "infrastructure");
  for (int i = 0; i < outcome_count; ++i) {
    const auto outcome = static_cast<Outcome>(i);
    EXPECT_EQ(outcome_named(name_of(outcome)), outcome);
  }
  EXPECT_FALSE(outcome_named("fine"));
}

TEST(Names, StagesAndOriginsHaveTheNamesThatUsersSpell) {
  EXPECT_EQ(name_of(Stage::SELF_SUPERVISED), "self_supervised");
  EXPECT_EQ(name_of(Stage::CONTRASTIVE), "contrastive");
  EXPECT_EQ(name_of(schema::RolloutGroup::Origin::CORPUS), "corpus");
}

}  // namespace
}  // namespace hone
