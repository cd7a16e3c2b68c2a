#include "launch/run/tensorboard_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <boost/crc.hpp>
#include <cstring>
#include <map>
#include <string_view>

#include "tests/support/json_lines.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::ElementsAre;
using testing::StartsWith;

struct event_read_back {
  double wall_time = 0;
  std::uint64_t step = 0;
  std::string file_version;
  bool is_restart = false;
  std::map<std::string, float> scalars;  // by tag
};

template <class Number>
Number take_number(std::string_view& bytes) {
  Number number{};
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = take_number<std::uint8_t>(bytes);
    value |= std::uint64_t{byte & 127U} << shift;
    if (byte < 128) return value;
  }
}

std::string_view take_bytes(std::string_view& bytes) {
  const std::uint64_t size = take_varint(bytes);
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

// The key's number: field << 3 | wire type, see protobuf.dev/programming-guides/encoding.
void read_scalar(std::string_view bytes, std::map<std::string, float>& scalars) {
  EXPECT_EQ(take_varint(bytes), 1U << 3U | 2U);
  const std::string tag(take_bytes(bytes));
  EXPECT_EQ(take_varint(bytes), 2U << 3U | 5U);
  EXPECT_TRUE(scalars.emplace(tag, take_number<float>(bytes)).second) << tag << " appears twice";
  EXPECT_TRUE(bytes.empty());
}

event_read_back parse_event(std::string_view bytes) {
  event_read_back event;
  while (!bytes.empty()) {
    const std::uint64_t key = take_varint(bytes);
    if (key == (1U << 3U | 1U))
      event.wall_time = take_number<double>(bytes);
    else if (key == (2U << 3U | 0U))
      event.step = take_varint(bytes);
    else if (key == (3U << 3U | 2U))
      event.file_version = take_bytes(bytes);
    else if (key == (7U << 3U | 2U))
      event.is_restart = take_bytes(bytes) == "\x08\x01";
    else if (key == (5U << 3U | 2U)) {
      for (std::string_view summary = take_bytes(bytes); !summary.empty();) {
        EXPECT_EQ(take_varint(summary), 1U << 3U | 2U);
        read_scalar(take_bytes(summary), event.scalars);
      }
    } else {
      ADD_FAILURE() << "unknown key " << key;
      break;
    }
  }
  return event;
}

std::uint32_t masked(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const auto sum = static_cast<std::uint32_t>(crc.checksum());
  return ((sum >> 15U) | (sum << 17U)) + 0xa282ead8U;
}

// Returns the events of a file whose last record may be cut.
std::vector<event_read_back> parse_events(const std::string& file) {
  std::vector<event_read_back> events;
  std::string_view bytes = file;
  while (bytes.size() >= 12) {
    const std::string_view header = bytes.substr(0, 8);
    const auto size = take_number<std::uint64_t>(bytes);
    EXPECT_EQ(take_number<std::uint32_t>(bytes), masked(header));
    if (bytes.size() < size + 4) break;
    const std::string_view event = bytes.substr(0, size);
    bytes.remove_prefix(size);
    EXPECT_EQ(take_number<std::uint32_t>(bytes), masked(event));
    events.push_back(parse_event(event));
  }
  return events;
}

// Returns the contents of the event files of a run, oldest first.
std::vector<std::string> event_files(const std::filesystem::path& run_folder) {
  std::map<std::filesystem::file_time_type, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(run_folder / "tensorboard")) {
    EXPECT_THAT(entry.path().filename().string(), StartsWith("events.out.tfevents."));
    files[entry.last_write_time()] = read_file(entry.path());
  }
  std::vector<std::string> contents;
  for (const auto& [time, content] : files) contents.push_back(content);
  return contents;
}

version_record version_numbered(std::uint64_t number, std::uint64_t created_ms) {
  record_builder<schema::PolicyVersion> version;
  version->setVersion(number);
  version->setCreatedMs(created_ms);
  return version.finish();
}

TEST(TensorboardFile, TheChecksumIsCastagnolis) {
  EXPECT_EQ(masked("123456789"), std::rotr(0xe3069283U, 15) + 0xa282ead8U) << "RFC 3720, B.4";
}

