#pragma once

#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "messages/schema/training.capnp.h"
#include "messages/schema/variant.capnp.h"

namespace hone::testing_support {

// Records for tests of the pool, made without documents: a variant's id is the hash of its python
// block, which may be any text.
inline task_id the_task() { return {7, 7}; }
inline const char* the_device() { return "cpu-test"; }

inline record<schema::Task> make_task() {
  record_builder<schema::Task> task;
  the_task().store(task->initId());
  task->setName("t");
  task->setText("name = \"t\"");
  return task.finish();
}

inline record<schema::DeviceType> make_device_type(const std::string& name = the_device()) {
  record_builder<schema::DeviceType> type;
  type->setName(name);
  return type.finish();
}

inline variant_id variant_of(const std::string& code) { return content_id<variant_id>({code}); }

struct group_options {
  schema::Stage stage = schema::Stage::CONTRASTIVE;
  schema::RolloutGroup::Origin origin = schema::RolloutGroup::Origin::POLICY;
  std::uint64_t version = 0;
  std::uint32_t population = 0;
  std::string device = the_device();
  std::vector<variant_id> exemplars;
  std::string problem;  // why the variants do not parse; empty if they do
  task_id task = the_task();
  bool timed = true;
};

// Returns a group with one rollout for each program in `codes`, in order. Equal programs share a
// variant.
inline record<schema::RolloutGroup> make_group(const std::vector<std::string>& codes,
                                               const group_options& options = {}) {
  record_builder<schema::RolloutGroup> group;
  random_id<group_id>().store(group->initId());
  group->setOrigin(options.origin);
  group->setTimed(options.timed);
  auto draw = group->initDraw();
  random_id<draw_id>().store(draw.initId());
  options.task.store(draw.initTaskId());
  draw.setDeviceType(options.device);
  draw.setStage(options.stage);
  draw.setPopulation(options.population);
  auto exemplars = draw.initExemplars(static_cast<unsigned>(options.exemplars.size()));
  for (unsigned i = 0; i < exemplars.size(); ++i)
    options.exemplars[i].store(exemplars[i].initVariantId());
  auto rollouts = group->initRollouts(static_cast<unsigned>(codes.size()));
  std::vector<std::string> distinct;
  for (unsigned i = 0; i < rollouts.size(); ++i) {
    random_id<rollout_id>().store(rollouts[i].initId());
    variant_of(codes[i]).store(rollouts[i].initVariantId());
    rollouts[i].setText(codes[i]);
    if (options.origin == schema::RolloutGroup::Origin::POLICY) {
      auto runs = rollouts[i].initVersions(1);
      runs[0].setVersion(options.version);
      runs[0].setTokens(1);
    }
    if (std::find(distinct.begin(), distinct.end(), codes[i]) == distinct.end())
      distinct.push_back(codes[i]);
  }
  auto variants = group->initVariants(static_cast<unsigned>(distinct.size()));
  for (unsigned i = 0; i < variants.size(); ++i) {
    variant_of(distinct[i]).store(variants[i].initId());
    options.task.store(variants[i].initTaskId());
    variants[i].setPython(distinct[i]);
    variants[i].setProblem(options.problem);
  }
  return group.finish();
}

// Returns the result of a job as the last stage of the pipeline sends it.
inline record<schema::Evaluation> make_result(const schema::CompileJob::Reader& job, double score,
                                              schema::Outcome outcome = schema::Outcome::OK,
                                              std::uint32_t judge = 1) {
  record_builder<schema::Evaluation> result;
  const auto header = job.getHeader();
  result->setVariantId(header.getVariantId());
  result->setTaskId(header.getTaskId());
  result->setDeviceType(header.getDeviceType());
  result->setJudgeVersion(judge);
  result->setScope(header.getScope());
  result->setMeasurementId(header.getMeasurementId());
  result->setAttempt(header.getAttempt());
  result->setOutcome(outcome);
  if (outcome == schema::Outcome::OK || outcome == schema::Outcome::UNSTABLE) {
    result->initVerdict().setOutcome(schema::Outcome::OK);
    if (!header.getTimed()) return result.finish();
    auto m = result->initMeasurements(1)[0];
    m.setId(header.getMeasurementId());
    m.setOutcome(outcome);
    m.setScore(outcome == schema::Outcome::OK ? score : 0);
  }
  return result.finish();
}

// Returns the request for a comparison of `versions`, with `samples` samples of one arm.
// A batch of groups whose variants are all ok.
inline record<schema::TrainingBatch> judged_batch(
    const std::vector<record<schema::RolloutGroup>>& groups,
    schema::Stage stage = schema::Stage::CONTRASTIVE) {
  record_builder<schema::TrainingBatch> batch;
  batch->setStage(stage);
  auto list = batch->initGroups(static_cast<unsigned>(groups.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setGroup(*groups[i]);
    auto results = list[i].initResults(groups[i]->getRollouts().size());
    for (auto result : results) result.setOutcome(schema::Outcome::OK);
  }
  return batch.finish();
}

inline record<schema::ComparisonRequest> comparison(const std::vector<std::uint64_t>& versions,
                                                    std::uint32_t samples) {
  record_builder<schema::ComparisonRequest> request;
  auto list = request->initVersions(static_cast<unsigned>(versions.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, versions[i]);
  request->initHeldOutVersions(0);
  request->setSamples(samples);
  return request.finish();
}

inline record<schema::PolicyVersion> make_version(
    std::uint64_t number, std::uint64_t parent, std::uint32_t depth,
    schema::Stage stage = schema::Stage::CONTRASTIVE) {
  record_builder<schema::PolicyVersion> version;
  version->setVersion(number);
  version->setParent(parent);
  version->setDepth(depth);
  version->setStage(stage);
  version->setCheckpoint("checkpoints/" + std::to_string(number));
  return version.finish();
}

inline record<schema::TrainingStep> make_step(std::uint64_t number, std::uint64_t parent,
                                              const std::vector<group_id>& groups,
                                              schema::Stage stage = schema::Stage::CONTRASTIVE) {
  record_builder<schema::TrainingStep> step;
  step->setVersion(number);
  step->setParent(parent);
  step->setStage(stage);
  auto list = step->initGroups(static_cast<unsigned>(groups.size()));
  for (unsigned i = 0; i < list.size(); ++i) groups[i].store(list[i]);
  return step.finish();
}

}  // namespace hone::testing_support
