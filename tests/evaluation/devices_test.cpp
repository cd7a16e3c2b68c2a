#include "evaluation/devices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "evaluation/backends/cores.hpp"
#include "evaluation/backends/cpu/cpu_device.hpp"

namespace hone {
namespace {

std::vector<planned_device> devices_named(const std::vector<std::string>& names) {
  std::vector<planned_device> devices;
  for (const std::string& name : names) devices.push_back({name, {}, {}});
  return devices;
}

std::string shared(const std::vector<std::string>& names, const std::string& policy) {
  std::vector<planned_device> devices = devices_named(names);
  const planned_device* found = find_device_on_gpu(devices, policy);
  return found != nullptr ? found->name : "";
}

TEST(SharedDevice, IsTheGpuThatThePolicyRunsOn) {
  EXPECT_EQ(shared({"cuda:0", "cuda:1"}, "cuda:1"), "cuda:1");
  EXPECT_EQ(shared({"cpu:3", "cuda:0"}, "cuda:0"), "cuda:0");
}

TEST(SharedDevice, IsTheFirstGpuIfThePolicysDeviceHasNoNumber) {
  EXPECT_EQ(shared({"cuda:1", "cuda:0"}, "cuda"), "cuda:0");
}

TEST(SharedDevice, IsNoneIfThePolicyHasItsOwnGpuOrNone) {
  EXPECT_EQ(shared({"cuda:0"}, "cuda:1"), "");
  EXPECT_EQ(shared({"cpu:1", "simulated:a"}, "cpu"), "");
}

TEST(Hardware, IsReservedByOneHolderAtATime) {
  const std::string uuid = gpu_uuid(std::string(16, '\x5f'));
  EXPECT_EQ(uuid, "GPU-5f5f5f5f-5f5f-5f5f-5f5f-5f5f5f5f5f5f");
  unique_fd first = lock_gpu(uuid);
  ASSERT_TRUE(first);
  EXPECT_FALSE(lock_gpu(uuid));
  EXPECT_TRUE(lock_gpu(gpu_uuid(std::string(16, '\x5e'))));
  first.reset();
  EXPECT_TRUE(lock_gpu(uuid));
}

TEST(Hardware, IsHeldForADeviceUntilTheDeviceTakesItOver) {
  const std::string one = gpu_uuid(std::string(16, '\x5d'));
  const std::string other = gpu_uuid(std::string(16, '\x5c'));
  auto reserved = reserve_gpus({{one, "cuda:0"}});
  EXPECT_FALSE(lock_gpu(one));
  EXPECT_THROW(reserve_gpus({{other, "cuda:1"}, {one, "cuda:0"}}), hardware_taken);
  EXPECT_TRUE(lock_gpu(other)) << "a refusal keeps nothing";
  unique_fd device = take_gpu_lock(reserved[one], one);
  EXPECT_TRUE(device);
  EXPECT_FALSE(take_gpu_lock(reserved[one], one)) << "another device has it";
  device.reset();
  EXPECT_TRUE(take_gpu_lock(reserved[one], one)) << "a device takes the place of one that is gone";
}

TEST(PlannedDevices, HaveDistinctNames) {
  const auto planned =
      plan_devices({"simulated:a", "simulated:a"}, {.node = "node", .share_cores = true});
  ASSERT_EQ(planned.size(), 2U);
  EXPECT_EQ(planned[0].name, "simulated:a");
  EXPECT_EQ(planned[1].name, "simulated:a#1");
}

TEST(PlannedDevices, SharingTheirCoresAreOfAnotherType) {
  const planned_device shared = plan_device("cpu", {.node = "node", .share_cores = true});
  const std::string name(view(shared.type->getName()));
  EXPECT_EQ(name, std::string(view(cpu_device_type()->getName())) + "-shared");
  EXPECT_EQ(view(shared.make()->type()->getName()), name);
}

// A device that has reserved a core must not wait for a process that shares the others.
TEST(PlannedDevices, SharingCoresKeepsAProcessOffReservedOnes) {
  const std::vector<int> before = allowed_cores();
  if (before.size() < 2) GTEST_SKIP() << "one core is left to all";
  unique_fd reserved;
  for (const int core : before) {
    if (reserved = lock_core(core); reserved) {
      std::jthread([&] {
        (void)reserve_cores(1, true);
        const std::vector<int> after = allowed_cores();
        EXPECT_EQ(std::count(after.begin(), after.end(), core), 0) << "core " << core;
        EXPECT_FALSE(after.empty());
      });
      return;
    }
  }
  GTEST_SKIP() << "other processes have reserved all cores";
}

TEST(PlannedDevices, AMachineWithoutAGpuSaysSo) {
  try {
    find_gpus();
    GTEST_SKIP() << "there is a GPU";
  } catch (const std::runtime_error&) {
  }
  try {
    plan_devices({"cuda:0"}, {.node = "test", .share_cores = true});
    FAIL() << "planned a GPU that is not there";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("driver"));
  }
}

TEST(Confirmation, IsNeededForScoresThatAreVeryGoodOrAlmostEqual) {
  const auto is_needed = [](double score, double best_score = 0, double half_width = 0.005,
                            const char* on = "cpu:1") {
    record_builder<schema::Measurement> m;
    m->setOutcome(schema::Outcome::OK);
    m->setDevice(on);
    m->setScore(score);
    m->setIntervalLow(score - half_width);
    m->setIntervalHigh(score + half_width);
    return device::needs_confirmation(*m.finish(), best_score);
  };
  EXPECT_TRUE(is_needed(3.01));
  EXPECT_TRUE(is_needed(2.5, 1.2));
  EXPECT_TRUE(is_needed(1.02));
  EXPECT_TRUE(is_needed(0.98));
  EXPECT_FALSE(is_needed(1.0));
  EXPECT_FALSE(is_needed(1.03));
  EXPECT_TRUE(is_needed(0.96, 0, 0.005, "cuda:0"));
  EXPECT_FALSE(is_needed(1.06, 0, 0.005, "cuda:0"));
  EXPECT_FALSE(is_needed(2.5));
  EXPECT_TRUE(is_needed(1.08, 0, 0.045)) << "on a CPU, chance may be the reason";
  EXPECT_FALSE(is_needed(1.1, 0, 0.045));
}

}  // namespace
}  // namespace hone
