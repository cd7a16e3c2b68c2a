#include "policy/network/adapters.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "policy/files.hpp"
#include "policy/network/transformer.hpp"
#include "policy/training/trainer.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing_support::temporary_folder;
using testing_support::tiny;

// A folder of the tiny policy with weights.
class Adapters : public testing::Test {
 protected:
  void SetUp() override {
    config_ = decoder_config::load(tiny / "config.json");
    base_ = decoder_weights::random(config_, 1);
    folder_ = temporary_.path() / "base";
    fs::create_directory(folder_);
    for (const char* file : {"config.json", "tokenizer.json"})
      fs::copy_file(tiny / file, folder_ / file);
    base_.save(folder_ / "model.safetensors");
    options_.adapters.rank = 4;
    options_.adapters.alpha = 8;
  }
  static bool are_equal(const decoder_weights& a, const decoder_weights& b) {
    if (a.all().size() != b.all().size()) return false;
    for (const auto& [name, tensor] : a.all()) {
      if (!at::equal(tensor, b.all().at(name))) return false;
    }
    return true;
  }
  static std::vector<sft_example> examples() {
    std::vector<sft_example> all;
    for (token_id i = 0; i < 4; ++i) all.push_back({{1, 2, 3 + i}, {7, 8 + i, 9, 10, 1}});
    return all;
  }

  temporary_folder temporary_;
  fs::path folder_;
  decoder_config config_;
  decoder_weights base_;
  trainer::options options_;
};

TEST_F(Adapters, ChangeNothingAtFirst) {
  trainer learner(folder_, false, options_);
  EXPECT_TRUE(are_equal(learner.copy_weights(), base_));
}

TEST_F(Adapters, OfACopyStayAsTheyWere) {
  for (const std::int64_t rank : {0, 4}) {
    options_.adapters.rank = rank;
    trainer learner(folder_, false, options_);
    const decoder_weights copy = learner.copy_weights();
    learner.sft_update(examples(), 1e-2, 0);
    learner.sft_update(examples(), 1e-2, 0);
    EXPECT_TRUE(are_equal(copy, base_)) << "rank " << rank;
    EXPECT_FALSE(are_equal(learner.copy_weights(), base_)) << "rank " << rank;
  }
}

TEST_F(Adapters, LearnWhileTheOtherWeightsStay) {
  trainer learner(folder_, false, options_);
  const auto batch = examples();
  const double before = learner.sft_update(batch, 1e-2, 0);
  double after = before;
  for (int i = 0; i < 60; ++i) after = learner.sft_update(batch, 1e-2, 0);
  EXPECT_LT(after, 0.8 * before);
  const decoder_weights merged = learner.copy_weights();
  for (const auto& [name, tensor] : merged.all()) {
    const bool has_adapters = name.find("_proj.weight") != std::string::npos;
    EXPECT_NE(at::equal(tensor, base_.all().at(name)), has_adapters) << name;
  }
}

// W + scale B A gives the same results as W and the two products apart, for any A and B.
TEST_F(Adapters, AreTheSumOfBothProducts) {
  decoder_weights with = base_;
  const decoder_weights adapters = make_adapters(base_, options_.adapters, 5);
  for (const auto& [name, tensor] : adapters.all()) with.all()[name] = at::randn_like(tensor);
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  const at::Tensor x = at::randn({5, config_.width});
  const at::Tensor a = with.all().at("model.layers.0.mlp.up_proj.lora_A.weight");
  const at::Tensor b = with.all().at("model.layers.0.mlp.up_proj.lora_B.weight");
  const at::Tensor expected =
      at::linear(x, base_.all().at(name)) + at::linear(at::linear(x, a), b) * 2.0;
  EXPECT_TRUE(at::allclose(at::linear(x, adapted_matrix(with, name, 2.0)), expected, 1e-4, 1e-4));
  const at::Tensor tokens = at::randint(config_.vocabulary, {2, 9}, at::kLong);
  EXPECT_TRUE(at::allclose(decoder(config_, 2.0).logits(with, tokens),
                           decoder(config_).logits(merge_adapters(with, 2.0), tokens), 1e-4, 1e-5));
}

