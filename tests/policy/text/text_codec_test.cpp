#include "policy/text/text_codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/files.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::write_file;

using testing_support::golden;

class TextCodec : public testing::Test {
 protected:
  TextCodec() { use("partial", R"("eos_token_id": 1)"); }

  void use(const std::string& tokenizer, const std::string& keys) {
    std::filesystem::copy_file(golden / ("tokenizer_" + tokenizer + ".json"),
                               folder_ / "tokenizer.json",
                               std::filesystem::copy_options::overwrite_existing);
    write_file(
        folder_ / "config.json",
        R"({"model_type": "llama", "vocab_size": 500, "hidden_size": 8, "num_hidden_layers": 1,)"
        R"( "num_attention_heads": 1, "intermediate_size": 8, )" +
            keys + "}");
  }
  text_codec load(const chat_format& chat = {}) const {
    return text_codec::load(folder_.path(), chat);
  }
  std::string refusal() const {
    return testing_support::refusal_of<policy_error>([&] { load(); });
  }

  testing_support::temporary_folder folder_;
};

TEST_F(TextCodec, PutsTheTokenOfATextsBeginningInFrontOfPromptsOnly) {
  const text_codec codec = load();
  const auto words = codec.words().encode("return x");
  EXPECT_EQ(codec.encode_prompt("return x").front(), 0U);
  EXPECT_EQ(codec.encode_prompt("return x").size(), words.size() + 1);
  EXPECT_EQ(codec.encode_answer("return x").front(), words.front());
  EXPECT_EQ(codec.encode_answer("return x").back(), 1U);
}

TEST_F(TextCodec, PutsTheChatFormatAroundPromptsAndItsEndBehindAnswers) {
  use("lines", R"("eos_token_id": 7)");
  const chat_format chat{"<|begin|>user\n", "<|end|>\n<|begin|>", "<|end|>\n", true};
  const text_codec codec = load(chat);
  EXPECT_EQ(codec.encode_prompt("  x = 1\n"),
            codec.words().encode("<|begin|>user\nx = 1<|end|>\n<|begin|>"));
  EXPECT_EQ(codec.encode_answer("y").back(), 1U);
  EXPECT_THAT(codec.end_tokens(), ElementsAre(1, 7)) << "the template's, then the config's";
}

TEST_F(TextCodec, TakesTheEndTokensOfTheGenerationConfigFirst) {
  write_file(folder_ / "generation_config.json", R"({"eos_token_id": [9, 1, 12]})");
  EXPECT_THAT(load().end_tokens(), ElementsAre(9, 1, 12));
  write_file(folder_ / "generation_config.json", R"({"do_sample": true})");
  EXPECT_THAT(load().end_tokens(), ElementsAre(1));
}

TEST_F(TextCodec, RefusesWhatDoesNotFit) {
  use("lines", R"("eos_token_id": null)");
  EXPECT_THAT(refusal(), HasSubstr("eos_token_id: is missing"));
  use("lines", R"("eos_token_id": 500)");
  EXPECT_THAT(refusal(), HasSubstr("eos_token_id 500 is not below"));
  use("lines", R"("eos_token_id": "end")");
  EXPECT_THAT(refusal(), HasSubstr("expected a token's id, or a list of them"));
  use("lines", R"("eos_token_id": 1, "vocab_size": 300)");
  EXPECT_THAT(refusal(), HasSubstr("the tokenizer has 420 tokens"));
  write_file(folder_ / "generation_config.json", "{");
  EXPECT_THAT(refusal(), HasSubstr("generation_config.json: is no JSON"));
}

}  // namespace
}  // namespace hone
