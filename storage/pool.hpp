#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "messages/schema/training.capnp.h"
#include "messages/schema/variant.capnp.h"
#include "storage/attempts.hpp"
#include "storage/database.hpp"
#include "storage/evaluation_ledger.hpp"
#include "storage/exemplar_choice.hpp"
#include "storage/exemplar_index.hpp"
#include "storage/group_book.hpp"
#include "storage/retention.hpp"
#include "storage/sample_counts.hpp"
#include "storage/version_chain.hpp"

namespace hone {

inline constexpr std::uint32_t pool_format = 1;

struct pool_options {
  std::filesystem::path folder;
  exemplar_options exemplars;
  std::uint32_t judge_version = 0;
  std::uint64_t job_deadline_ms = 600000;  // from sending a job to its deadline
  std::uint32_t max_lag = 2;  // steps by which a group's oldest token may be behind the head
  // The same for device types whose names begin with these texts; the longest text that fits
  // counts.
  std::map<std::string, std::uint32_t> max_lag_of;
  retention_options retention;
  std::uint32_t turns = 1;  // most writings of a variant in a row; see attempt_book
  // Whether the variants of groups that the policy writes to be trained on are screened.
  bool screens = false;
  bool screens_comparisons = false;
};

// Owns everything durable of a run and offers the operations that the ring needs. Changes are
// collected in memory: nothing may be acknowledged, sent on or trained on before commit() has
// returned. Not thread-safe: at most one thread may use a pool at a time. Throws pool_error. Times
// `now_ms` are Unix times.
class pool {
 public:
  // Opens the pool in the folder or creates it. Throws pool_error if its format is another one.
  explicit pool(const pool_options& options);

  // Stores the task unless it is stored already. Jobs of a late task carry it.
  void add_task(const record<schema::Task>& task);
  // Starts and stops the sending of jobs for a device type. Pending work of a device type without
  // devices waits.
  void add_device_type(const record<schema::DeviceType>& type) { ledger_.add_device_type(type); }
  void remove_device_type(const std::string& name) { ledger_.remove_device_type(name); }

  // ---- Input
  // Records a group with its rollouts and variants. New jobs are appended to `jobs`. Has no effect
  // if the group is stored already. The outcome of a variant that did not parse is `unparsable` at
  // once.
  void record_group(const record<schema::RolloutGroup>& group, std::uint64_t now_ms,
                    std::vector<record<schema::CompileJob>>& jobs);
  // Records the result of a job. Further jobs for the variant are appended to `jobs`. Returns false
  // if the result was ignored: it is late, a duplicate, or `infrastructure` with an attempt left.
  bool record_evaluation(const record<schema::Evaluation>& result, std::uint64_t now_ms,
                         std::vector<record<schema::CompileJob>>& jobs);
  // Appends the jobs that are past their deadline to `jobs` again. A job that is overdue after its
  // last attempt gets the outcome `infrastructure`.
  void collect_overdue(std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs);
  // Makes all changes since the last commit durable in one write.
  void commit();
  // Does so in two parts. Another thread may call sync() meanwhile (see database::write()).
  bool write();
  void sync();

  // ---- Output
  struct draw_request {
    task_id task;
    std::string device_type;
    Stage stage = Stage::CONTRASTIVE;
    std::uint64_t policy_version = 0;
    std::uint32_t samples = 1;
    schema::Draw::Arm arm = schema::Draw::Arm::SAMPLED;
    std::uint64_t compared_at = 0;  // the head when the comparison or validation began
    std::size_t comparison = 0;     // index of the draw in its comparison
  };
  // Makes the choices for one prompt. Exemplars include their code, ordered by ascending score. The
  // arm `bare` has none. Where an attempt of the policy waits to be made better, the draw asks for
  // that, except in comparisons and validations.
  record<schema::Draw> draw(const draw_request& request);

  struct batch_request {
    Stage stage = Stage::CONTRASTIVE;
    std::size_t at_least = 1;
    std::size_t at_most = 1;
    // Maximum number of groups per task. Tasks take turns: the oldest group of each task comes
    // first, then the second oldest of each, and so on. 0 takes the oldest groups, whatever their
    // tasks.
    std::size_t max_per_task = 0;
    std::set<group_id> without{};  // groups that are not returned, though they are ready
  };
  // Returns the oldest ready groups of a stage with their scores, or nullopt if there are fewer
  // than `at_least`. First drops and counts every group, except a comparison's, whose oldest token
  // is more steps behind the head than its device type admits; tokens of a version that is not
  // committed yet are none behind. Groups that the request does without are not dropped. The
  // returned groups stay ready until a step over them is committed.
  std::optional<record<schema::TrainingBatch>> take(const batch_request& request);
  // Drops the groups of a stage that no step has consumed, unless their draws are `kept`. Returns
  // the measurements that nobody needs any more.
  std::vector<measurement_id> abandon(Stage stage, const std::set<draw_id>& kept = {}) {
    return ledger_.withdraw(book_.abandon(stage, kept));
  }
  // Returns the draws whose groups wait or are ready of the comparison that began at this version.
  // Leaves out what another version of the judge has judged.
  std::vector<record<schema::Draw>> comparison_draws(std::uint64_t compared_at) const;
  // Returns the groups of a stage that the steps up to the head have trained on, in the order of
  // the steps. Serves a data set that is used repeatedly (the corpus).
  std::vector<record<schema::ScoredGroup>> trained_groups(Stage stage) const;

