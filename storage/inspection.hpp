#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages/names.hpp"
#include "messages/schema/storage.capnp.h"
#include "messages/schema/task.capnp.h"
#include "messages/schema/training.capnp.h"
#include "storage/database.hpp"
#include "storage/version_chain.hpp"

namespace hone {

// Tells which evaluation says what a variant of the run is worth on a device type to a judge
// version: the full one, or its screening if there is no other. Must be asked about the evaluations
// of a pool in the order in which pool_inspector visits them.
class counting_evaluations {
 public:
  bool counts(const evaluation_key& key);

 private:
  evaluation_key last_;  // as the key of a full evaluation
};

// Reads a pool without being its writer, also while a writer is live. Returns records as stored;
// printing is the caller's task. Not thread-safe. Throws pool_error if the pool cannot be read.
class pool_inspector {
 public:
  // Throws pool_error if the folder holds no pool of this format.
  explicit pool_inspector(const std::filesystem::path& folder);

  const database& db() const { return db_; }

  std::vector<record<schema::Task>> tasks() const;
  std::optional<std::string> task_name(const task_id& id) const;

  using evaluation_visitor =
      std::function<void(const evaluation_key&, const record<schema::Evaluation>&)>;
  // Visits the evaluations of the run (scope 0).
  void each_evaluation(const evaluation_visitor& visit) const;
  // Visits the evaluations that `counting_evaluations` counts.
  void each_known_evaluation(const evaluation_visitor& visit) const;
  // Visits the evaluations of every scope, comparisons included.
  void each_evaluation_of_any_scope(const evaluation_visitor& visit) const;
  // Returns up to `per_task` evaluations with the highest scores of every task and device type,
  // best first (headline::deciding).
  std::vector<record<schema::Evaluation>> top(std::size_t per_task) const;

  // Returns the variant whose id begins with these hexadecimal digits. Throws pool_error if there
  // is none, or more than one, or if `prefix` is not 1 to 32 hexadecimal digits.
  variant_id find_variant(const std::string& prefix) const;
  // Returns the group whose id begins so, in the same way.
  group_id find_group(const std::string& prefix) const;
  std::optional<record<schema::Variant>> variant(const variant_id& id) const;
  std::vector<record<schema::Evaluation>> evaluations_of(const variant_id& id) const;

  // A place where a variant was written: one rollout of one group.
  struct written_as {
    group_id group;
    std::uint32_t index = 0;  // of the rollout in the group
    rollout_id rollout;
  };
  std::vector<written_as> rollouts_of(const variant_id& id) const;
  // Returns the groups whose prompts showed a variant, `limit` at most. Pools that no program has
  // written to since the index exists are searched through.
  std::vector<group_id> groups_that_showed(const variant_id& id, std::size_t limit) const;
  std::optional<record<schema::RolloutGroup>> group(const group_id& id) const;
  std::optional<record<schema::GroupProgress>> progress(const group_id& id) const;
  std::optional<record<schema::TrainingStep>> step(std::uint64_t version) const;
  // Returns the types of device on which variants of the run have scores.
  std::set<std::string> scored_device_types() const;
  std::uint64_t next_version() const;
  // Returns the version of the judge that has opened the pool last.
  std::uint32_t judge_version() const;
  version_chain versions() const { return version_chain(db_); }

  struct statistics {
    std::uint64_t tasks = 0, variants = 0, rollouts = 0, groups = 0, evaluations = 0,
                  measurements = 0, pending = 0, ready = 0, versions = 0;
    // Each variant is in one of the next three.
    std::uint64_t evaluated_variants = 0;  // with an evaluation of the run, or a screening
    std::uint64_t compared_variants = 0;   // with evaluations of a comparison only
    std::uint64_t waiting_variants = 0;    // without an evaluation so far
    // Device type -> outcome -> number of evaluations.
    std::map<std::string, std::map<std::string, std::uint64_t>> outcomes;
    std::map<std::string, std::uint64_t> group_states;
    std::optional<std::uint64_t> head;
  };
  // Counts the pool's contents. `evaluations`, `measurements` and `outcomes` leave out comparisons.
  statistics count() const;

 private:
  database db_;
};

// The result of `hone pool verify`: how many records of each kind were checked, and every reference
// or index entry that is wrong.
struct verification_report {
  std::map<std::string, std::uint64_t> checked;
  std::vector<std::string> problems;  // the first hundred
  std::uint64_t problem_count = 0;

  void complain(const std::string& problem) {
    constexpr std::size_t spelled_out = 100;
    ++problem_count;
    if (problems.size() < spelled_out) problems.push_back(problem);
  }
};

// Follows every reference and recounts every index of the pool: groups and their variants, rollouts
// in both directions, evaluations and the exemplar index in both directions, bucket statistics,
// pending work and waiting groups, the ready queue, and versions and their parents. Also checks
// that no group was trained on twice along the chain.
verification_report verify_pool(const pool_inspector& pool);

// Checks that everything that a run's file of acknowledgments lists is in the pool, and adds
// missing entries to the report's problems. Each line is "group ID", "measurement ID VARIANT" or
// "version N". Throws pool_error if the file cannot be opened.
void check_acknowledgments(const pool_inspector& pool, const std::filesystem::path& file,
                           verification_report& report);

}  // namespace hone