TEST_F(Adapters, ComeBackFromACheckpointWithTheirMoments) {
  trainer learner(folder_, false, options_);
  const auto batch = examples();
  for (int i = 0; i < 3; ++i) learner.sft_update(batch, 1e-2, 0);
  const fs::path checkpoint = temporary_.path() / "checkpoint";
  learner.take_checkpoint({})(checkpoint);
  EXPECT_FALSE(find_checkpoint_damage(checkpoint));
  EXPECT_FALSE(fs::exists(checkpoint / "model.safetensors"));
  // A generator reads the merged weights.
  EXPECT_TRUE(are_equal(decoder_weights::load(checkpoint, config_), learner.copy_weights()));
  trainer other(folder_, false, options_);
  other.load(checkpoint);
  EXPECT_EQ(other.sft_update(batch, 1e-2, 0), learner.sft_update(batch, 1e-2, 0));
  EXPECT_TRUE(are_equal(other.copy_weights(), learner.copy_weights()));
  options_.adapters.alpha = 16;
  trainer of_another_scale(folder_, false, options_);
  EXPECT_THROW(of_another_scale.load(checkpoint), policy_error);
}

TEST_F(Adapters, ThatDoNotFitAreRefusedInASentence) {
  trainer::options none = options_;
  none.adapters.modules = {"c_attn"};
  EXPECT_THROW(trainer(folder_, false, none), policy_error);
  const decoder_weights adapters = make_adapters(base_, options_.adapters, 5);
  const auto expect_refused = [&](const char* what, const decoder_weights& given) {
    const fs::path folder = temporary_.path() / what;
    fs::create_directory(folder);
    save_adapters(folder, given, options_.adapters, folder_);
    EXPECT_THROW(decoder_weights::load(folder, config_), policy_error) << what;
  };
  decoder_weights of_another_policy;
  for (const auto& [name, tensor] : adapters.all())
    of_another_policy.all()[name] = tensor.narrow(1, 0, 2).contiguous();
  expect_refused("shapes", of_another_policy);
  decoder_weights half = adapters;
  half.all().erase("model.layers.0.mlp.up_proj.lora_B.weight");
  expect_refused("half", half);
}

TEST_F(Adapters, OfKindsThatHoneDoesNotComputeAreRefused) {
  const fs::path folder = temporary_.path() / "peft";
  fs::create_directory(folder);
  save_adapters(folder, make_adapters(base_, options_.adapters, 5), options_.adapters, folder_);
  EXPECT_NO_THROW(decoder_weights::load(folder, config_));
  nlohmann::json config;
  std::ifstream(folder / "adapter_config.json") >> config;
  const std::vector<std::pair<std::string, nlohmann::json>> kinds = {
      {"use_rslora", true},
      {"use_dora", true},
      {"alpha_pattern", {{"q_proj", 3}}},
      {"modules_to_save", {"lm_head"}},
      {"bias", "all"},
      {"init_lora_weights", "pissa"},
      {"exclude_modules", {"up_proj"}},
      {"layers_to_transform", {7}},
      {"target_modules", {"q_proj"}},
      {"layer_replication", {{0, 1}}},
      {"peft_type", "LOHA"},
      {"a_new_key", 3},
      {"r", 2},
      {"r", 0},
      {"r", 4.5},
      {"lora_alpha", nullptr},
      {"base_model_name_or_path", "."}};
  for (const auto& [key, value] : kinds) {
    nlohmann::json with = config;
    with[key] = value;
    std::ofstream(folder / "adapter_config.json") << with;
    EXPECT_THROW(decoder_weights::load(folder, config_), policy_error) << key << " " << value;
  }
  config["use_rslora"] = false;
  config["bias"] = "none";
  config["rank_pattern"] = nlohmann::json::object();
  config["init_lora_weights"] = "gaussian";
  config["layers_to_transform"] = nullptr;
  std::ofstream(folder / "adapter_config.json") << config;
  EXPECT_NO_THROW(decoder_weights::load(folder, config_));
}

}  // namespace
}  // namespace hone