TEST(TensorboardFile, HasTheNumbersOfEachStepByVersion) {
  const temporary_folder folder;
  {
    tensorboard_file file(folder.path(), 300);
    file.write(version_numbered(300, 1500), {Stage::CONTRASTIVE, 7, {}});
    file.write(version_numbered(301, 2500),
               {Stage::CONTRASTIVE, 8, {{"loss", 0.25}, {"share_ok", 0.5}, {"score", -1e30}}});
  }
  const auto events = parse_events(event_files(folder.path()).at(0));
  ASSERT_EQ(events.size(), 3U) << "a version without numbers has no event";
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_TRUE(events[1].is_restart);
  EXPECT_EQ(events[1].step, 300U) << "points of an abandoned branch from there on are discarded";
  EXPECT_EQ(events[2].step, 301U);
  EXPECT_EQ(events[2].wall_time, 2.5);
  const std::map<std::string, float> scalars = {
      {"learn/loss", 0.25F}, {"outcome/ok", 0.5F}, {"reward/score", -1e30F}};
  EXPECT_EQ(events[2].scalars, scalars);
}

TEST(TensorboardFile, GroupsNumbersByWhatTheySay) {
  std::vector<std::string> tags;
  for (const char* name : {"share_wrong_result", "validation_ok", "log_speedup", "tokens", "kl"})
    tags.push_back(tensorboard_tag(name));
  EXPECT_THAT(tags, ElementsAre("outcome/wrong_result", "validation/ok", "reward/log_speedup",
                                "work/tokens", "learn/kl"));
}

class TensorboardRun : public small_run_test {
 protected:
  // Returns the scalars of all files by version, and fails if a step is repeated.
  std::map<std::uint64_t, std::map<std::string, float>> scalars() const {
    std::map<std::uint64_t, std::map<std::string, float>> all;
    for (const std::string& file : event_files(run_folder())) {
      for (const event_read_back& event : parse_events(file)) {
        if (event.scalars.empty()) continue;
        EXPECT_TRUE(all.emplace(event.step, event.scalars).second) << "step " << event.step;
      }
    }
    return all;
  }
  // Returns the numbers of metrics.jsonl likewise.
  std::map<std::uint64_t, std::map<std::string, float>> metrics() const {
    std::map<std::uint64_t, std::map<std::string, float>> all;
    for (const auto& line : json_lines(read_file(run_folder() / "metrics.jsonl"))) {
      std::map<std::string, float> numbers;
      for (const auto& [name, value] : line.items()) {
        const bool is_fact = name == "time_ms" || name == "version" || name == "parent" ||
                             name == "stage" || name == "step";
        if (!is_fact) numbers[tensorboard_tag(name)] = value.template get<float>();
      }
      if (!numbers.empty()) all[line["version"].get<std::uint64_t>()] = numbers;
    }
    return all;
  }
};

TEST_F(TensorboardRun, WritesNoEventsUnlessAsked) {
  ASSERT_EQ(run().code, 0);
  EXPECT_FALSE(std::filesystem::exists(run_folder() / "tensorboard"));
}

TEST_F(TensorboardRun, AfterAKillANewFileGoesOnWithoutRepeatedSteps) {
  const std::vector<std::string> tensorboard = {"--set", "run.tensorboard=true"};
  program killed(endless(tensorboard));
  ASSERT_TRUE(wait_for_versions(5)) << killed.out() << killed.err();
  killed.send(SIGKILL);
  killed.wait();
  std::vector<std::string> more = tensorboard;
  more.emplace_back("--resume");
  program resumed(endless(more));
  ASSERT_TRUE(wait_for_versions(versions() + 5)) << resumed.out() << resumed.err();
  resumed.send(SIGTERM);
  resumed.wait();
  EXPECT_EQ(event_files(run_folder()).size(), 2U);
  auto events = scalars();
  auto lines = metrics();
  ASSERT_FALSE(lines.empty());
  // The kill may have come between a line and its event.
  std::erase_if(lines, [&](const auto& line) { return !events.contains(line.first); });
  EXPECT_GE(lines.size() + 1, metrics().size());
  EXPECT_EQ(events, lines);
}

}  // namespace
}  // namespace hone
