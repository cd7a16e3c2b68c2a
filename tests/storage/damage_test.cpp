#include <gtest/gtest.h>

#include <random>
#include <set>

#include "storage/inspection.hpp"
#include "storage/pool.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;

std::string program(int number) {
  return "program " + std::to_string(number) + std::string(600, 'x');
}

// Adds fifty variants with ok evaluations to a pool, numbered from `first`.
void fill(const std::filesystem::path& folder, int first = 0) {
  pool_options options;
  options.folder = folder;
  options.judge_version = 1;
  pool filled(options);
  filled.add_task(make_task());
  filled.add_device_type(make_device_type());
  for (int i = first; i < first + 50; ++i) {
    std::vector<record<schema::CompileJob>> jobs;
    filled.record_group(make_group({program(i)}), 1, jobs);
    std::vector<record<schema::CompileJob>> more;
    for (const auto& job : jobs) filled.record_evaluation(make_result(*job, 1.0 + i), 1, more);
    filled.commit();
  }
}

// Opens the pool, reads everything and verifies it. Returns true if damage is reported by a
// pool_error that names the pool, by a problem, or by missing variants. Damage must not cause a
// crash.
bool is_noticed(const std::filesystem::path& folder) {
  try {
    const pool_inspector inspector(folder);
    const auto report = verify_pool(inspector);
    return report.problem_count > 0 || report.checked.at("variants") < 50;
  } catch (const pool_error& e) {
    EXPECT_NE(std::string(e.what()).find(folder.string()), std::string::npos)
        << "the message names the pool: " << e.what();
    return true;
  }
}

TEST(DamagedPool, TruncatedFilesAreNoticed) {
  const temporary_folder folder;
  fill(folder / "pool");
  int tried = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder / "pool")) {
    const std::string name = file.path().filename();
    if (name == "LOCK" || name.starts_with("LOG") || name == "IDENTITY" ||
        name.starts_with("OPTIONS") || file.file_size() == 0)
      continue;
    std::filesystem::remove_all(folder / "copy");
    std::filesystem::copy(folder / "pool", folder / "copy",
                          std::filesystem::copy_options::recursive);
    std::filesystem::resize_file(folder / "copy" / name, file.file_size() / 2);
    EXPECT_TRUE(is_noticed(folder / "copy")) << name;
    ++tried;
  }
  EXPECT_GE(tried, 3);
}

TEST(DamagedPool, FlippedBitsAreNoticed) {
  const temporary_folder folder;
  fill(folder / "pool");
  std::mt19937_64 random(1);
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder / "pool")) {
    const std::string name = file.path().filename();
    if (name.ends_with(".log") || name.ends_with(".sst") || name.ends_with(".blob") ||
        name.starts_with("MANIFEST"))
      files.push_back(name);
  }
  int noticed = 0;
  constexpr int rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    std::filesystem::remove_all(folder / "copy");
    std::filesystem::copy(folder / "pool", folder / "copy",
                          std::filesystem::copy_options::recursive);
    const auto victim = folder / "copy" / files[random() % files.size()].string();
    std::string bytes = read_file(victim);
    if (bytes.empty()) continue;
    bytes[random() % bytes.size()] ^= static_cast<char>(1U << (random() % 8));
    write_file(victim, bytes);
    noticed += is_noticed(folder / "copy") ? 1 : 0;
  }
  EXPECT_GT(noticed, rounds / 2)
      << "flips in unused padding are harmless; most others must be noticed";
}

TEST(DamagedPool, FolderWithoutAPoolIsRefused) {
  const temporary_folder folder;
  EXPECT_THROW(pool_inspector(folder / "nothing"), pool_error);
}

// A live writer's compaction deletes files that a reader's snapshot names and that the reader has
// not opened yet.
TEST(ReadingBesideAWriter, ContinuesAfterFilesHaveBeenReplaced) {
  const temporary_folder folder;
  // Each opening writes the log of the previous one to separate files.
  for (const int first : {0, 50, 100}) fill(folder / "pool", first);
  database writer(folder / "pool", database::mode::create_or_open);
  const pool_inspector inspector(folder / "pool");
  std::set<std::string> seen;
  std::size_t visits = 0;
  inspector.db().scan<schema::Variant>(
      family::variants, "", [&](std::string_view key, const record<schema::Variant>& variant) {
        EXPECT_EQ(key_of(variant_id(variant->getId())), key);
        seen.emplace(key);
        if (++visits == 1) writer.compact();
        return true;
      });
  EXPECT_EQ(visits, 150U);
  EXPECT_EQ(seen.size(), 150U);
  EXPECT_GT(inspector.db().snapshots(), 1U) << "no file was replaced, so this test shows nothing";

  const std::uint64_t before = inspector.db().snapshots();
  writer.compact();
  const auto places = inspector.rollouts_of(variant_of(program(77)));
  ASSERT_EQ(places.size(), 1U);
  EXPECT_TRUE(inspector.group(places.front().group));
  EXPECT_GT(inspector.db().snapshots(), before);
  writer.compact();
  EXPECT_EQ(verify_pool(inspector).problem_count, 0U);
}

TEST(ReadingBesideAWriter, PermanentlyMissingFileIsNoticed) {
  const temporary_folder folder;
  fill(folder / "pool");
  { database(folder / "pool", database::mode::create_or_open).compact(); }
  for (const auto& entry : std::filesystem::directory_iterator(folder / "pool")) {
    if (entry.path().extension() == ".blob") std::filesystem::remove(entry.path());
  }
  EXPECT_TRUE(is_noticed(folder / "pool"));
}

}  // namespace
}  // namespace hone
