#include "storage/group_book.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "storage/database.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

record<schema::RolloutGroup> group_numbered(std::uint64_t number) {
  record_builder<schema::RolloutGroup> group;
  group_id{number * 0x9e3779b97f4a7c15, number}.store(group->initId());
  group->initDraw().setDeviceType("d");
  return group.finish();
}

TEST(GroupBook, ReadyGroupsKeepTheirOrderWhileOthersLeave) {
  const testing_support::temporary_folder folder;
  database db(folder / "db", database::mode::create_or_open);
  group_book book(db, {}, 1);
  for (std::uint64_t i = 0; i < 10; ++i) book.begin(*group_numbered(i), 0);
  for (const std::uint64_t i : {3, 0, 9})
    book.mark_trained(group_id(group_numbered(i)->getId()), 1);
  std::vector<std::uint64_t> left;
  const Stage stage = stage_of(*group_numbered(0));
  for (const auto& [sequence, ready] : book.ready(stage)) left.push_back(ready.group.low);
  EXPECT_EQ(left, (std::vector<std::uint64_t>{1, 2, 4, 5, 6, 7, 8}));
  const std::set<group_id> without = {group_id(group_numbered(3)->getId()),
                                      group_id(group_numbered(4)->getId())};
  EXPECT_EQ(book.count_ready(stage, without), 6U) << "one of the two is not ready";
  EXPECT_EQ(book.count_ready(Stage::COMPARISON, {}), 0U);
}

// A step of supervised fine-tuning trains on the whole corpus, in the order of the groups' ids.
// With a search through the queue for each of 60,000 groups it took nine seconds, in the pool's
// thread.
TEST(GroupBook, AStepOfManyGroupsLeavesTheQueueInLinearTime) {
  const testing_support::temporary_folder folder;
  database db(folder / "db", database::mode::create_or_open);
  group_book book(db, {}, 1);
  std::set<group_id> ids;
  for (std::uint64_t i = 0; i < 60000; ++i) {
    const auto group = group_numbered(i);
    book.begin(*group, 0);
    ids.emplace(group->getId());
  }
  const auto begin = std::chrono::steady_clock::now();
  for (const group_id& id : ids) book.mark_trained(id, 1);
  EXPECT_EQ(book.count_ready(), 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

}  // namespace
}  // namespace hone
