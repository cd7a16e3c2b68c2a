// Tests of `hone variant import`: the files of tests/importing/candidates, each of which says what
// becomes of it, are translated for the task of tests/importing/modules/linear_tail.py and judged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/json_lines.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class TranslatedPrograms : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto imported =
        run_hone({"task", "import", (source_folder / "modules" / "linear_tail.py").string(),
                  "--out", folder().string()});
    ASSERT_EQ(imported.code, 0) << imported.out << imported.err;
    std::vector<std::string> arguments = {"variant", "import",          "--task", task(),
                                          "--out",   folder().string(), "--json"};
    for (const auto& entry : std::filesystem::directory_iterator(source_folder / "candidates"))
      arguments.push_back(entry.path().string());
    const auto translated = run_hone(arguments);
    EXPECT_EQ(translated.code, 1) << "not all are translated" << translated.err;
    for (const json& line : json_lines(translated.out))
      (*results())[std::filesystem::path(line.at("file").get<std::string>()).stem()] = line;
    std::vector<std::string> judging = {"eval", task(), "--json"};
    for (const auto& [name, line] : *results()) {
      if (line.at("translated")) judging.push_back(line.at("path"));
    }
    const auto judged = run_hone(judging);
    for (const json& line : json_lines(judged.out))
      (*outcomes())[std::filesystem::path(line.at("document").get<std::string>()).stem()] =
          line.at("outcome").get<std::string>() + " " + line.at("message").get<std::string>();
  }

  static const std::filesystem::path source_folder;
  static std::filesystem::path folder() {
    static const temporary_folder made;
    return made.path();
  }
  static std::string task() { return (folder() / "linear_tail.toml").string(); }
  static std::map<std::string, json>* results() {
    static auto* all = new std::map<std::string, json>;
    return all;
  }
  static std::map<std::string, std::string>* outcomes() {
    static auto* all = new std::map<std::string, std::string>;
    return all;
  }
  static json result(const std::string& name) { return results()->at(name); }
  static std::string text_of(const std::string& name) {
    return read_file(folder() / (name + ".md"));
  }
};

const std::filesystem::path TranslatedPrograms::source_folder =
    std::filesystem::path(HONE_SOURCE_DIR) / "tests" / "importing";

TEST_F(TranslatedPrograms, BecomeWhatTheirFilesSay) {
  std::size_t judged = 0;
  for (const auto& [name, line] : *results()) {
    const std::string says = read_file(source_folder / "candidates" / (name + ".py"));
    const bool is_refused = says.starts_with("\"\"\"Refused");
    EXPECT_EQ(line.at("translated"), !is_refused) << name << ": " << line.dump();
    if (is_refused || !line.at("translated")) continue;
    ++judged;
    const bool is_wrong = says.starts_with("\"\"\"Translated, and wrong_result");
    EXPECT_THAT(outcomes()->at(name), testing::StartsWith(is_wrong ? "wrong_result" : "ok "))
        << name << ":\n"
        << text_of(name);
  }
  EXPECT_EQ(judged, outcomes()->size());
  EXPECT_GE(judged, 8U);
}

TEST_F(TranslatedPrograms, PrepareWhatTheirConstructorComputes) {
  EXPECT_THAT(text_of("transposed"), HasSubstr("linear_weight.t()"));
  for (const char* name : {"folded", "lazy"})
    EXPECT_THAT(text_of(name), HasSubstr("torch.sqrt(norm_running_var + (1e-05))")) << name;
}

TEST_F(TranslatedPrograms, HaveTheSettingsOfTheirFiles) {
  EXPECT_THAT(text_of("graphed"), HasSubstr("cuda_graph = true\ncudnn_benchmark = true\n"));
  EXPECT_THAT(text_of("graphed"), testing::Not(HasSubstr("mul_"))) << "nobody uses the warm-up";
  EXPECT_THAT(text_of("operators"), testing::Not(HasSubstr("```toml")));
}

TEST_F(TranslatedPrograms, SayWhereTheyChooseByTimes) {
  EXPECT_THAT(result("chooses").at("notes").dump(), HasSubstr("line 21 takes times"));
  EXPECT_THAT(result("operators").at("notes").dump(), testing::Not(HasSubstr("takes times")));
}

TEST_F(TranslatedPrograms, AreRefusedWithTheReason) {
  EXPECT_THAT(result("kernel").at("error"), HasSubstr("line 14"));
  EXPECT_THAT(result("drawn_otherwise").at("error"), HasSubstr("mine has other values"));
  EXPECT_THAT(result("no_class").at("error"), HasSubstr("no ModelNew"));
}

TEST_F(TranslatedPrograms, AreJudgedInOneCommand) {
  const auto judged =
      run_hone({"eval", task(), (source_folder / "candidates" / "same_names.py").string()});
  EXPECT_EQ(judged.code, 0) << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("ok "));
  EXPECT_THAT(judged.err, HasSubstr("taken for these"));
}

TEST_F(TranslatedPrograms, AreJudgedAsModulesIfTheyCannotBeTranslated) {
  const auto judged =
      run_hone({"eval", task(), (source_folder / "candidates" / "kernel.py").string()});
  EXPECT_EQ(judged.code, 1);
  EXPECT_THAT(judged.err, AllOf(HasSubstr("judged as a Python module"), HasSubstr("line 14")));
  EXPECT_THAT(judged.out, HasSubstr("starts no compiler"));
}

TEST_F(TranslatedPrograms, NeedATaskThatWasImported) {
  const auto refused =
      run_hone({"variant", "import", "--task", "softmax", "--out", folder().string(),
                (source_folder / "candidates" / "operators.py").string()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("no PyTorch module"));
}

}  // namespace
}  // namespace hone