  // Records a version, its step and the groups that the step consumed, makes the version the head,
  // and commits, all in one write. The version's number must be at least next_version() and its
  // checkpoint must be on disk. Throws pool_error if the number has been used, a group is unknown,
  // or a group was trained on before along the chain.
  void commit_step(const record<schema::PolicyVersion>& version,
                   const record<schema::TrainingStep>& step);
  // Makes `version` the head and makes the groups ready again that only abandoned steps had
  // consumed, and commits, all in one write. Throws pool_error if the version is unknown.
  void choose_branch(std::uint64_t version);

  // ---- Groups of clients (pool_service.cpp)
  // Returns the known facts about a group; nullopt if there is no such group, or it is forgotten.
  std::optional<record<schema::Judgement>> judgement(const group_id& group) const;
  bool is_waiting(const group_id& group) const { return book_.is_waiting(group); }
  // Gives up a group that waits, or those that have expired. Return the measurements that nobody
  // needs any more.
  std::vector<measurement_id> withdraw(const group_id& group);
  std::vector<measurement_id> withdraw_expired(std::uint64_t now_ms);
  // Forgets the texts of judged groups that were handed in before this time.
  void forget_judged(std::uint64_t before_ms);

  std::uint64_t next_version() const { return next_version_; }
  const version_chain& versions() const { return chain_; }
  std::size_t in_flight() const { return ledger_.in_flight(); }
  // Number of waiting groups of the device types that have devices. Groups of other device types
  // may wait for long, and nothing should wait for them.
  std::size_t waiting_groups() const;
  // The same without the groups of the corpus.
  std::size_t waiting_drawn_groups() const;
  // Numbers of waiting groups per device type, with or without devices.
  const std::map<std::string, group_book::waiting_counts>& waiting_by_type() const {
    return book_.waiting_by_type();
  }
  bool awaits_corpus(const task_id& task, const std::string& device_type) const {
    return book_.awaits_corpus(task, device_type);
  }
  // Number of ready groups of all stages.
  std::size_t ready_groups() const { return book_.count_ready(); }
  // Number of ready groups of a stage that are not among these.
  std::size_t ready_groups(Stage stage, const std::set<group_id>& without = {}) const {
    return book_.count_ready(stage, without);
  }
  // Numbers of groups that take() has dropped since the pool was opened, by device type.
  const std::map<std::string, std::uint64_t>& dropped_groups() const { return dropped_; }
  // Returns the best variant, or nullopt if none is ok.
  std::optional<scored_variant> best(const task_id& task, const std::string& device_type);
  // Number of variants that are ok.
  std::uint64_t accepted_variants(const task_id& task, const std::string& device_type);
  // Number of samples by outcome, over the groups of a stage whose last evaluation is known. Corpus
  // groups belong to the stage sft.
  std::map<Outcome, std::uint64_t> sample_outcomes(Stage stage) const { return samples_.of(stage); }
  std::optional<record<schema::Evaluation>> evaluation_of(const evaluation_key& key) const {
    return ledger_.find(key);
  }

 private:
  double best_score(const task_id& task, const std::string& device_type);
  record<schema::ScoredGroup> score_group(const group_id& group) const;
  std::optional<record<schema::Evaluation>> evaluation_of(
      const schema::RolloutGroup::Reader& group, const schema::Rollout::Reader& rollout) const;
  // Returns the program that a variant was compiled to for the group's device type.
  std::optional<program_id> program_of(const variant_id& variant,
                                       const schema::RolloutGroup::Reader& group) const;
  // Returns the rollouts, by index, whose programs copy one that the prompt shows: they have the
  // same code, as text or compiled.
  // `evaluated`: evaluations of its rollouts.
  std::vector<std::uint32_t> find_copies(
      const schema::RolloutGroup::Reader& group,
      const std::vector<record<schema::Evaluation>>& evaluated) const;
  // Marks the copies that were found in a group, in its results.
  void mark_copies(const group_id& group,
                   capnp::List<schema::ScoredGroup::Result>::Builder results) const;
  // Takes note of a group whose evaluations are all known.
  void note_judged(const schema::RolloutGroup::Reader& group, std::uint64_t now_ms,
                   std::vector<record<schema::CompileJob>>& jobs);
  void measure_best_of(const schema::RolloutGroup::Reader& group,
                       const std::vector<record<schema::Evaluation>>& evaluated,
                       std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs);
  // Empties the index of exemplars, and has its leaders judged by this version of the judge.
  void judge_leaders_again();
  // Requests measurements of the task's best variant. `judged`: the key of the evaluation of the
  // task that has changed, whichever variant's, which says the device type.
  void measure_best_again(const task_id& task, const evaluation_key& judged, std::uint64_t now_ms,
                          std::vector<record<schema::CompileJob>>& jobs);
  std::uint32_t max_lag_of(const std::string& device_type) const;
  void note_versions(const schema::RolloutGroup::Reader& group);
  void drop_stale(const std::set<group_id>& without);
  void store_format();

  pool_options options_;
  database db_;
  evaluation_ledger ledger_;
  exemplar_index index_;
  exemplar_selector selector_;
  version_chain chain_;
  group_book book_;
  attempt_book attempts_;
  sample_counts samples_;
  // The last best variant of a task on a device type that needed no further measurement.
  std::map<std::pair<task_id, std::string>, variant_id> measured_best_;
  std::mt19937_64 random_;
  std::uint64_t next_version_ = 0;     // above those that are committed
  std::uint64_t unnamed_version_ = 0;  // above those that groups name as well
  std::map<std::string, std::uint64_t> dropped_;
};

// Checks that this program can read the pool. Throws pool_error if the pool has no format record,
// or another format; the message then names both formats.
void check_format(const database& db);

}  // namespace hone
