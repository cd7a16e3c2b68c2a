#include "policy/training/optimizer.hpp"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "policy/network/transformer.hpp"
#include "policy/text/tokenizer.hpp"
#include "policy/training/checkpoint.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;

using testing_support::golden;

decoder_weights two_weights() {
  decoder_weights w;
  w.all()["matrix"] = at::tensor(std::vector<float>{1.0F, -2.0F}).view({1, 2});
  w.all()["norm"] = at::tensor(std::vector<float>{0.5F});
  return w;
}

void give_gradients(decoder_weights& w, double a, double b, double c) {
  w.all()["matrix"].mutable_grad() =
      at::tensor(std::vector<float>{static_cast<float>(a), static_cast<float>(b)}).view({1, 2});
  w.all()["norm"].mutable_grad() = at::tensor(std::vector<float>{static_cast<float>(c)});
}

TEST(Optimizer, MatchesAdamWComputedByHand) {
  auto weights = two_weights();
  optimizer_options options;
  options.weight_decay = 0.1;
  options.max_gradient_norm = 100;
  optimizer adam({&weights}, options);
  double w = 1.0;
  double m = 0;
  double v = 0;
  for (int t = 1; t <= 3; ++t) {
    const double g = 0.3 * t;
    give_gradients(weights, g, 0.1, 0.2);
    adam.step(0.01);
    m = 0.9 * m + 0.1 * g;
    v = 0.95 * v + 0.05 * g * g;
    w = w * (1 - 0.01 * 0.1) -
        0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.95, t))) + 1e-8);
    EXPECT_NEAR(weights.all()["matrix"][0][0].item<double>(), w, 1e-6);
  }
}

TEST(Optimizer, NormsAndBiasesDoNotDecay) {
  auto weights = two_weights();
  optimizer_options options;
  options.weight_decay = 0.5;
  optimizer adam({&weights}, options);
  give_gradients(weights, 0, 0, 0);
  adam.step(0.1);
  EXPECT_NEAR(weights.all()["norm"][0].item<double>(), 0.5, 1e-7);
  EXPECT_NEAR(weights.all()["matrix"][0][0].item<double>(), 0.95, 1e-6);
}

TEST(Optimizer, ReturnsTheGlobalNormBeforeClipping) {
  auto weights = two_weights();
  optimizer adam({&weights}, {});
  give_gradients(weights, 3, 0, 4);
  EXPECT_NEAR(adam.step(0), 5.0, 1e-6);
}

TEST(Optimizer, ANormOfZeroClipsNothing) {
  std::vector<double> after;
  for (const double most : {0.0, 1e9}) {
    auto weights = two_weights();
    optimizer_options options;
    options.max_gradient_norm = most;
    optimizer adam({&weights}, options);
    give_gradients(weights, 3, 0, 4);
    adam.step(0.1);
    after.push_back(weights.all()["matrix"][0][0].item<double>());
  }
  EXPECT_EQ(after[0], after[1]);
  EXPECT_NE(after[0], two_weights().all()["matrix"][0][0].item<double>());
}

TEST(Optimizer, ANonFiniteGradientChangesNothing) {
  auto weights = two_weights();
  optimizer adam({&weights}, {});
  give_gradients(weights, std::nan(""), 0, 0);
  EXPECT_FALSE(std::isfinite(adam.step(0.1)));
  EXPECT_EQ(weights.all()["matrix"][0][0].item<double>(), 1.0);
  EXPECT_EQ(adam.steps(), 0);
}

// Returns what 600 updates of equal sign make of a weight of 1.
double after_updates(at::ScalarType type, double rate) {
  decoder_weights weights;
  weights.all()["norm"] = at::ones({1}, type);
  optimizer adam({&weights}, {});
  for (int i = 0; i < 600; ++i) {
    weights.all()["norm"].mutable_grad() = at::full({1}, -0.5, type);
    adam.step(rate);
  }
  return weights.all()["norm"].item<double>();
}

TEST(Optimizer, AddsUpUpdatesThatBfloat16AloneRoundsAway) {
  for (const double rate : {1e-4, 1e-5}) {
    const double exact = after_updates(at::kFloat, rate);
    ASSERT_NEAR(exact, 1 + 600 * rate, 1e-5);
    EXPECT_NEAR(after_updates(at::kBFloat16, rate), exact, 0x1p-8) << "half a step of bfloat16";
    EXPECT_GT(after_updates(at::kBFloat16, rate), 1.0);
    at::Tensor alone = at::ones({1}, at::kBFloat16);
    for (int i = 0; i < 600; ++i) alone.add_(rate);
    EXPECT_EQ(alone.item<double>(), 1.0) << "without a master copy nothing moves";
  }
}

TEST(RateSchedule, WarmsUpLinearlyAndDecaysByACosine) {
  const rate_schedule schedule{1.0, 10, 110, 0.05};
  EXPECT_NEAR(schedule.at(0), 0.1, 1e-12);
  EXPECT_NEAR(schedule.at(9), 1.0, 1e-12);
  EXPECT_NEAR(schedule.at(60), 0.05 + 0.95 * 0.5, 1e-12);
  EXPECT_NEAR(schedule.at(110), 0.05, 1e-12);
  EXPECT_NEAR(schedule.at(1000), 0.05, 1e-12);
  EXPECT_NEAR(schedule.at(20, 0.5), schedule.at(60), 1e-12) << "half of the time has passed";
  EXPECT_NEAR(schedule.at(60, 0.1), schedule.at(60), 1e-12);
  EXPECT_NEAR(schedule.at(20, 1.5), 0.05, 1e-12);
  EXPECT_NEAR(schedule.at(0, 0.5), 0.1, 1e-12) << "the warm-up counts updates";
  const rate_schedule constant{1e-3, 0, 0, 1.0};
  EXPECT_EQ(constant.at(0), 1e-3);
  EXPECT_EQ(constant.at(500), 1e-3);
}

