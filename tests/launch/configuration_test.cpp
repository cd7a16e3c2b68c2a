#include "launch/configuration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launch/run/run_inputs.hpp"
#include "tasks/format_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing_support::temporary_folder;
using testing_support::write_file;

class ConfigurationFile : public testing::Test {
 protected:
  configuration load(const std::string& text, const std::vector<std::string>& overrides = {}) {
    write_file(folder_ / "run.toml", text);
    return load_configuration(folder_ / "run.toml", overrides);
  }
  std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
    try {
      load(text, overrides);
    } catch (const format_error& e) {
      return e.what();
    }
    return "";
  }
  temporary_folder folder_;
  const std::string a_model_ =
      "[policy]\nkind = \"model\"\nfolder = \"f\"\n[prompt]\ntemplate = \"t\"\n[sft]\nupdates = "
      "0\n";
  const std::string least_ = "[policy]\nkind = \"scripted\"\n";
};

TEST_F(ConfigurationFile, MissingKeysHaveDefaults) {
  const configuration c = load(least_);
  EXPECT_EQ(c.node.devices, std::vector<std::string>{"cpu"});
  EXPECT_EQ(c.pool.storage.exemplars.method, exemplar_method::buckets);
  EXPECT_EQ(c.node.port, 0);
}

TEST_F(ConfigurationFile, AnUnknownKeyIsRefusedWithFileLineAndKey) {
  const std::string message = refusal(least_ + "[pool]\nmax_lag = 2\nmax_lagg = 3\n");
  EXPECT_THAT(message, HasSubstr("run.toml:5"));
  EXPECT_THAT(message, HasSubstr("max_lagg"));
}

TEST_F(ConfigurationFile, AnUnknownSectionIsRefused) {
  EXPECT_THAT(refusal(least_ + "[benchmarker]\nn = 1\n"), HasSubstr("benchmarker"));
}

TEST_F(ConfigurationFile, AWrongTypeIsRefusedWithTheExpectedOne) {
  const std::string message = refusal(least_ + "[contrastive]\nsteps = \"ten\"\n");
  EXPECT_THAT(message, HasSubstr("run.toml:4"));
  EXPECT_THAT(message, HasSubstr("steps"));
  EXPECT_THAT(message, HasSubstr("integer"));
}

TEST_F(ConfigurationFile, GeneratorsRunOnDevicesOfThePolicysKind) {
  const std::string model = a_model_ + "[self_supervised]\nsteps = 0\n[contrastive]\nsteps = 0\n";
  const auto with = [&](const std::string& policy, const std::string& generators) {
    return refusal(model, {"policy.device=\"" + policy + "\"", "generation.devices=" + generators});
  };
  EXPECT_EQ(with("cuda:0", R"(["cuda:1", "cuda:2"])"), "");
  EXPECT_THAT(with("cuda:0", R"(["cuda:1", "cpu"])"), HasSubstr("generation.devices"));
  EXPECT_THAT(with("cpu", R"(["cuda:0"])"), HasSubstr("names 'cuda:0', and policy.device is cpu"));
}

TEST_F(ConfigurationFile, AdaptersNeedWeightsThatTheyAdapt) {
  EXPECT_THAT(refusal(least_ + "random_weights = true\nadapter_rank = 4\n"),
              HasSubstr("policy.adapter_rank"));
}

TEST_F(ConfigurationFile, EachGeneratorHasADevice) {
  configuration c = load(least_, {"generation.replicas=2"});
  EXPECT_EQ(devices_of_generators(c), (std::vector<std::string>{"cpu", "cpu"}));
  c.generation.devices = {"cuda:1", "cuda:2"};
  EXPECT_EQ(devices_of_generators(c),
            (std::vector<std::string>{"cuda:1", "cuda:2", "cuda:1", "cuda:2"}));
}

