#include <gtest/gtest.h>

#include "results/printing.hpp"
#include "results/variants.hpp"
#include "tests/support/pool_fixture.hpp"

namespace hone {
namespace {

using namespace testing_support;

class PoolLineage : public PoolTest {
 protected:
  static group_options of_corpus() {
    group_options options;
    options.origin = schema::RolloutGroup::Origin::CORPUS;
    return options;
  }
  // Returns the lineage of a variant as the command prints it, with the variants' codes instead of
  // their short ids.
  std::string lineage_of(const std::string& code, const std::vector<std::string>& codes) {
    pool_.reset();
    const pool_inspector inspector(folder_ / "pool");
    testing::internal::CaptureStdout();
    print_lineage(inspector, variant_of(code));
    std::string text = testing::internal::GetCapturedStdout();
    for (const std::string& one : codes) {
      const std::string id = short_id(variant_of(one));
      for (std::size_t at = text.find(id); at != std::string::npos; at = text.find(id))
        text.replace(at, id.size(), one);
    }
    return text;
  }
};

TEST_F(PoolLineage, ShowsTheFirstWritingAndCountsTheOthers) {
  finish_all(submit(make_group({"old"}, of_corpus())), 1.5);
  for (const std::uint64_t version : {4, 2, 9}) {
    group_options options;
    options.version = version;
    options.exemplars = {variant_of("old")};
    finish_all(submit(make_group({"new", "new"}, options)), 2);
  }
  EXPECT_EQ(lineage_of("new", {"new", "old"}),
            "variant new  2.00x on cpu-test\n"
            "  written in contrastive by version 2, with exemplars\n"
            "    variant old  1.50x on cpu-test\n"
            "      from the corpus\n"
            "  written again in 5 rollouts by versions 2 to 9, 0 of them trained on\n");
}

TEST_F(PoolLineage, ADocumentOfTheCorpusIsThereOnceForAllTypesOfDevices) {
  finish_all(submit(make_group({"old"}, of_corpus())), 1.5);
  finish_all(submit(make_group({"old"}, of_corpus())), 1.5);
  EXPECT_EQ(lineage_of("old", {"old"}),
            "variant old  1.50x on cpu-test\n"
            "  from the corpus\n");
}

}  // namespace
}  // namespace hone