class ResumedOptimizer : public testing::TestWithParam<const char*> {};

TEST_P(ResumedOptimizer, EqualsUninterruptedTraining) {
  const temporary_folder folder;
  std::filesystem::create_directories(folder / "policy");
  std::filesystem::copy_file(golden / "llama/config.json", folder / "policy" / "config.json");
  std::filesystem::copy_file(golden / "tokenizer_lines.json", folder / "policy" / "tokenizer.json");
  auto config = decoder_config::load(folder / "policy" / "config.json");
  config.dtype = GetParam();
  const decoder network(config);
  const at::Tensor tokens = at::arange(20, at::kLong).view({2, 10});
  const auto train = [&](decoder_weights& weights, optimizer& adam, int steps) {
    for (int i = 0; i < steps; ++i) {
      network.logits(weights, tokens).square().mean().backward();
      adam.step(1e-2);
    }
  };
  auto straight = decoder_weights::random(config, 1);
  optimizer straight_adam({&straight}, {});
  train(straight, straight_adam, 4);

  auto first = decoder_weights::random(config, 1);
  optimizer first_adam({&first}, {});
  train(first, first_adam, 2);
  const optimizer_moments moments = first_adam.moments();
  save_checkpoint(folder / "checkpoint", folder / "policy", first, &moments, {{{"seen", 2}}});
  EXPECT_FALSE(find_checkpoint_damage(folder / "checkpoint"));
  auto second = decoder_weights::load(folder / "checkpoint", config);
  optimizer second_adam({&second}, {});
  second_adam.load(folder / "checkpoint" / "optimizer.safetensors");
  EXPECT_EQ(load_training_progress(folder / "checkpoint").numbers.at("seen"), 2);
  train(second, second_adam, 2);
  for (const auto& [name, tensor] : straight.all())
    EXPECT_TRUE(at::equal(tensor, second.all().at(name))) << name;
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, ResumedOptimizer, testing::Values("float32", "bfloat16"),
                         [](const auto& dtype) { return std::string(dtype.param); });

// Returns the loss before the last of 100 updates of a policy that is trained in this dtype.
double loss_after_training(const char* dtype, double rate) {
  auto config = decoder_config::load(testing_support::tiny / "config.json");
  config.dtype = dtype;
  auto weights = decoder_weights::random(config, 1);
  optimizer adam({&weights}, {});
  const decoder network(config);
  const at::Tensor tokens = at::arange(100, 140, at::kLong).view({2, 20});
  double loss = 0;
  for (int i = 0; i < 100; ++i) {
    const at::Tensor logits = network.logits(weights, tokens.narrow(1, 0, 19));
    const at::Tensor wrong = at::cross_entropy_loss(logits.reshape({-1, config.vocabulary}),
                                                    tokens.narrow(1, 1, 19).reshape({-1}));
    wrong.backward();
    adam.step(rate);
    loss = wrong.item<double>();
  }
  return loss;
}

TEST(Optimizer, TrainsBfloat16AsFarAsFloat32) {
  for (const double rate : {1e-5, 1e-6}) {
    const double exact = loss_after_training("float32", rate);
    EXPECT_NEAR(loss_after_training("bfloat16", rate), exact, 0.01 * exact) << rate;
  }
}

TEST(Checkpoint, EveryDamagedFileIsFound) {
  const temporary_folder folder;
  std::filesystem::create_directories(folder / "policy");
  std::filesystem::copy_file(golden / "llama/config.json", folder / "policy" / "config.json");
  std::filesystem::copy_file(golden / "tokenizer_lines.json", folder / "policy" / "tokenizer.json");
  const auto config = decoder_config::load(folder / "policy" / "config.json");
  auto weights = decoder_weights::random(config, 1);
  optimizer adam({&weights}, {});
  const optimizer_moments moments = adam.moments();
  save_checkpoint(folder / "good", folder / "policy", weights, &moments, {});
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "config.json",
                           "tokenizer.json", "checkpoint.json"}) {
    const std::string bytes = testing_support::read_file(folder / "good" / name);
    std::filesystem::remove_all(folder / "bad");
    std::filesystem::copy(folder / "good", folder / "bad");
    testing_support::write_file(folder / "bad" / name, bytes.substr(0, bytes.size() / 2));
    EXPECT_THAT(find_checkpoint_damage(folder / "bad").value_or("intact"), testing::HasSubstr(name))
        << "truncated";
    std::string flipped = bytes;
    flipped[bytes.size() / 3] ^= 4;
    testing_support::write_file(folder / "bad" / name, flipped);
    EXPECT_TRUE(find_checkpoint_damage(folder / "bad")) << "a flipped bit in " << name;
    std::filesystem::remove(folder / "bad" / name);
    EXPECT_TRUE(find_checkpoint_damage(folder / "bad")) << "missing " << name;
  }
}

TEST(Checkpoint, AFailedSaveLeavesNoFiles) {
  const temporary_folder folder;
  auto weights = two_weights();
  EXPECT_ANY_THROW(
      save_checkpoint(folder / "checkpoint", folder / "no-policy", weights, nullptr, {}));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace hone
