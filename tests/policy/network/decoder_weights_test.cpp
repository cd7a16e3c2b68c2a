#include "policy/network/decoder_weights.hpp"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/files.hpp"
#include "policy/training/trainer.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::write_file;

using testing_support::golden;

// A model in two files with an index, as models of more than 5 GB are published.
class ShardedWeights : public testing::Test {
 protected:
  ShardedWeights() {
    whole_ = decoder_weights::load(golden / "llama", config_);
    decoder_weights first;
    decoder_weights second;
    std::string map;
    for (const auto& [name, tensor] : whole_.all()) {
      auto& part = name < "model.layers.1" ? first : second;
      part.all()[name] = tensor;
      map += (map.empty() ? "\"" : ", \"") + name + "\": \"" +
             (&part == &first ? "model-1.safetensors" : "model-2.safetensors") + "\"";
    }
    first.save(folder_ / "model-1.safetensors");
    second.save(folder_ / "model-2.safetensors");
    write_file(folder_ / "model.safetensors.index.json", "{\"weight_map\": {" + map + "}}");
  }
  std::string refusal() const {
    return testing_support::refusal_of<policy_error>(
        [&] { decoder_weights::load(folder_.path(), config_); });
  }

  testing_support::temporary_folder folder_;
  decoder_config config_ = decoder_config::load(golden / "llama/config.json");
  decoder_weights whole_;
};

TEST_F(ShardedWeights, AreReadByTheirIndexAlone) {
  // Some folders hold the same weights once more, under other names.
  std::filesystem::copy_file(golden / "qwen2/model.safetensors",
                             folder_ / "consolidated.safetensors");
  const auto loaded = decoder_weights::load(folder_.path(), config_);
  ASSERT_EQ(loaded.all().size(), whole_.all().size());
  for (const auto& [name, tensor] : whole_.all())
    EXPECT_TRUE(at::equal(tensor, loaded.all().at(name))) << name;
}

TEST_F(ShardedWeights, AreReadWithoutAnIndex) {
  std::filesystem::remove(folder_ / "model.safetensors.index.json");
  EXPECT_EQ(refusal(), "");
}

TEST_F(ShardedWeights, AreRefusedWithTheNameOfWhatIsWrong) {
  const std::string bytes = testing_support::read_file(folder_ / "model-2.safetensors");
  write_file(folder_ / "model-2.safetensors", bytes.substr(0, bytes.size() - 100));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model-2.safetensors"), HasSubstr("truncated?")));
  std::filesystem::remove(folder_ / "model-2.safetensors");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model.safetensors.index.json"),
                               HasSubstr("names model-2.safetensors, which is not in the folder")));
  std::filesystem::remove(folder_ / "model.safetensors.index.json");
  EXPECT_THAT(refusal(), HasSubstr("is missing"));
  write_file(folder_ / "model.safetensors.index.json", "[]");
  EXPECT_THAT(refusal(), HasSubstr("cannot be read as an index of weights"));
  write_file(folder_ / "model.safetensors.index.json",
             R"({"weight_map": {"a": "../model-1.safetensors"}})");
  EXPECT_THAT(refusal(), HasSubstr("which is no file's name"));
}

TEST_F(ShardedWeights, WithATensorThatNothingUsesAreRefused) {
  std::filesystem::remove(folder_ / "model.safetensors.index.json");
  std::filesystem::remove(folder_ / "model-1.safetensors");
  std::filesystem::remove(folder_ / "model-2.safetensors");
  const auto saved_with = [&](const std::string& name, const at::Tensor& tensor) {
    decoder_weights more = whole_;
    more.all()[name] = tensor;
    more.save(folder_ / "model.safetensors");
    return refusal();
  };
  const at::Tensor some = at::ones({4});
  EXPECT_EQ(saved_with("model.layers.0.self_attn.rotary_emb.inv_freq", some), "");
  for (const char* name : {"model.layers.9.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.bias",
                           "score.weight", "model.final_norm.weight"})
    EXPECT_THAT(saved_with(name, some), AllOf(HasSubstr(name), HasSubstr("has no place"))) << name;
  config_.tied_head = true;
  const at::Tensor embedding = whole_.all().at("model.embed_tokens.weight");
  EXPECT_EQ(saved_with("lm_head.weight", embedding.clone()), "");
  EXPECT_THAT(saved_with("lm_head.weight", embedding + 1), HasSubstr("tie_word_embeddings"));
}
TEST_F(ShardedWeights, ThatAreNotFiniteCannotBeTrained) {
  std::filesystem::copy_file(golden / "tokenizer_lines.json", folder_ / "tokenizer.json");
  write_file(
      folder_ / "config.json",
      R"({"model_type": "llama", "vocab_size": 420, "hidden_size": 8, "num_hidden_layers": 1,)"
      R"( "num_attention_heads": 1, "intermediate_size": 8, "eos_token_id": 1})");
  auto weights = decoder_weights::random(decoder_config::load(folder_ / "config.json"), 1);
  weights.all()["model.norm.weight"][3] = std::nan("");
  EXPECT_EQ(weights.find_not_finite(), "model.norm.weight");
  weights.save(folder_ / "model.safetensors");
  try {
    const trainer t(folder_.path(), false, {});
    ADD_FAILURE() << "was accepted";
  } catch (const policy_error& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("the tensor model.norm.weight holds values that are not finite"));
  }
}

}  // namespace
}  // namespace hone
