#pragma once

#include <filesystem>

#include "storage/pool.hpp"

namespace hone::benchmark {

// Records that the benchmarks of the pool insert.

inline constexpr unsigned group_size = 16;

inline task_id numbered_task(std::uint64_t i) { return {i + 1, 99}; }

inline pool_options options_for(const std::filesystem::path& folder) {
  pool_options options;
  options.folder = folder;
  options.judge_version = 1;
  return options;
}

// Fills an evaluation `ok` with `score` for the variant of a job, with one measurement that has no
// cases yet.
inline void judge(const schema::CompileJob::Reader& job, double score,
                  schema::Evaluation::Builder e) {
  const auto header = job.getHeader();
  e.setVariantId(header.getVariantId());
  e.setTaskId(header.getTaskId());
  e.setDeviceType(header.getDeviceType());
  e.setJudgeVersion(1);
  e.setMeasurementId(header.getMeasurementId());
  e.setAttempt(header.getAttempt());
  e.setOutcome(Outcome::OK);
  auto m = e.initMeasurements(1)[0];
  m.setId(header.getMeasurementId());
  m.setOutcome(Outcome::OK);
  m.setScore(score);
}

}  // namespace hone::benchmark
