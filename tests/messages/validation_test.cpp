#include "messages/validation.hpp"

#include <capnp/any.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "messages/schema/node.capnp.h"
#include "messages/schema/variant.capnp.h"

namespace hone {
namespace {

using testing::Test;

record<schema::RolloutGroup> sample_group() {
  record_builder<schema::RolloutGroup> group;
  random_id<group_id>().store(group->initId());
  auto draw = group->initDraw();
  random_id<draw_id>().store(draw.initId());
  random_id<task_id>().store(draw.initTaskId());
  draw.setDeviceType("cpu-test");
  auto exemplars = draw.initExemplars(1);
  random_id<variant_id>().store(exemplars[0].initVariantId());
  exemplars[0].setPython("def forward(a): return a");
  auto rollouts = group->initRollouts(2);
  for (auto rollout : rollouts) {
    random_id<rollout_id>().store(rollout.initId());
    random_id<variant_id>().store(rollout.initVariantId());
    rollout.setText("## Code Implementation");
    auto tokens = rollout.initTokens(3);
    tokens.set(1, 7);
  }
  group->initVariants(0);
  return group.finish();
}

TEST(Record, SharesItsBytesAndReadsThemBack) {
  const auto group = sample_group();
  const auto copy = group;  // NOLINT(performance-unnecessary-copy-initialization): it is the test
  EXPECT_EQ(group.bytes().data(), copy.bytes().data());
  EXPECT_EQ(view(copy->getDraw().getDeviceType()), "cpu-test");
  EXPECT_EQ(copy->getRollouts()[1].getTokens()[1], 7U);
}

TEST(Record, IsEqualAfterARoundTripThroughItsBytes) {
  const auto group = sample_group();
  const auto again = record<schema::RolloutGroup>::from_bytes(group.bytes());
  EXPECT_EQ(group.bytes(), again.bytes());
}

TEST(Record, OfAPartHoldsAllOfItAndNothingElse) {
  const auto group = sample_group();
  const auto draw = copy_record<schema::Draw>(group->getDraw());
  EXPECT_EQ(
      find_problem({draw.bytes().data(), draw.bytes().size()}, capnp::Schema::from<schema::Draw>()),
      std::nullopt);
  EXPECT_EQ(draw_id(draw->getId()), draw_id(group->getDraw().getId()));
  EXPECT_EQ(view(draw->getExemplars()[0].getPython()), "def forward(a): return a");
  EXPECT_LT(draw.bytes().size(), group.bytes().size());
  // A part without contents is a message as well.
  const auto none = copy_record<schema::Draw>(schema::Draw::Reader());
  EXPECT_EQ(none->getExemplars().size(), 0U);
}

TEST(Record, MayBeOfAnySize) {
  for (const unsigned rollouts : {1U, 50U, 5000U}) {
    record_builder<schema::RolloutGroup> group(*sample_group());
    for (auto rollout : group->initRollouts(rollouts)) {
      random_id<rollout_id>().store(rollout.initId());
      random_id<variant_id>().store(rollout.initVariantId());
      rollout.setText(std::string(100, 'x'));
      rollout.initTokens(3).set(1, 7);
    }
    const auto made = record<schema::RolloutGroup>::from_bytes(group.finish().bytes());
    EXPECT_EQ(made->getRollouts().size(), rollouts);
    EXPECT_EQ(made->getRollouts()[rollouts - 1].getTokens()[1], 7U);
    const auto again = copy_record<schema::RolloutGroup>(*made);
    EXPECT_EQ(view(again->getRollouts()[rollouts - 1].getText()), std::string(100, 'x'));
  }
}

TEST(Validation, NamesTheMissingField) {
  record_builder<schema::RolloutGroup> group;
  random_id<group_id>().store(group->initId());
  group->initDraw();
  try {
    record<schema::RolloutGroup>::from_bytes(group.finish().bytes());
    FAIL() << "accepted";
  } catch (const invalid_record& e) {
    EXPECT_NE(std::string(e.what()).find("RolloutGroup: draw: field id is missing"),
              std::string::npos)
        << e.what();
  }
}

TEST(Validation, RefusesTruncatedAndPaddedBytes) {
  const auto bytes = sample_group().bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(record<schema::RolloutGroup>::from_bytes(
                     {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}),
                 invalid_record);
  }
  auto longer = bytes;
  longer.resize(bytes.size() + 8);
  EXPECT_THROW(record<schema::RolloutGroup>::from_bytes(longer), invalid_record);
}

TEST(Validation, RefusesUnknownEnumerants) {
  record_builder<schema::Draw> draw;
  random_id<draw_id>().store(draw->initId());
  random_id<task_id>().store(draw->initTaskId());
  draw->setDeviceType("cpu-test");
  draw->setStage(static_cast<schema::Stage>(99));
  EXPECT_THROW(record<schema::Draw>::from_bytes(draw.finish().bytes()), invalid_record);
}

unsigned pointer_of(capnp::StructSchema schema, const char* field) {
  return schema.getFieldByName(field).getProto().getSlot().getOffset();
}

// Returns what find_problem() says of a message; empty: nothing.
std::string problem_of_group(capnp::MessageBuilder& message) {
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  return find_problem({reinterpret_cast<const char*>(bytes.begin()), bytes.size()},
                      capnp::Schema::from<schema::RolloutGroup>())
      .value_or("");
}

// Cap'n Proto reads a list of numbers also from structs, which may have pointers that no check
// follows but every copy does.
TEST(Validation, RefusesListsOfOtherElements) {
  const unsigned rollouts = pointer_of(capnp::Schema::from<schema::RolloutGroup>(), "rollouts");
  const unsigned tokens = pointer_of(capnp::Schema::from<schema::Rollout>(), "tokens");
  capnp::MallocMessageBuilder numbers;
  numbers.setRoot(*sample_group());
  EXPECT_EQ(problem_of_group(numbers), "");
  numbers.getRoot<capnp::AnyStruct>()
      .getPointerSection()[rollouts]
      .initAs<capnp::List<std::uint64_t>>(0);
  EXPECT_EQ(problem_of_group(numbers), "rollouts: a list of other elements");

  capnp::MallocMessageBuilder structs;
  structs.setRoot(*sample_group());
  const auto first = [&] { return structs.getRoot<schema::RolloutGroup>().getRollouts()[0]; };
  capnp::AnyStruct::Builder(first()).getPointerSection()[tokens].initAsListOfAnyStruct(1, 1, 3);
  EXPECT_EQ(first().asReader().getTokens().size(), 3U);
  EXPECT_EQ(problem_of_group(structs), "rollouts: tokens: a list of other elements");
}

TEST(Validation, RefusesPointersThatAreNoFields) {
  const auto group = sample_group();
  const capnp::AnyStruct::Reader from(*group);
  const auto fields = from.getPointerSection();
  for (const bool is_used : {false, true}) {
    capnp::MallocMessageBuilder message;
    auto longer = message.getRoot<capnp::AnyPointer>().initAsAnyStruct(
        static_cast<std::uint16_t>(from.getDataSection().size() / 8),
        static_cast<std::uint16_t>(fields.size() + 1));
    std::copy(from.getDataSection().begin(), from.getDataSection().end(),
              longer.getDataSection().begin());
    for (unsigned i = 0; i < fields.size(); ++i) longer.getPointerSection()[i].set(fields[i]);
    if (is_used) longer.getPointerSection()[fields.size()].initAs<capnp::Data>(100);
    EXPECT_EQ(problem_of_group(message), is_used ? "pointers that are no fields" : "");
  }
}

// An accepted record must be readable in full without a read outside of its bytes. The sanitizer
// build detects such reads.
TEST(Validation, SurvivesFlippedBitsAndRandomBytes) {
  std::mt19937_64 random(1);
  const auto bytes = sample_group().bytes();
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<char> damaged = bytes;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i)
      damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
    if (round % 4 == 0) {
      damaged.resize(8 * (1 + random() % 64));
      for (char& c : damaged) c = static_cast<char>(random() % 3 == 0 ? random() : 0);
    }
    try {
      const auto group = record<schema::RolloutGroup>::from_bytes(std::move(damaged));
      ++accepted;
      std::size_t total = 0;
      for (auto rollout : group->getRollouts())
        total += rollout.getText().size() + rollout.getTokens().size();
      for (auto exemplar : group->getDraw().getExemplars()) total += exemplar.getPython().size();
      EXPECT_LT(total, std::size_t{1} << 20U);
    } catch (const invalid_record&) {
    }
  }
  EXPECT_GT(accepted, 0);  // flips in numbers and text are harmless
}

TEST(Validation, BoundsTheWorkForMessagesThatClaimBillionsOfElements) {
  // In a list of elements of no size, and with pointers that share a target, a few words may claim
  // to hold billions of elements.
  std::vector<char> bytes(24, 0);
  bytes[4] = 2;                         // one segment of two words
  bytes[8] = 1;                         // a list pointer at the root ...
  bytes[12] = static_cast<char>(0xF8);  // ... of 2^29 - 1 void elements
  bytes[13] = bytes[14] = bytes[15] = static_cast<char>(0xFF);
  EXPECT_THROW(record<schema::NodeStatus>::from_bytes(bytes), invalid_record);
}

}  // namespace
}  // namespace hone
