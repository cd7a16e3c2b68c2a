#pragma once

#include <gtest/gtest.h>

#include "storage/inspection.hpp"
#include "storage/pool.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone::testing_support {

using jobs_list = std::vector<record<schema::CompileJob>>;

// A pool in a temporary folder, with one task and one device type. The test takes the place of the
// stages that judge.
class PoolTest : public testing::Test {
 protected:
  PoolTest() { open(); }

  void open(exemplar_method method = exemplar_method::buckets, std::uint32_t judge = 1,
            bool with_device = true) {
    pool_.reset();
    pool_options options;
    options.folder = folder_ / "pool";
    options.judge_version = judge;
    options.job_deadline_ms = 1000;
    options.exemplars.method = method;
    options.max_lag_of = max_lag_of_;
    options.retention = retention_;
    options.turns = turns_;
    options.screens = screens_;
    pool_ = std::make_unique<pool>(options);
    pool_->add_task(make_task());
    if (with_device) pool_->add_device_type(make_device_type());
    pool_->commit();
  }

  jobs_list submit(const record<schema::RolloutGroup>& group) {
    jobs_list jobs;
    pool_->record_group(group, now_, jobs);
    pool_->commit();
    return jobs;
  }
  jobs_list finish(const schema::CompileJob::Reader& job, double score,
                   Outcome outcome = Outcome::OK) {
    jobs_list jobs;
    pool_->record_evaluation(make_result(job, score, outcome), now_, jobs);
    pool_->commit();
    return jobs;
  }
  // Finishes these jobs, and all jobs that follow from them, with this score.
  void finish_all(jobs_list jobs, double score) {
    while (!jobs.empty()) {
      jobs_list next;
      for (const auto& job : jobs) {
        auto more = finish(*job, score);
        next.insert(next.end(), more.begin(), more.end());
      }
      jobs = std::move(next);
    }
  }
  // Returns the score of a variant's evaluation, or -1 if there is no evaluation.
  double score_of(const std::string& code) {
    const auto known = pool_->evaluation_of({variant_of(code), the_device(), 1, 0});
    return known ? (*known)->getScore() : -1;
  }
  // Commits version 0.
  void first_version() { pool_->commit_step(make_version(0, 0, 0), make_step(0, 0, {})); }
  // Closes the pool and checks its consistency. The test fails for each problem.
  verification_report verify() {
    pool_.reset();
    const pool_inspector inspector(folder_ / "pool");
    auto report = verify_pool(inspector);
    for (const std::string& problem : report.problems) ADD_FAILURE() << problem;
    return report;
  }

  temporary_folder folder_;
  std::unique_ptr<pool> pool_;
  std::uint64_t now_ = 1000000;
  // Take effect with the next open().
  std::map<std::string, std::uint32_t> max_lag_of_;
  retention_options retention_;
  std::uint32_t turns_ = 1;
  bool screens_ = false;
};

}  // namespace hone::testing_support
