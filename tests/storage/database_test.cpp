#include "storage/database.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>

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

TEST_F(Database, WhatIsWrittenIsThereForReadersBeforeItIsSynced) {
  EXPECT_FALSE(db_->write()) << "there is nothing to write";
  put("a");
  EXPECT_TRUE(db_->write());
  EXPECT_THAT(on_disk(), ElementsAre("a"));
  put("b");
  EXPECT_TRUE(db_->write());
  db_->sync();
  EXPECT_FALSE(db_->write());
  put("c");
  db_->commit();
  EXPECT_THAT(on_disk(), ElementsAre("a", "b", "c"));
}

// Fills a database whose files cannot grow beyond a megabyte until a commit fails, and syncs and
// closes it then. Ends this process with 0 if what was committed before is still there.
[[noreturn]] void fill_and_sync(const std::filesystem::path& folder) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1U << 20U, 1U << 20U};
  setrlimit(RLIMIT_FSIZE, &limit);
  int committed = 0;
  {
    database full(folder, database::mode::create_or_open);
    const auto fill = [&] {
      for (;; ++committed) {
        full.put(family::meta, std::to_string(committed),
                 make_device_type(std::string(100'000, 'x')));
        full.commit();
      }
    };
    EXPECT_THROW(fill(), pool_error);
    EXPECT_THROW(full.sync(), pool_error);
    EXPECT_THROW(full.commit(), pool_error);
  }
  const database again(folder, database::mode::read_only);
  EXPECT_TRUE(again.has(family::meta, std::to_string(committed - 1)));
  EXPECT_FALSE(again.has(family::meta, std::to_string(committed)));
  std::_Exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST_F(Database, RefusesToSyncAfterAWriteThatFailed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // RocksDB has threads
  EXPECT_EXIT(fill_and_sync(folder_ / "full"), testing::ExitedWithCode(0), "");
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

// The keys of evaluations begin with random ids, so RocksDB keeps those in memory unsorted.
class DatabaseOfIds : public Database {
 protected:
  static std::string key(std::uint64_t id, const std::string& rest) {
    return key_of(variant_id{id, 7}) + rest;
  }
  void put(const std::string& key, const std::string& value) {
    db_->put(family::evaluations, key, make_device_type(value));
  }
  std::string value_of(const std::string& key) {
    const auto found = db_->get<schema::DeviceType>(family::evaluations, key);
    return found ? std::string(view((*found)->getName())) : "none";
  }
  // Returns the values whose keys begin with `prefix`, in the order of the keys.
  static std::vector<std::string> values(const database& in, const std::string& prefix) {
    std::vector<std::string> found;
    in.scan<schema::DeviceType>(family::evaluations, prefix,
                                [&](std::string_view, const record<schema::DeviceType>& value) {
                                  found.emplace_back(view(value->getName()));
                                  return true;
                                });
    return found;
  }
};

TEST_F(DatabaseOfIds, ReadsTheLastValueOfAKeyHoweverLongAgoItWasCommitted) {
  put(key(1, "replaced"), "first");
  put(key(1, "removed"), "first");
  put(key(2, "kept"), "first");
  db_->commit();
  put(key(1, "replaced"), "second");
  db_->remove(family::evaluations, key(1, "removed"));
  const std::string megabyte(1U << 20U, 'x');
  for (std::uint64_t committed = 0; committed < 40; ++committed) {
    db_->commit();
    EXPECT_EQ(value_of(key(1, "replaced")), "second") << "after " << committed << " megabytes";
    EXPECT_EQ(value_of(key(1, "removed")), "none") << "after " << committed << " megabytes";
    EXPECT_EQ(value_of(key(2, "kept")), "first") << "after " << committed << " megabytes";
    EXPECT_EQ(value_of(key(2, "another")), "none") << "after " << committed << " megabytes";
    put(key(100 + committed, "other"), megabyte);
  }
  db_.emplace(folder_ / "db", database::mode::create_or_open);
  EXPECT_EQ(value_of(key(1, "replaced")), "second");
  EXPECT_EQ(value_of(key(1, "removed")), "none");
}

TEST_F(DatabaseOfIds, ScansInTheOrderOfKeysWhetherInMemoryOrInFiles) {
  const auto expect_all = [&](const database& in) {
    EXPECT_THAT(values(in, ""), ElementsAre("1a", "1b", "2a", "2c", "3a"));
    EXPECT_THAT(values(in, key(2, "")), ElementsAre("2a", "2c"));
    EXPECT_THAT(values(in, key(2, "c")), ElementsAre("2c"));
    EXPECT_THAT(values(in, key(4, "")), ElementsAre());
    EXPECT_THAT(values(in, key(0, "").substr(0, 8)), ElementsAre());
    EXPECT_THAT(values(in, key(3, "").substr(0, 8)), ElementsAre("3a"));
  };
  for (const char* one : {"3a", "1b", "2c", "2b"})
    put(key(static_cast<std::uint64_t>(one[0] - '0'), one + 1), one);
  db_->commit();
  db_.emplace(folder_ / "db", database::mode::create_or_open);  // into a file
  for (const char* one : {"2a", "1a"})
    put(key(static_cast<std::uint64_t>(one[0] - '0'), one + 1), one);
  db_->remove(family::evaluations, key(2, "b"));
  db_->commit();
  expect_all(*db_);
  expect_all(database(folder_ / "db", database::mode::read_only));
  db_.emplace(folder_ / "db", database::mode::create_or_open);
  expect_all(*db_);
}

// More ids than a memtable has lists, and more keys of one id than a list should have.
TEST_F(DatabaseOfIds, ScansOneOfManyIds) {
  constexpr std::uint64_t ids = 50'000;
  for (std::uint64_t id = 0; id < ids; ++id) put(key(id, "a"), std::to_string(id));
  for (int i = 300; i-- > 0;) put(key(7, "b" + std::to_string(1000 + i)), std::to_string(i));
  db_->commit();
  const auto of_seven = values(*db_, key(7, ""));
  ASSERT_EQ(of_seven.size(), 301U);
  EXPECT_EQ(of_seven[0], "7");
  for (std::size_t i = 1; i < of_seven.size(); ++i) EXPECT_EQ(of_seven[i], std::to_string(i - 1));
  for (std::uint64_t id = 8; id < ids; id += 1000)
    EXPECT_THAT(values(*db_, key(id, "")), ElementsAre(std::to_string(id)));
  EXPECT_EQ(values(*db_, "").size(), ids + 300);
}

}  // namespace
}  // namespace hone
