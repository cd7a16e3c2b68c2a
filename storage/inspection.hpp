#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "messages/names.hpp"
#include "messages/schema/storage.capnp.h"
#include "messages/schema/task.capnp.h"
#include "messages/schema/training.capnp.h"
#include "storage/database.hpp"
#include "storage/version_chain.hpp"

namespace hone {

// Looks at a pool without being its writer, also while one lives. Records come back as stored;
// printing is the caller's. Throws pool_error, as for an id that is unknown or a prefix that fits
// several.
class pool_inspector {
 public:
  explicit pool_inspector(const std::filesystem::path& folder);

  const database& db() const { return db_; }

  std::vector<record<schema::Task>> tasks() const;
  std::optional<std::string> task_name(const task_id& id) const;

  using evaluation_visitor =
      std::function<void(const evaluation_key&, const record<schema::Evaluation>&)>;
  // Evaluations of the pool's own scope, or of a comparison's as well.
  void each_evaluation(const evaluation_visitor& visit) const;
  void each_evaluation_of_any_scope(const evaluation_visitor& visit) const;
  // The highest scores of every task and device type, best first.
  std::vector<record<schema::Evaluation>> top(std::size_t per_task) const;

  // The variant whose id begins with these hexadecimal digits.
  variant_id find_variant(const std::string& prefix) const;
  std::optional<record<schema::Variant>> variant(const variant_id& id) const;
  std::vector<record<schema::Evaluation>> evaluations_of(const variant_id& id) const;

  struct written_as {
    group_id group;
    std::uint32_t index = 0;  // of the rollout in the group
    rollout_id rollout;
  };
  std::vector<written_as> rollouts_of(const variant_id& id) const;
  std::optional<record<schema::RolloutGroup>> group(const group_id& id) const;
  std::optional<record<schema::GroupProgress>> progress(const group_id& id) const;
  std::optional<record<schema::TrainingStep>> step(std::uint64_t version) const;
  std::uint64_t next_version() const;
  version_chain versions() const { return version_chain(db_); }

  struct statistics {
    std::uint64_t tasks = 0, variants = 0, rollouts = 0, groups = 0, evaluations = 0,
                  measurements = 0, pending = 0, ready = 0, versions = 0;
    std::map<std::string, std::map<std::string, std::uint64_t>>
        outcomes;  // device type -> outcome -> evaluations
    std::map<std::string, std::uint64_t> group_states;
    std::optional<std::uint64_t> head;
  };
  statistics count() const;

 private:
  database db_;
};

// What `hone pool verify` says: how much was looked at, and every reference or index entry that is
// not as it must be.
struct verification_report {
  std::map<std::string, std::uint64_t> checked;
  std::vector<std::string> problems;  // at most a hundred are spelled out
  std::uint64_t problem_count = 0;

  void complain(const std::string& problem) {
    constexpr std::size_t spelled_out = 100;
    ++problem_count;
    if (problems.size() < spelled_out) problems.push_back(problem);
  }
};

// Follows every reference and recounts every index of the pool: groups and their variants, rollouts
// both ways, evaluations and the exemplar index both ways, bucket statistics, pending work and the
// groups that wait, the ready queue, versions and their parents, and that no group was trained on
// twice along the surviving versions.
verification_report verify_pool(const pool_inspector& pool);

// Everything that a run's file of acknowledgements lists (a line each: "group ID", "measurement ID
// VARIANT", "version N") must be in the pool; what is missing joins the report's problems.
void check_acknowledgements(const pool_inspector& pool, const std::filesystem::path& file,
                            verification_report& report);

}  // namespace hone