TEST_F(ConfigurationFile, ANumberOutOfRangeIsRefusedWithTheRange) {
  const std::string message = refusal(least_ + "[generation]\ntop_p = 1.5\n");
  EXPECT_THAT(message, HasSubstr("top_p"));
  EXPECT_THAT(message, HasSubstr("at most 1"));
}

TEST_F(ConfigurationFile, AStepWithMoreGroupsThanThePoolAllowsIsRefused) {
  const std::string message =
      refusal(least_ +
              "[pool]\nmax_groups = 8\n[self_supervised]\ngroups = 8\n[contrastive]\ngroups = 9\n");
  EXPECT_THAT(message, HasSubstr("contrastive.groups"));
  EXPECT_THAT(message, HasSubstr("pool.max_groups"));
  EXPECT_THAT(
      refusal(least_ +
              "[pool]\nmax_groups = 8\n[self_supervised]\ngroups = 9\n[contrastive]\ngroups = 8\n"),
      HasSubstr("self_supervised.groups"));
}

TEST_F(ConfigurationFile, TheListenerOfMetricsNeedsAHostAndAPort) {
  EXPECT_EQ(refusal(least_ + "[node]\nmetrics = \"0.0.0.0:9464\"\n"), "");
  for (const char* wrong : {"9464", "localhost", "localhost:99999"})
    EXPECT_THAT(refusal(least_, {std::string("node.metrics=") + wrong}),
                testing::AllOf(HasSubstr("node.metrics"), HasSubstr(wrong)));
}

TEST_F(ConfigurationFile, AStageWithoutALearningRateIsRefused) {
  const auto with = [&](const std::string& first, const std::string& second) {
    return refusal(a_model_ + "[self_supervised]\n" + first + "[contrastive]\n" + second);
  };
  const std::string rate = "rate = 1e-4\n";
  EXPECT_EQ(with(rate, rate), "");
  EXPECT_EQ(with("steps = 0\n", rate), "");
  EXPECT_THAT(with("", rate), HasSubstr("self_supervised.rate"));
  EXPECT_THAT(with(rate, ""), HasSubstr("contrastive.rate"));
}

TEST_F(ConfigurationFile, ARewardOfBaselinesThatAreNotTimedIsRefused) {
  const std::string none = least_ + "[node]\nbaselines = false\n[reward]\n";
  EXPECT_THAT(refusal(none + "shape = \"tiers\"\n"), HasSubstr("node.baselines"));
  EXPECT_THAT(refusal(none + "baseline = \"best\"\n"), HasSubstr("node.baselines"));
}

TEST_F(ConfigurationFile, AnUnknownChoiceIsRefusedWithTheChoices) {
  EXPECT_THAT(refusal(least_ + "[pool]\nexemplars = \"best\"\n"),
              HasSubstr("buckets, islands, random or none"));
}

TEST_F(ConfigurationFile, AnUnknownDeviceIsRefused) {
  EXPECT_THAT(refusal(least_ + "[node]\ndevices = [\"tpu\"]\n"), HasSubstr("tpu"));
}

TEST_F(ConfigurationFile, DevicesNamesAllGpusOrOneByItsNumber) {
  EXPECT_EQ(load(least_ + "[node]\ndevices = [\"cuda\", \"cuda:1\"]\n").node.devices.size(), 2U);
  EXPECT_THAT(refusal(least_ + "[node]\ndevices = [\"cuda1\"]\n"),
              HasSubstr("expected cpu, cuda, cuda:NUMBER or simulated:NAME"));
}

TEST_F(ConfigurationFile, AMissingFileIsNamed) {
  try {
    load_configuration(folder_ / "none.toml", {});
    FAIL() << "was read";
  } catch (const format_error& e) {
    EXPECT_THAT(std::string(e.what()), HasSubstr("none.toml"));
  }
}

TEST_F(ConfigurationFile, TextThatIsNotTomlIsRefusedWithItsLine) {
  EXPECT_THAT(refusal("seed = 1\n[policy\n"), HasSubstr("run.toml:2"));
}

