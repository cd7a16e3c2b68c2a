#include "storage/database.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/schema/task.capnp.h"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::ElementsAre;

class Database : public testing::Test {
 protected:
  void put(const std::string& key) { db_->put(family::meta, key, make_device_type(key)); }
  void put_first(const std::string& key) {
    db_->put_first(family::meta, key, make_device_type(key));
  }
  void remove(const std::string& key) { db_->remove(family::meta, key); }
  bool has(const std::string& key) { return db_->has(family::meta, key); }
  // Returns the keys that another process would find.
  std::vector<std::string> on_disk() {
    const database reader(folder_ / "db", database::mode::read_only);
    std::vector<std::string> keys;
    reader.scan_keys(family::meta, "", [&](std::string_view key) {
      keys.emplace_back(key);
      return true;
    });
    return keys;
  }

  temporary_folder folder_;
  std::optional<database> db_{std::in_place, folder_ / "db", database::mode::create_or_open};
};

TEST_F(Database, WriterSeesUncommittedChangesAndReadersDoNot) {
  put("a");
  put_first("b");
  EXPECT_TRUE(has("a") && has("b"));
  EXPECT_THAT(on_disk(), ElementsAre());
  db_->commit();
  EXPECT_THAT(on_disk(), ElementsAre("a", "b"));
}

TEST_F(Database, KeyPutAndRemovedBetweenTwoCommitsIsAbsent) {
  put("a");
  remove("a");
  put_first("b");
  put("b");
  remove("b");
  EXPECT_FALSE(has("a") || has("b"));
  db_->commit();
  EXPECT_THAT(on_disk(), ElementsAre());
}

TEST_F(Database, CommittedKeyIsRemovedAfterPutAndAfterPutFirst) {
  put("a");
  put_first("b");
  db_->commit();
  remove("a");
  remove("b");
  db_->commit();
  EXPECT_THAT(on_disk(), ElementsAre());
}

// The key is on disk, so its removal must be written, whatever was put in between.
TEST_F(Database, RemovalOfACommittedKeySurvivesALaterPutFirst) {
  put_first("a");
  db_->commit();
  remove("a");
  put_first("a");
  remove("a");
  db_->commit();
  EXPECT_THAT(on_disk(), ElementsAre());
  put_first("a");
  db_->commit();
  EXPECT_THAT(on_disk(), ElementsAre("a"));
}

}  // namespace
}  // namespace hone
