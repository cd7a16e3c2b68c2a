#include "launch/chat_templates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "policy/files.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing_support::write_file;

using testing_support::golden;

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

class GoldenChat : public testing::TestWithParam<const char*> {};

TEST_P(GoldenChat, IsRenderedAsTransformersRendersIt) {
  const std::filesystem::path folder = golden / "chats" / GetParam();
  const chat_format format = find_chat_format(folder, "chat");
  for (const auto& entry : read_json(folder / "golden.json")) {
    const auto message = entry["message"].get<std::string>();
    EXPECT_EQ(format.around(message), entry["asked"].get<std::string>());
    // A template may have an answer begin with words that it leaves out of earlier answers.
    EXPECT_TRUE(entry["answered"].get<std::string>().ends_with("Hello!" + format.end));
  }
}

INSTANTIATE_TEST_SUITE_P(Templates, GoldenChat,
                         testing::Values("default_system", "headers", "instructions", "thoughts"),
                         [](const auto& name) { return std::string(name.param); });

TEST(ChatTemplates, OfSmolLm2IsRenderedAsTransformersRendersIt) {
  const char* const folder = std::getenv("HONE_SMOLLM2");
  if (folder == nullptr) GTEST_SKIP() << "HONE_SMOLLM2 names no folder of the model";
  const chat_format format = find_chat_format(folder, "auto");
  for (const auto& entry : read_json(golden / "smollm2.json")["chats"])
    EXPECT_EQ(format.around(entry["prompt"]), entry["chat"].get<std::string>());
}

TEST(ChatTemplates, AFolderWithoutOneReadsPlainText) {
  const testing_support::temporary_folder folder;
  EXPECT_TRUE(find_chat_format(folder.path(), "auto").is_plain());
  write_file(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_TRUE(find_chat_format(folder.path(), "auto").is_plain());
  EXPECT_THROW(find_chat_format(folder.path(), "chat"), policy_error);
  EXPECT_TRUE(find_chat_format(golden / "chats/headers", "plain").is_plain());
}

TEST(ChatTemplates, ThatLookIntoMessagesOrFailAreRefused) {
  const testing_support::temporary_folder folder;
  const auto refusal = [&](const std::string& text) {
    write_file(folder / "chat_template.jinja", text);
    return testing_support::refusal_of<policy_error>(
        [&] { find_chat_format(folder.path(), "auto"); });
  };
  EXPECT_EQ(refusal("{% for m in messages %}{{ m.content }}|{% endfor %}"), "");
  EXPECT_THAT(refusal("{{ messages[0].content | upper }}"), HasSubstr("0 times, not once"));
  EXPECT_THAT(refusal("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}"),
              HasSubstr("2 times, not once"));
  EXPECT_THAT(refusal("{% for m in messages %}{{ m.content | replace('#', '') }}{% endfor %}"),
              HasSubstr("changes messages"));
  for (const char* word : {"<|im_end|>", "<|channel|>", "[INST]", "CUDA", "kernel"})
    EXPECT_THAT(refusal("{% for m in messages %}{{ m.content | replace('" + std::string(word) +
                        "', '') }}{% endfor %}"),
                HasSubstr("changes messages"))
        << word;
  EXPECT_THAT(refusal("{{ raise_exception('no chats here') }}"), HasSubstr("no chats here"));
  EXPECT_THAT(refusal("{% for m in messages %}"), HasSubstr("cannot be used"));
  EXPECT_THAT(refusal("{{ ''.__class__.__mro__ }}"), HasSubstr("cannot be used"))
      << "a template is not trusted";
  EXPECT_THAT(
      refusal("{% for i in range(10 ** 9) %}{% for j in range(9) %}{% endfor %}{% endfor %}"),
      HasSubstr("Range too big"));
}

TEST(ChatTemplates, AreReadFromTheFilesThatTransformersReads) {
  const testing_support::temporary_folder folder;
  const auto asked = [&](const std::string& settings) {
    write_file(folder / "tokenizer_config.json", settings);
    return find_chat_format(folder.path(), "auto").around("m");
  };
  const auto refusal = [&](const std::string& settings) {
    return testing_support::refusal_of<policy_error>([&] { asked(settings); });
  };
  const std::string given =
      R"("{{ bos_token }}{{ boi_token }}{% for m in messages %}{{ m.content }}{% endfor %}")";
  EXPECT_EQ(asked(R"({"chat_template":)" + given + R"(,"bos_token":"<s>"})"), "<s>m");
  EXPECT_EQ(asked(R"({"chat_template":{"default":)" + given + "}}"), "m");
  EXPECT_EQ(asked(R"({"chat_template":[{"name":"default","template":)" + given + "}]}"), "m");
  EXPECT_EQ(asked(R"({"extra_special_tokens":{"boi_token":"<i>"},"chat_template":)" + given + "}"),
            "<i>m");
  write_file(folder / "special_tokens_map.json", R"({"bos_token":{"content":"<b>"}})");
  EXPECT_EQ(asked(R"({"chat_template":)" + given + R"(,"bos_token":"<s>"})"), "<b>m");
  EXPECT_THAT(refusal(R"({"chat_template":5})"), HasSubstr("chat_template: has 5"));
  EXPECT_THAT(refusal("[]"), HasSubstr("tokenizer_config.json: is no JSON object"));
  EXPECT_THAT(refusal("{"), HasSubstr("tokenizer_config.json: is no JSON"));
  write_file(folder / "chat_template.json", R"({"chat_template":)" + given + "}");
  EXPECT_EQ(asked(R"({"chat_template":"{% for m in messages %}{{ m.content }}!{% endfor %}"})"),
            "m!");
  EXPECT_THAT(refusal("{}"), HasSubstr("chat_template.json is the file of a processor"));
}

TEST(ChatTemplates, ThatStripMessagesStripAllSpaces) {
  const chat_format format{"<", ">", "", true};
  EXPECT_EQ(format.around("\u3000\u00a0 x\u2003y \u0085\n"), "<x\u2003y>");
  EXPECT_EQ(format.around(" \u2028 "), "<>");
}

TEST(ChatTemplates, AreKeptInAFile) {
  const testing_support::temporary_folder folder;
  const chat_format format{"<|a|>\n\"", "é", "</s>", true};
  write_file(folder / "chat_format.json", print_chat_format(format));
  const chat_format loaded = load_chat_format(folder / "chat_format.json");
  EXPECT_EQ(loaded.around(" x "), format.around(" x "));
  EXPECT_EQ(loaded.end, format.end);
  write_file(folder / "chat_format.json", "{}");
  EXPECT_THROW(load_chat_format(folder / "chat_format.json"), policy_error);
}

}  // namespace
}  // namespace hone
