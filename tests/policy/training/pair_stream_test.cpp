#include "policy/training/pair_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "tests/support/counted_lessons.hpp"
#include "tests/support/policy_folders.hpp"

namespace hone {
namespace {

using testing_support::counted_lessons;

class PairStream : public testing::Test {
 protected:
  std::unique_ptr<pair_stream> make(std::size_t threads, std::size_t context = 0) {
    return std::make_unique<pair_stream>(
        counted_lessons::open, codec_, prompts_,
        pair_stream::options{
            .threads = threads, .seed = 3, .device_type = "cpu", .context = context});
  }
  std::string text(const std::vector<token_id>& tokens) const { return codec_.decode(tokens); }
  // Returns the documents of the next pairs.
  std::vector<std::string> draw(pair_stream& from, std::size_t count) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) texts.push_back(text(from.next().completion));
    return texts;
  }

  text_codec codec_ = text_codec::load(testing_support::tiny, {});
  prompt_template prompts_ = prompt_template::parse("{{task}} {{device}}\n", "test");
};

constexpr std::size_t pairs_of_block = 2 * 52;  // of 64 lessons, 12 have no task

TEST_F(PairStream, GivesEveryDocumentOfABlockOnceInARandomOrder) {
  const auto stream = make(1);
  const std::vector<std::string> block = draw(*stream, pairs_of_block);
  EXPECT_EQ(std::set<std::string>(block.begin(), block.end()).size(), pairs_of_block);
  EXPECT_FALSE(std::is_sorted(block.begin(), block.end()));
  for (const std::string& one : block) EXPECT_LT(std::stoi(one.substr(9)), 64) << one;
  EXPECT_GE(std::stoi(draw(*stream, 1).front().substr(9)), 64);
}

TEST_F(PairStream, ShowsTheTaskAndTheDeviceType) {
  const sft_example pair = make(1)->next();
  const std::string document = text(pair.completion);
  const std::string number = document.substr(9, document.find(' ', 9) - 9);
  EXPECT_EQ(text(pair.prompt), "task_" + number + " cpu\n");
}

// Lessons that each have a contrast alone.
class contrasts final : public lesson_source {
 public:
  lesson next() override {
    lesson made = lessons_.next();
    if (!made.skipped.empty()) return made;
    made.documents.clear();
    const auto document = [](const std::string& code) {
      return "## Code Implementation\n```python\n" + code + "\n```\n";
    };
    made.contrast = {{{0.5, document("slow")}, {1.25, document("faster")}}, document("fastest")};
    return made;
  }

 private:
  counted_lessons lessons_{0, 1};
};

TEST_F(PairStream, ShowsTheVariantsThatAContrastCompares) {
  prompts_ = prompt_template::parse(
      "{{#exemplars}}\n{{number}}: {{score}}x {{code}}\n{{/exemplars}}\n", "test");
  pair_stream stream([](auto, auto) { return std::make_unique<contrasts>(); }, codec_, prompts_,
                     {.threads = 1, .seed = 3, .device_type = "cpu"});
  const sft_example pair = stream.next();
  EXPECT_EQ(text(pair.prompt), "1: 0.50x ```python\nslow\n```\n2: 1.25x ```python\nfaster\n```\n");
  EXPECT_THAT(text(pair.completion), testing::HasSubstr("fastest"));
}

TEST_F(PairStream, IsTheSameWithAnyNumberOfThreads) {
  const auto one = make(1);
  const auto three = make(3);
  EXPECT_EQ(draw(*one, 500), draw(*three, 500));
}

TEST_F(PairStream, GoesOnFromItsStateAsIfItHadNotBeenInterrupted) {
  for (const std::size_t drawn :
       {std::size_t{0}, std::size_t{37}, pairs_of_block, std::size_t{300}}) {
    const auto whole = make(2);
    draw(*whole, drawn);
    const std::string state = whole->state();
    const auto resumed = make(3);
    resumed->restore(state);
    EXPECT_EQ(draw(*resumed, 250), draw(*whole, 250)) << drawn;
  }
}

TEST_F(PairStream, CountsWhatItLeavesOut) {
  const auto stream = make(2);
  draw(*stream, pairs_of_block);
  EXPECT_EQ(stream->so_far().lessons, 64U);
  EXPECT_EQ(stream->so_far().skipped, 12U);
  EXPECT_EQ(stream->so_far().too_long, 0U);
  EXPECT_EQ(stream->so_far().pairs, pairs_of_block);
  EXPECT_THROW(draw(*make(2, 3), 1), std::runtime_error) << "no pair has three tokens";
}

TEST_F(PairStream, ReportsThatASourceHasFailed) {
  class failing : public lesson_source {
    lesson next() override { throw std::runtime_error("no Python"); }
  };
  pair_stream stream([](std::uint64_t, std::uint64_t) { return std::make_unique<failing>(); },
                     codec_, prompts_, {});
  try {
    stream.next();
    ADD_FAILURE() << "there is a pair";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "no Python");
  }
}

}  // namespace
}  // namespace hone
