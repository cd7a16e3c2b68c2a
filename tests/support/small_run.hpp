#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/program.hpp"

namespace hone::testing_support {

// Configuration of a run that ends after a few cheap steps. With contrastive.steps = 1000000 the
// run does not end.
inline constexpr const char* small_run = R"(
directory = "run"
[node]
devices = ["simulated:a", "simulated:b"]
[tasks]
folder = "%TASKS%"
names = ["softmax", "layer_norm"]
[policy]
kind = "scripted"
[generation]
group_size = 8
[pool]
max_groups = 16
max_lag = 4
[sft]
updates = 0
[self_supervised]
steps = 2
groups = 4
rate = 1e-4
[contrastive]
steps = 6
groups = 4
rate = 1e-4
one_per_task = false
[comparison]
samples = 4
[simulated.a]
verify_us = 100
measure_us = 300
[simulated.b]
verify_us = 100
measure_us = 500
)";

// A run with simulated devices, through the program.
class small_run_test : public testing::Test {
 protected:
  small_run_test() {
    std::string text = small_run;
    text.replace(text.find("%TASKS%"), 7, std::string(HONE_SOURCE_DIR) + "/configs/tasks");
    write_file(folder_ / "small.toml", text);
  }
  std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {hone_program(), "run", (folder_ / "small.toml").string(),
                                    "--dir", run_folder().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> endless(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--set", "contrastive.steps=1000000", "--set",
                               "pool.acknowledgments=acknowledged"});
    return command(more);
  }
  outcome_of_program run(std::vector<std::string> more = {},
                         const program::surroundings& where = {}) const {
    auto all = command(std::move(more));
    all.erase(all.begin());
    return run_hone(all, where);
  }
  std::filesystem::path run_folder() const { return folder_ / "run"; }
  std::string pool() const { return (run_folder() / "pool").string(); }
  std::uint64_t versions() const {
    std::uint64_t count = 0;
    const std::string metrics = read_file(run_folder() / "metrics.jsonl");
    for (const char c : metrics) count += c == '\n' ? 1 : 0;
    return count;
  }
  bool wait_for_versions(std::uint64_t count,
                         std::chrono::seconds limit = std::chrono::seconds(30)) const {
    return eventually([&] { return versions() >= count; }, limit);
  }
  std::string address() const {
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(run_folder() / "address"); }));
    std::string text = read_file(run_folder() / "address");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  void expect_nothing_lost() const {
    const auto verified = run_hone({"pool", "verify", "--pool", pool(), "--acknowledged",
                                    (run_folder() / "acknowledged").string()});
    EXPECT_EQ(verified.code, 0) << verified.out << verified.err;
  }

  temporary_folder folder_;
};

}  // namespace hone::testing_support
