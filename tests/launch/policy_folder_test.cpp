// Tests of policies that are given as Hugging Face folders: their commands, and chat formats in
// runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "policy/network/decoder_weights.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/small_run.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::Not;

constexpr const char* user_template =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

class PolicyFolder : public small_run_test {
 protected:
  PolicyFolder() {
    std::filesystem::create_directories(policy());
    for (const char* name : {"config.json", "tokenizer.json"})
      std::filesystem::copy(configs() + "policies/tiny/" + name, policy() / name);
    write_file(policy() / "chat_template.jinja", user_template);
  }
  static std::string configs() { return std::string(HONE_SOURCE_DIR) + "/configs/"; }
  std::filesystem::path policy() const { return folder_ / "policy"; }
  void write_weights() const {
    decoder_weights::random(decoder_config::load(policy() / "config.json"), 1)
        .save(policy() / "model.safetensors");
  }
  std::vector<std::string> short_run(std::vector<std::string> more = {}) const {
    std::vector<std::string> all;
    for (const std::string& setting :
         {std::string("policy.kind=model"), "policy.folder=" + policy().string(),
          std::string("policy.random_weights=true"),
          "prompt.template=" + configs() + "prompts/compact.txt",
          "corpus.folder=" + configs() + "corpus", std::string("corpus.per_task=2"),
          std::string("generation.max_new_tokens=8"), std::string("generation.group_size=2"),
          std::string("sft.updates=2"), std::string("sft.updates_per_step=1"),
          std::string("self_supervised.steps=0"), std::string("contrastive.steps=1"),
          std::string("contrastive.groups=1"), std::string("comparison.samples=0"),
          std::string("comparison.bare_samples=0"), std::string("comparison.greedy_samples=0")}) {
      all.insert(all.end(), {"--set", setting});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(PolicyFolder, CheckSaysWhatAPolicyIs) {
  write_weights();
  const auto said = run_hone({"policy", "check", policy().string()});
  EXPECT_EQ(said.code, 0) << said.err;
  for (const char* part : {"million in float32, all finite", "2048 tokens", "ends with",
                           "<user>...</user><assistant>", "of keys and values for each token"})
    EXPECT_THAT(said.out, HasSubstr(part));
  const auto listed =
      run_hone({"policy", "check", policy().string(), "--json", "--format", "plain"});
  const auto facts = json_lines(listed.out).at(0);
  EXPECT_TRUE(facts["chat"].is_null());
  EXPECT_EQ(facts["vocabulary"], 2048);
}

TEST_F(PolicyFolder, CheckRefusesAFolderWithoutWeights) {
  const auto refused = run_hone({"policy", "check", policy().string()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("has no *.safetensors"));
}

TEST_F(PolicyFolder, SampleAnswersAPromptAndRepeatsItselfFromASeed) {
  write_weights();
  write_file(folder_ / "prompt.txt", "x = ");
  const std::vector<std::string> command = {
      "policy",    "sample", policy().string(),  "--prompt", (folder_ / "prompt.txt").string(),
      "--samples", "3",      "--max-new-tokens", "6",        "--seed",
      "4",         "--json"};
  const auto first = run_hone(command);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto answers = json_lines(first.out);
  ASSERT_EQ(answers.size(), 3U);
  for (const auto& answer : answers) {
    EXPECT_LE(answer["tokens"].size(), 6U);
    EXPECT_EQ(answer["tokens"].size(), answer["log_probabilities"].size());
  }
  EXPECT_EQ(run_hone(command).out, first.out);
}

TEST_F(PolicyFolder, BenchMeasuresSamplingAndTraining) {
  const auto measured = run_hone({"policy",          "bench", policy().string(), "--random-weights",
                                  "--device",        "cpu",   "--slots",         "5",
                                  "--prompt-tokens", "9",     "--new-tokens",    "4",
                                  "--group",         "16",    "--seconds",       "0.001",
                                  "--sft",           "2",     "--grpo",          "4",
                                  "--length",        "16",    "--json"});
  ASSERT_EQ(measured.code, 0) << measured.err;
  const auto results = json_lines(measured.out).at(0);
  EXPECT_EQ(results["sampling"]["group"], 5) << "no group is larger than the slots";
  for (const char* rate : {"first_tokens_per_s", "later_tokens_per_s", "tokens_per_s"})
    EXPECT_GT(results["sampling"][rate].get<double>(), 0) << rate;
  for (const char* part : {"reading", "sft", "grpo"})
    EXPECT_GT(results[part]["tokens_per_s"].get<double>(), 0) << part;
}

TEST_F(PolicyFolder, ARunKeepsTheChatFormatThatItBeganWith) {
  const auto began = run(short_run());
  ASSERT_EQ(began.code, 0) << began.err;
  const std::string kept = read_file(run_folder() / "chat_format.json");
  EXPECT_THAT(kept, HasSubstr("<user>"));
  write_file(policy() / "chat_template.jinja", "{{ raise_exception('changed since') }}");
  const auto more =
      run_hone({"run", "--dir", run_folder().string(), "--extend", "contrastive.steps=1"});
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(read_file(run_folder() / "chat_format.json"), kept);
  // Other programs find the template in the checkpoints.
  std::size_t templates = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run_folder()))
    templates += entry.path().filename() == "chat_template.jinja" ? 1 : 0;
  EXPECT_GE(templates, 1U);
}

TEST_F(PolicyFolder, ARunReadsPlainTextIfItIsToldSo) {
  ASSERT_EQ(run(short_run({"--set", "prompt.format=plain"})).code, 0);
  EXPECT_THAT(read_file(run_folder() / "chat_format.json"), Not(HasSubstr("<user>")));
  // The groups that it has stored were written for plain prompts.
  const auto changed = run_hone({"run", "--dir", run_folder().string(), "--extend",
                                 "contrastive.steps=1", "--set", "prompt.format=chat"});
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.err, HasSubstr("the run began with prompts of the other kind"));
}

TEST_F(PolicyFolder, ARunOfAnEarlierVersionKeepsItsPlainPrompts) {
  ASSERT_EQ(run(short_run({"--set", "prompt.format=plain"})).code, 0);
  std::filesystem::remove(run_folder() / "chat_format.json");
  std::string settings = read_file(run_folder() / "config.toml");
  settings.replace(settings.find("format = 'plain'"), 16, "format = 'auto'");
  write_file(run_folder() / "config.toml", settings);
  const auto more =
      run_hone({"run", "--dir", run_folder().string(), "--extend", "contrastive.steps=1"});
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(read_file(run_folder() / "chat_format.json"), Not(HasSubstr("<user>")));
}

TEST_F(PolicyFolder, ARunRefusesATemplateThatItCannotUse) {
  write_file(policy() / "chat_template.jinja", "{{ messages[0].content | upper }}");
  for (const auto& settings : {short_run(), short_run({"--dry-run"})}) {
    const auto refused = run(settings);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("its chat template cannot be used"));
  }
  std::filesystem::remove(policy() / "chat_template.jinja");
  const auto without = run(short_run({"--dry-run", "--set", "prompt.format=chat"}));
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("has no chat template"));
}

}  // namespace
}  // namespace hone
