#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "messages/schema/training.capnp.h"
#include "messages/schema/variant.capnp.h"
#include "storage/database.hpp"
#include "storage/evaluation_ledger.hpp"
#include "storage/exemplar_choice.hpp"
#include "storage/exemplar_index.hpp"
#include "storage/group_book.hpp"
#include "storage/version_chain.hpp"

namespace hone {

inline constexpr std::uint32_t pool_format = 1;

struct pool_options {
  std::filesystem::path folder;
  exemplar_options exemplars;
  std::uint32_t judge_version = 0;
  std::uint64_t job_deadline_ms = 600000;
  std::uint32_t max_lag = 2;  // steps that a group's oldest token may be behind the head
};

// Everything durable of a run, behind the operations that the ring needs. Changes are collected;
// nothing may be acknowledged, sent on or trained on before commit() has returned. Not for more
// than one thread at a time. Throws pool_error.
class pool {
 public:
  explicit pool(const pool_options& options);

  void add_task(const record<schema::Task>& task);
  // Devices of this type take work, or none does any more; their work waits meanwhile.
  void add_device_type(const record<schema::DeviceType>& type) { ledger_.add_device_type(type); }
  void remove_device_type(const std::string& name) { ledger_.remove_device_type(name); }

  // ---- the way in
  // Records a group and what it is written by; new work is appended to `jobs`. A group that is
  // known already changes nothing. Returns how many new texts were no programs, and are closed with
  // that.
  std::size_t record_group(const record<schema::RolloutGroup>& group, std::uint64_t now_ms,
                           std::vector<record<schema::CompileJob>>& jobs);
  // Closes work. Late and duplicate results change nothing.
  enum class taken { not_at_all, as_first, beside_others };  // of a program's results
  taken record_evaluation(const record<schema::Evaluation>& result, std::uint64_t now_ms,
                          std::vector<record<schema::CompileJob>>& jobs);
  // Hands out again what is past its deadline.
  void collect_overdue(std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs);
  void commit();

  // ---- the way out
  struct draw_request {
    task_id task;
    std::string device_type;
    Stage stage = Stage::CONTRASTIVE;
    std::uint64_t policy_version = 0;
    std::uint32_t samples = 1;
  };
  // A prompt's worth of choices. Exemplars come with their texts, the better one last.
  record<schema::Draw> draw(const draw_request& request);

  struct batch_request {
    Stage stage = Stage::CONTRASTIVE;
    std::size_t at_least = 1;  // or nothing
    std::size_t at_most = 1;
    std::size_t most_of_a_task = 0;  // the oldest of each task, then the second of each, up to so
                                     // many; 0: the oldest, of whichever tasks
  };
  // The oldest ready groups of a stage with their scores. Groups that are too old are dropped
  // first, and counted. They stay ready until a step over them is committed.
  std::optional<record<schema::TrainingBatch>> take(const batch_request& request);
  // A stage's groups that are not trained on yet are wanted no more.
  void abandon(Stage stage) { book_.abandon(stage); }
  // What the steps up to the head have already trained on, for a data set that is used again and
  // again (the corpus).
  std::vector<record<schema::ScoredGroup>> trained_groups(Stage stage) const;

  // One write: the version, the step, and the groups that it consumed. The version's number must be
  // next_version(); its checkpoint must be on disk. Throws pool_error where a group was trained on
  // before along the chain.
  void commit_step(const record<schema::PolicyVersion>& version,
                   const record<schema::TrainingStep>& step);
  // One write: training goes on from `version`, and groups that only abandoned steps had consumed
  // are ready again.
  void choose_branch(std::uint64_t version);

  std::uint64_t next_version() const { return next_version_; }
  const version_chain& versions() const { return chain_; }
  std::size_t in_flight() const { return ledger_.in_flight(); }
  // For devices that are there: others' may wait for long, and nobody should wait for them.
  std::size_t waiting_groups() const;
  const std::map<std::string, std::size_t>& waiting_by_type() const {
    return book_.waiting_by_type();
  }  // of devices, there or not
  std::size_t ready_groups(Stage stage) const;
  std::uint64_t dropped_groups() const { return dropped_; }
  std::optional<scored_variant> best(const task_id& task, const std::string& device_type);
  std::uint64_t accepted_variants(const task_id& task, const std::string& device_type);
  std::optional<record<schema::Evaluation>> evaluation_of(const evaluation_key& key) const {
    return ledger_.find(key);
  }

 private:
  double best_score(const task_id& task, const std::string& device_type);
  record<schema::ScoredGroup> score_group(const group_id& group) const;
  void drop_stale();
  void store_format();

  pool_options options_;
  database db_;
  evaluation_ledger ledger_;
  exemplar_index index_;
  exemplar_selector selector_;
  version_chain chain_;
  group_book book_;
  std::mt19937_64 random_;
  std::uint64_t next_version_ = 0;
  std::uint64_t dropped_ = 0;
};

// The format of the pool in a folder; throws pool_error, naming both versions, where this program
// cannot read it.
void check_format(const database& db);

}  // namespace hone