TEST_F(ConfigurationFile, OverridesReplaceTheValuesOfTheFile) {
  const configuration c = load(least_ + "[pool]\nmax_lag = 2\n",
                               {"pool.max_lag=5", "pool.exemplars=none",
                                "tasks.names=[\"softmax\"]", "directory=here", "sft.rate=1e-3"});
  EXPECT_EQ(c.pool.storage.max_lag, 5U);
  for (const char* steps : {"99999999999999999999", "4294967296", "-1", "x", ""})
    EXPECT_THAT(refusal(least_, {std::string("pool.max_lag_of=[\"h100=") + steps + "\"]"}),
                HasSubstr("a number of steps"))
        << steps;
  EXPECT_EQ(c.pool.storage.exemplars.method, exemplar_method::none);
  EXPECT_EQ(c.tasks.names, std::vector<std::string>{"softmax"});
  EXPECT_EQ(c.directory, "here");
  EXPECT_DOUBLE_EQ(c.learner.plan.sft.rate.peak, 1e-3);
}

TEST_F(ConfigurationFile, AnUnknownOverrideIsRefused) {
  EXPECT_THAT(refusal(least_, {"pool.maxlag=5"}),
              testing::StartsWith("--set pool.maxlag=5: unknown key (did you mean max_lag?)"));
  EXPECT_THAT(refusal(least_, {"pool"}), HasSubstr("section.key=value"));
}

TEST_F(ConfigurationFile, OldNamesAreReadWithANotice) {
  const auto said = [&](const std::string& text, const std::vector<std::string>& overrides) {
    testing::internal::CaptureStderr();
    const configuration c = load(text, overrides);
    EXPECT_DOUBLE_EQ(c.optimizer.weight_decay, 0.25);
    EXPECT_DOUBLE_EQ(c.optimizer.beta1, 0.5);
    EXPECT_EQ(c.learner.plan.contrastive.max_groups, 15);
    return testing::internal::GetCapturedStderr();
  };
  const std::string old = "[optimiser]\nweight_decay = 0.25\n";
  const std::string now = "[optimizer]\nweight_decay = 0.25\n";
  const std::vector<std::string> overrides = {"optimiser.beta1=0.5", "contrastive.most_groups=15"};
  EXPECT_THAT(said(least_ + old, overrides), HasSubstr("optimiser is now optimizer"));
  EXPECT_THAT(said(least_ + now + "beta1 = 0.5\n[contrastive]\nmost_groups = 15\n", {}),
              HasSubstr("contrastive.most_groups is now contrastive.max_groups"));
  EXPECT_EQ(said(least_ + now + "beta1 = 0.5\n[contrastive]\nmax_groups = 15\n", {}), "");
  const std::string another = "pool.acknowledgements=file";  // codespell:ignore
  EXPECT_EQ(load(least_, {another}).pool.acknowledgments, "file");
  EXPECT_THAT(refusal(least_ + old + now), HasSubstr("which is there as well"));
}

TEST_F(ConfigurationFile, AWrongOverrideIsBlamedAndNotTheFile) {
  EXPECT_THAT(refusal(least_ + "[generation]\ntop_p = 0.5\n", {"generation.top_p=1.5"}),
              testing::AllOf(testing::StartsWith("--set generation.top_p=1.5: "),
                             HasSubstr("at most 1"), testing::Not(HasSubstr("run.toml"))));
  EXPECT_THAT(refusal(least_ + "[generation]\ntop_p = 1.5\n", {"pool.max_lag=1"}),
              HasSubstr("run.toml:4"));
  const std::string too_large = refusal(least_, {"seed=99999999999999999999"});
  EXPECT_THAT(too_large, testing::StartsWith("--set seed=99999999999999999999: "));
  EXPECT_THAT(too_large, testing::Not(HasSubstr("a string")));
  EXPECT_THAT(refusal(least_, {"directory="}), HasSubstr("is empty"));
}

