// Tests that a policy which is trained on several devices learns what one device would teach it.
// The CPU serves as all of them, and where there are two GPUs, they are tested as well.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "cuda/gpus.hpp"
#include "policy/network/weight_shards.hpp"
#include "policy/training/trainer.hpp"
#include "tests/support/policy_folders.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing_support::temporary_folder;

using testing_support::tiny;

decoder_weights some_weights(double first) {
  decoder_weights w;
  w.all()["large"] = at::full({10, 7}, first);
  w.all()["middle"] = at::full({50}, first + 1);
  w.all()["small"] = at::full({3}, first + 2);
  return w;
}

TEST(WeightShards, GiveEachTensorOneOwnerOfALikeShare) {
  decoder_weights a = some_weights(1);
  decoder_weights b = some_weights(1);
  const weight_shards shards({&a, &b});
  EXPECT_EQ(shards.owner_of("large"), 0U);
  EXPECT_EQ(shards.owner_of("middle"), 1U);
  EXPECT_EQ(shards.owner_of("small"), 1U);
  EXPECT_TRUE(at::equal(a.all().at("middle").detach(), at::full({50}, 2.0)));
}

TEST(WeightShards, AddGradientsAtTheOwnerAndSpreadItsWeights) {
  decoder_weights a = some_weights(1);
  decoder_weights b = some_weights(1);
  weight_shards shards({&a, &b});
  for (decoder_weights* one : {&a, &b}) {
    for (auto& [name, tensor] : one->all()) (tensor * (one == &a ? 2.0 : 3.0)).sum().backward();
  }
  shards.collect_gradients();
  for (const char* name : {"large", "middle", "small"})
    EXPECT_TRUE(at::all(shards.owned(name).grad() == 5.0).item<bool>()) << name;
  shards.clear_gradients();
  EXPECT_TRUE(at::all(shards.owned("large").grad() == 0.0).item<bool>());

  shards.owned("large").detach().fill_(8);
  shards.owned("small").detach().fill_(9);
  shards.spread_weights();
  EXPECT_TRUE(at::all(b.all().at("large").detach() == 8.0).item<bool>());
  EXPECT_TRUE(at::all(a.all().at("small").detach() == 9.0).item<bool>());
}

TEST(WeightShards, OfOneReplicaHaveNoGradientsBeforeTheFirstPass) {
  decoder_weights a = some_weights(1);
  weight_shards shards({&a});
  EXPECT_FALSE(shards.owned("small").grad().defined());
  a.all().at("small").sum().backward();
  shards.clear_gradients();
  EXPECT_FALSE(shards.owned("small").grad().defined());
}

// The device of the weights that one trainer uses, and the devices that another uses in addition.
using device_names = std::tuple<std::string, std::vector<std::string>>;

class DataParallel : public testing::TestWithParam<device_names> {
 protected:
  void SetUp() override {
    const auto& [first, more] = GetParam();
    if (first == "cpu") return;
    try {
      if (find_gpus().size() >= 1 + more.size()) return;
    } catch (const std::runtime_error&) {
    }
    GTEST_SKIP() << "needs " << 1 + more.size() << " GPUs";
  }

  static trainer make(bool is_parallel, std::int64_t adapter_rank = 0) {
    trainer::options o;
    o.seed = 3;
    o.device = std::get<0>(GetParam());
    if (is_parallel) o.more_devices = std::get<1>(GetParam());
    o.adapters.rank = adapter_rank;
    return trainer(tiny, true, o);
  }
  static std::vector<sft_example> examples(const trainer& t) {
    std::vector<sft_example> all;
    for (const char* text :
         {"x = torch.relu(x)\n", "return x * 2.0\n", "y = x.sum(1)\n", "def forward(x):\n", "z\n"})
      all.push_back({t.codec().encode_prompt("# task\n"), t.codec().encode_answer(text)});
    return all;
  }
  static std::vector<rollout_group_example> groups(const trainer& t) {
    std::vector<rollout_group_example> all;
    for (const sft_example& example : examples(t)) {
      rollout_group_example& group = all.emplace_back();
      group.prompt = example.prompt;
      for (const double reward : {0.0, 1.0, 3.0}) {
        rollout_group_example::rollout& r = group.rollouts.emplace_back();
        r.tokens = example.completion;
        r.tokens[0] = static_cast<token_id>(reward) + 40;
        r.log_probabilities.assign(r.tokens.size(), -7.6F);
        r.reward = reward;
      }
    }
    return all;
  }
  // Makes updates of both kinds. Returns what they report.
  static std::vector<double> train(trainer& t) {
    std::vector<double> reported;
    for (int i = 0; i < 4; ++i) reported.push_back(t.sft_update(examples(t), 1e-3, 0.5));
    t.keep_reference();
    grpo_step_options o;
    o.minibatches = 2;
    o.base = ratio_base::trainer;
    o.objective.kl_coefficient = 0.1;
    for (int i = 0; i < 2; ++i) {
      for (const auto& [key, value] : t.grpo_update(groups(t), 1e-3, o)) reported.push_back(value);
    }
    reported.push_back(static_cast<double>(t.tokens_trained_on()));
    return reported;
  }
  static void expect_alike(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 2e-3 * std::max(1.0, std::abs(b[i]))) << i;
  }

  temporary_folder folder_;
};

TEST_P(DataParallel, EqualsOneDeviceUpToRounding) {
  trainer alone = make(false);
  trainer together = make(true);
  expect_alike(train(together), train(alone));
  const decoder_weights expected = alone.copy_weights();
  const decoder_weights found = together.copy_weights();
  for (const auto& [name, tensor] : found.all())
    EXPECT_TRUE(at::allclose(tensor, expected.all().at(name), 1e-3, 2e-3)) << name;
}

TEST_P(DataParallel, RepeatsExactly) {
  trainer first = make(true);
  trainer second = make(true);
  EXPECT_EQ(train(first), train(second));
}

TEST_P(DataParallel, ContinuesACheckpointOfAnyNumberOfDevices) {
  for (const bool is_parallel : {false, true}) {
    trainer writes = make(is_parallel);
    train(writes);
    const auto checkpoint = folder_ / (is_parallel ? "together" : "alone");
    writes.take_checkpoint({})(checkpoint);
    trainer reads = make(!is_parallel);
    reads.load(checkpoint);
    reads.load_reference(checkpoint);
    writes.keep_reference();
    EXPECT_EQ(reads.updates(), writes.updates());
    std::vector<double> expected = train(writes);
    std::vector<double> found = train(reads);
    expected.pop_back();  // tokens, which count from the construction
    found.pop_back();
    expect_alike(found, expected);
  }
}

TEST_P(DataParallel, TrainsAdaptersAlone) {
  trainer alone = make(false, 4);
  trainer together = make(true, 4);
  expect_alike(train(together), train(alone));
}

INSTANTIATE_TEST_SUITE_P(Devices, DataParallel,
                         testing::Values(device_names{"cpu", {"cpu"}},
                                         device_names{"cpu", {"cpu", "cpu", "cpu"}},
                                         device_names{"cuda:0", {"cuda:1"}}),
                         [](const auto& of) {
                           return std::get<0>(of.param).substr(0, 3) +
                                  std::to_string(1 + std::get<1>(of.param).size());
                         });

}  // namespace
}  // namespace hone
