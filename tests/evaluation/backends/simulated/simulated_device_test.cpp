#include "evaluation/backends/simulated/simulated_device.hpp"

#include <gtest/gtest.h>

#include "messages/ids.hpp"

namespace hone {
namespace {

record<schema::VerifyJob> job_for(variant_id variant) {
  record_builder<schema::VerifyJob> job;
  variant.store(job->initHeader().initVariantId());
  job->initArtifact();
  return job.finish();
}

record<schema::BenchmarkJob> benchmark_for(variant_id variant) {
  record_builder<schema::BenchmarkJob> job;
  variant.store(job->initHeader().initVariantId());
  return job.finish();
}

simulated_device_options fast() {
  simulated_device_options options;
  options.verify_us = 0;
  options.measure_us = 0;
  return options;
}

TEST(SimulatedDevice, FindsTheConfiguredShareCorrect) {
  const auto device = make_simulated_device(fast());
  int ok = 0;
  for (int i = 0; i < 2000; ++i)
    ok += device->verify(*job_for(random_id<variant_id>()), {}, 0)->getOutcome() == Outcome::OK ? 1
                                                                                                : 0;
  EXPECT_NEAR(ok / 2000.0, 0.8, 0.05);
}

TEST(SimulatedDevice, ScoresDependOnTheVariantAndTheDeviceAlone) {
  auto options = fast();
  options.noise = 0;
  const auto device = make_simulated_device(options);
  options.name = "b";
  const auto other = make_simulated_device(options);
  const auto variant = random_id<variant_id>();
  const double score = device->measure(*benchmark_for(variant), {}, 0)->getScoreRaw();
  EXPECT_EQ(device->measure(*benchmark_for(variant), {}, 0)->getScoreRaw(), score);
  EXPECT_NE(other->measure(*benchmark_for(variant), {}, 0)->getScoreRaw(), score);
}

TEST(SimulatedDevice, HasATypeThatSaysSimulated) {
  EXPECT_EQ(view(simulated_device_type("h200")->getName()), "simulated-h200");
  EXPECT_EQ(simulated_device_type("h200")->getKind(), schema::DeviceType::Kind::SIMULATED);
}

}  // namespace
}  // namespace hone