TEST_F(ConfigurationFile, EveryWrongKeyIsReported) {
  const std::string wrong =
      refusal(least_ + "[pool]\nmaxlag = 5\nmax_lag = -1\n[generation]\ntop_p = \"x\"\n[pol]\n");
  for (const char* one :
       {"pool.maxlag: unknown key", "pool.max_lag: is -1", "generation.top_p:", "pol: unknown key"})
    EXPECT_THAT(wrong, HasSubstr(one));
  EXPECT_EQ(std::count(wrong.begin(), wrong.end(), '\n'), 3);
  const std::string contradicting =
      refusal(least_, {"policy.kind=other", "prompt.format=other", "node.devices=[\"other\"]"});
  for (const char* one : {"--set policy.kind=other: ", "--set prompt.format=other: ",
                          "--set node.devices=[\"other\"]: "})
    EXPECT_THAT(contradicting, HasSubstr(one));
}

TEST_F(ConfigurationFile, TheLastOverrideOfAKeyIsBlamed) {
  EXPECT_THAT(refusal(least_, {"pool.max_lag=1", "pool.max_lag=x"}),
              testing::StartsWith("--set pool.max_lag=x: "));
}

TEST_F(ConfigurationFile, PathsOfOverridesAreRelativeToTheCurrentFolder) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(load(least_, {"tasks.folder=\"mine\""}).tasks.folder, here + "/mine");
  EXPECT_EQ(load(least_, {"tasks={folder=\"mine\"}"}).tasks.folder, here + "/mine");
  EXPECT_EQ(load(least_ + "[tasks]\nfolder = \"mine\"\n", {"tasks.names=[\"a\"]"}).tasks.folder,
            (folder_ / "mine").string());
}

TEST_F(ConfigurationFile, ThePrintedConfigurationReadsBackToTheSame) {
  const configuration c = load(
      least_ +
      "[simulated.slow]\nmeasure_us = 70\n[pool]\nexemplars = \"islands\"\n[sft]\nrate = 0.0061\n");
  const std::string printed = print_configuration(c, false);
  write_file(folder_ / "printed.toml", printed);
  EXPECT_EQ(print_configuration(load_configuration(folder_ / "printed.toml", {}), false), printed);
  EXPECT_THAT(printed, HasSubstr("measure_us = 70"));
}

TEST_F(ConfigurationFile, PathsArePrintedAsAbsoluteSoThatTheCopyInTheRunFolderWorks) {
  const configuration c = load(least_ + "[tasks]\nfolder = \"tasks\"\n");
  write_file(folder_ / "elsewhere" / "config.toml", print_configuration(c, false));
  const configuration copy = load_configuration(folder_ / "elsewhere" / "config.toml", {});
  EXPECT_EQ(copy.tasks.folder, (folder_ / "tasks").string());
}

TEST_F(ConfigurationFile, CommentsDoNotChangeThePrintedConfiguration) {
  const configuration c = load(least_ + "[pool]\njob_deadline_s = 2.5\n[simulated.slow]\n");
  const std::string commented = print_configuration(c, true);
  EXPECT_THAT(commented, HasSubstr("\n# Seconds after which a job without a result is sent again "
                                   "(storage/evaluation_ledger.cpp).\n"
                                   "job_deadline_s = 2.5\n"));
  write_file(folder_ / "commented.toml", commented);
  EXPECT_EQ(print_configuration(load_configuration(folder_ / "commented.toml", {}), false),
            print_configuration(c, false));
}

TEST(ConfigurationReference, IsUpToDate) {
  EXPECT_EQ(testing_support::read_file(std::string(HONE_SOURCE_DIR) + "/doc/configuration.md"),
            configuration_reference())
      << "generate it again: hone config --markdown > doc/configuration.md";
}

TEST(ShippedConfigurations, AreValid) {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(HONE_SOURCE_DIR) + "/configs")) {
    if (entry.path().extension() != ".toml") continue;
    EXPECT_NO_THROW(load_configuration(entry.path(), {})) << entry.path();
  }
}

}  // namespace
}  // namespace hone
