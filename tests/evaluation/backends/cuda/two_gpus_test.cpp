// Tests that two GPUs of a machine are two devices: each has its own judge, processes and launch
// core, and both judge at the same time.

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "tests/support/exploit_documents.hpp"
#include "tests/support/gpu_bench.hpp"
#include "tests/support/source_folder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing_support::describe;
using testing_support::read_file;

constexpr std::size_t rounds = 5;

struct judged_by {
  std::string device;
  std::vector<double> scores;
  std::string not_ok;
};

TEST(TwoGpus, JudgeAtTheSameTimeAndAgree) {
  HONE_NEEDS_A_GPU();
  const auto gpus = find_gpus();
  if (gpus.size() < 2) GTEST_SKIP() << "there is one GPU";
  const fs::path configs = testing_support::source_folder() / "configs/gpu";
  const task softmax = load_task(configs / "tasks/softmax.toml");
  const std::string text = read_file(configs / "corpus/softmax/row_registers.md");
  std::array<reserved_core, 2> cores{};
  for (reserved_core& core : cores) core = reserve_launch_core();  // before any thread starts
  std::barrier both_are_open(2);
  const auto judge_on = [&](std::size_t i) {
    std::unique_ptr<device> device;
    std::optional<testing_support::evaluator> judge;
    try {
      device = make_cuda_device(gpus[i], {.node = "test", .judge = {.launch_core = cores[i]}});
      judge.emplace(*device);
    } catch (...) {
      both_are_open.arrive_and_drop();
      throw;
    }
    both_are_open.arrive_and_wait();
    judged_by result;
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto evaluation = judge->evaluate(text, softmax);
      if (evaluation->getOutcome() != Outcome::OK) result.not_ok = describe(*evaluation);
      for (const auto measurement : evaluation->getMeasurements())
        result.device = measurement.getDevice().cStr();
      result.scores.push_back(evaluation->getScore());
    }
    return result;
  };
  auto second = std::async(std::launch::async, judge_on, 1);
  const judged_by first = std::async(std::launch::async, judge_on, 0).get();
  const judged_by other = second.get();
  EXPECT_EQ(first.not_ok, "");
  EXPECT_EQ(other.not_ok, "");
  EXPECT_EQ((std::set<std::string>{first.device, other.device}),
            (std::set<std::string>{"cuda:0", "cuda:1"}));
  if (gpus[0].type->getName() != gpus[1].type->getName())
    return;  // scores of different types are not comparable
  // Confirming measurements on two GPUs of a type may differ by 10 %.
  for (std::size_t round = 0; round < rounds; ++round)
    EXPECT_NEAR(first.scores[round] / other.scores[round], 1, 0.1);
}

}  // namespace
}  // namespace hone
