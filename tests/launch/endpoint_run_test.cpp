// Tests of runs in which models behind servers write.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/support/fake_http_server.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* key = "sk-secret-0123456789";

std::string document(int number) {
  return "## Performance Analysis\nThe first.\n## Code Implementation\n```python\ndef forward(x: "
         "Tensor) -> Tensor:\n    return torch.softmax(x * 0.125, dim=1) * " +
         std::to_string(number) + "\n```\n";
}

std::string answer(const std::string& text) {
  return fake_http_server::reply(
      200, json{{"choices", {{{"message", {{"content", text}}}}}},
                {"usage", {{"prompt_tokens", 100}, {"completion_tokens", 50}}}}
               .dump());
}

class EndpointRun : public small_run_test {
 protected:
  EndpointRun() { setenv("HONE_TEST_KEY", key, 1); }
  ~EndpointRun() override { unsetenv("HONE_TEST_KEY"); }

  outcome_of_program run_with(const std::string& url, std::vector<std::string> more = {}) const {
    write_file(folder_ / "small.toml", read_file(folder_ / "small.toml") +
                                           "[endpoint.fake]\nurl = \"" + url +
                                           "\"\nmodel = \"m\"\nkey = \"HONE_TEST_KEY\"\n"
                                           "retries = 1\nfirst_pause_s = 0.01\n");
    more.insert(
        more.begin(),
        {"--set", "policy.kind=endpoint", "--set",
         std::string("prompt.template=") + HONE_SOURCE_DIR + "/configs/prompts/sections.txt",
         "--set", "contrastive.steps=3", "--set", "comparison.samples=0", "--set",
         "comparison.bare_samples=0", "--set", "comparison.greedy_samples=0"});
    return run(more);
  }
  // Returns the files below a folder that contain a text.
  static std::vector<std::string> files_with(const std::filesystem::path& folder,
                                             const std::string& text) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file() && read_file(entry.path()).find(text) != std::string::npos)
        found.push_back(entry.path().string());
    }
    return found;
  }
};

TEST_F(EndpointRun, SearchesWithExemplarsAndLeavesACorpusAndNoKey) {
  std::atomic<int> number = 0;
  std::atomic<int> with_exemplars = 0;
  fake_http_server server([&](const std::string& request) {
    if (request.find("Earlier variant 1, speed-up") != std::string::npos) ++with_exemplars;
    return answer(document(++number));
  });
  const auto ended = run_with(server.url());
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_GT(server.requests(), 50);
  EXPECT_GT(with_exemplars, 0) << "later prompts show what earlier answers scored";
  EXPECT_THAT(read_file(run_folder() / "report.txt"),
              AllOf(HasSubstr("softmax"), HasSubstr("fake: ")));
  const json report = json::parse(read_file(run_folder() / "report.json"));
  const json& used = report.at("endpoints").at("fake");
  EXPECT_GE(used.at("requests"), 50);
  EXPECT_EQ(used.at("prompt_tokens"), 100 * used.at("requests").get<int>());

  const auto collected = run_hone({"corpus", "collect", "--pool", run_folder().string(), "--out",
                                   (folder_ / "collected").string(), "--count", "3"});
  EXPECT_EQ(collected.code, 0) << collected.err;
  EXPECT_THAT(collected.out, HasSubstr("of 2 tasks in"));
  std::size_t documents = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "collected/softmax")) {
    EXPECT_THAT(read_file(entry.path()), HasSubstr("torch.softmax"));
    ++documents;
  }
  EXPECT_GE(documents, 3U) << "the best three on each of two types of device";

  EXPECT_THAT(files_with(run_folder(), key), testing::IsEmpty());
  EXPECT_THAT(ended.out + ended.err, testing::Not(HasSubstr(key)));
  EXPECT_THAT(files_with(run_folder(), "HONE_TEST_KEY"), testing::Not(testing::IsEmpty()))
      << "the name of the variable is kept, so that the run can be resumed";
}

TEST_F(EndpointRun, EndsWithASentenceWhenTheServerDies) {
  std::atomic<int> number = 0;
  fake_http_server server(
      [&](const std::string&) { return ++number > 40 ? std::string() : answer(document(number)); });
  const auto ended = run_with(server.url(), {"--set", "contrastive.steps=1000"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.out + ended.err,
              AllOf(HasSubstr("no endpoint is left to write"), HasSubstr("fake does not answer"),
                    HasSubstr("--resume")));
}

TEST_F(EndpointRun, IsRefusedWithoutItsKey) {
  unsetenv("HONE_TEST_KEY");
  const auto refused = run_with("http://127.0.0.1:9/v1");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("endpoint.fake.key: the environment variable HONE_TEST_KEY"));
}

TEST_F(EndpointRun, ADryRunAsksTheServer) {
  fake_http_server server([&](const std::string&) {
    return fake_http_server::reply(404, R"({"error":{"message":"no model m"}})");
  });
  const auto ended = run_with(server.url(), {"--dry-run"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(server.requests(), 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("endpoint.fake: " + server.url()),
                               HasSubstr("status 404: no model m")));
}

}  // namespace
}  // namespace hone
