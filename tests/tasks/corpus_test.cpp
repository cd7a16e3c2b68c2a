#include "tasks/corpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::HasSubstr;

std::string corpus_error(const std::string& text) {
  return testing_support::refusal_of<format_error>(
      [&] { expand_corpus_text(text, "f.md", "t", "n"); });
}

TEST(Corpus, AFileWithoutASweepIsOneUnchangedDocument) {
  const auto documents = expand_corpus_text("## Code Implementation\n", "f.md", "t", "n");
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0].text, "## Code Implementation\n");
  EXPECT_EQ(documents[0].name, "n");
}

TEST(Corpus, ASweepStandsForEveryCombination) {
  const auto documents = expand_corpus_text(
      "sweep: BLOCK = 64 128, ITEMS = 1 2 4\n\nlaunch [${BLOCK}] x${ITEMS} ${BLOCK}\n", "f.md", "t",
      "n");
  ASSERT_EQ(documents.size(), 6U);
  EXPECT_EQ(documents[0].text, "launch [64] x1 64\n");
  EXPECT_EQ(documents[5].text, "launch [128] x4 128\n");
  EXPECT_EQ(documents[5].name, "n BLOCK=128 ITEMS=4");
}

TEST(Corpus, RefusesSweepsThatDoNotFitTheText) {
  EXPECT_THAT(corpus_error("sweep: BLOCK = 64\nno place\n"),
              HasSubstr("f.md:1: sweep: the text has no ${BLOCK}"));
  EXPECT_THAT(corpus_error("sweep: block = 64\n"), HasSubstr("not of the form"));
  EXPECT_THAT(corpus_error("sweep: A = 1\n${A} ${B}\n"), HasSubstr("no value to ${B}"));
  EXPECT_THAT(corpus_error("sweep:\n"), HasSubstr("names no values"));
  // Values whose places multiply.
  std::string laughs = "sweep: A0 = x";
  std::string places = "${A0}";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "${A" + std::to_string(i - 1) + "}";
    laughs.insert(7, "A" + std::to_string(i) + " = " + before + before + before + ", ");
    places += "${A" + std::to_string(i) + "}";
  }
  EXPECT_THAT(corpus_error(laughs + "\n" + places + "\n"), HasSubstr("expands to more text"));
  EXPECT_THAT(corpus_error("sweep: A =  \n${A}\n"), HasSubstr("names no values of A"));
  std::string endless = "sweep: A0 = 1 1 1 1";
  for (int i = 1; i < 32; ++i)
    endless += ",A" + std::to_string(i) + "=1 1 1 1";  // 2 to the power of 64
  EXPECT_THAT(corpus_error(endless + "\n"), HasSubstr("more than 1000 documents"));
  EXPECT_THAT(corpus_error("uses ${B}\n"), HasSubstr("no value to ${B}"));
}

TEST(Corpus, SubfoldersNameTheTasks) {
  const testing_support::temporary_folder folder;
  testing_support::write_file(folder.path() / "softmax" / "b.md", "B");
  testing_support::write_file(folder.path() / "softmax" / "a.md", "A");
  testing_support::write_file(folder.path() / "diag" / "c.md", "C");
  testing_support::write_file(folder.path() / "diag" / "notes.txt", "not a document");
  const auto documents = load_corpus(folder.path());
  ASSERT_EQ(documents.size(), 3U);
  EXPECT_EQ(documents[0].task, "diag");
  EXPECT_EQ(documents[1].name, "a");
  EXPECT_THROW(load_corpus(folder / "nothing"), format_error);
}

}  // namespace
}  // namespace hone
