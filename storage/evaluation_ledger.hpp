#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "messages/schema/variant.capnp.h"
#include "storage/database.hpp"
#include "storage/group_book.hpp"

namespace hone {

// Measurements after which a variant that recurs is not measured again.
inline constexpr std::uint32_t max_measurements = 5;
// Attempts after which a job that has failed or is overdue gets the outcome `infrastructure`.
inline constexpr std::uint32_t max_attempts = 3;

// Keeps the evaluation of every variant on every device type, and the pending work: jobs that are
// to be sent or whose results have not come back. A variant is verified once per key. A variant
// that recurs is measured again until it has five measurements; its score is their median. A
// variant that is only to be verified has no measurement and no score until something wants one.
// Changes go into the database's uncommitted batch. `db` must outlive the ledger. Not thread-safe.
// Throws pool_error. Times `now_ms` are Unix times.
class evaluation_ledger {
 public:
  struct options {
    std::uint32_t judge_version = 0;
    std::uint64_t deadline_ms = 0;  // from sending a job to its deadline
  };
  // Reads the stored pending work; overdue() sends it again. Pending work of another judge version
  // is not sent: overdue() reports it as lost.
  evaluation_ledger(database& db, const options& o);

  // Work for a device type that has not been added, or has been removed, waits: it is not sent, and
  // the time that it waits costs no attempt.
  void add_device_type(const record<schema::DeviceType>& type);
  void remove_device_type(const std::string& name) { device_types_.erase(name); }
  bool has_device_type(const std::string& name) const { return device_types_.contains(name); }
  // Jobs of this task carry it, because nodes do not have it.
  void add_late_task(const record<schema::Task>& task);

  // A group that wants a variant evaluated.
  struct claim {
    group_id group;
    std::uint32_t times = 1;       // that the variant occurs in the group; 0: only a verdict
    std::uint32_t population = 0;  // of the island that the variant joins; 0: none
    std::string client{};          // whose group it is; empty: the run's
    std::uint8_t priority = 0;
  };
  // `is_new` says that the pool has not stored the variant before. Returns true if the group has to
  // wait for a result. A job that follows is appended to `jobs` with `best_score`, the highest
  // score of the task on the device type (0: none). A variant that did not parse gets the outcome
  // `unparsable` at once.
  bool request_evaluation(const schema::Variant::Reader& variant, bool is_new,
                          const evaluation_key& key, const claim& by, double best_score,
                          std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs);
  // Requests measurements until the stored variant of this task has `wanted` of them, as long as it
  // is ok; without an evaluation of this judge, requests the first. Returns true if it has them, or
  // is not ok.
  bool measure_again(const task_id& task, const evaluation_key& key, std::uint32_t wanted,
                     double best_score, std::uint64_t now_ms,
                     std::vector<record<schema::CompileJob>>& jobs);

  // Requests a measurement of a stored variant, unless there is a conclusive evaluation or a
  // request. No group waits for it.
  void evaluate_once(const task_id& task, const evaluation_key& key, std::uint32_t population,
                     double best_score, std::uint64_t now_ms,
                     std::vector<record<schema::CompileJob>>& jobs);

  // Gives up the first evaluations that only these groups wait for. Returns the measurements that
  // nobody needs any more.
  std::vector<measurement_id> withdraw(const std::set<group_id>& groups);

  struct closing {
    evaluation_key key;
    record<schema::Evaluation> known;  // with the new result merged in
    std::vector<group_id> released;    // groups that waited for the result
    std::uint32_t population = 0;      // of the island that the variant joins; 0: none
    bool had_score = false;            // before this result
  };
  // Merges a result into the stored evaluation. Returns nullopt if no pending work has the result's
  // measurement id (another attempt was faster), or if the outcome is `infrastructure` and the job
  // gets another attempt. A further attempt or measurement is appended to `jobs`.
  std::optional<closing> close(const record<schema::Evaluation>& result, double best_score,
                               std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs);

  // Returns the highest score of a task on a device type; 0: none.
  using best_score_of = std::function<double(const task_id& task, const std::string& device_type)>;
  // Sends pending work that is past its deadline again, under the next attempt. If the current
  // attempt has not been sent, for lack of devices or since the pool was opened, sends that
  // attempt. After three attempts, appends an evaluation with the outcome `infrastructure` to
  // `lost` instead; the caller passes it to close().
  void overdue(std::uint64_t now_ms, const best_score_of& best_score,
               std::vector<record<schema::CompileJob>>& jobs,
               std::vector<record<schema::Evaluation>>& lost);

  // Returns nullopt if there is no evaluation yet.
  std::optional<record<schema::Evaluation>> find(const evaluation_key& key) const;
  // Number of keys with pending work.
  std::size_t in_flight() const { return pending_.size(); }
  // Returns the waiting groups, each with its number of missing evaluations and its device type.
  std::map<group_id, group_book::waiting_group> waiting_groups() const;

 private:
  struct work {
    enum class state {
      unsent,    // overdue() sends the current attempt
      sent,      // until `deadline_ms`
      obsolete,  // of another judge version: overdue() reports it as lost
    };
    task_id task;
    measurement_id measurement;
    std::uint32_t attempt = 1;
    bool verified = false;         // the verdict is ok already: only measure
    std::uint32_t wanted = 1;      // measurements, existing ones included; 0: only a verdict
    std::vector<group_id> groups;  // groups that wait for the result
    std::uint32_t population = 0;
    std::string client{};
    std::uint8_t priority = 0;
    state how = state::unsent;
    std::uint64_t deadline_ms = 0;  // Unix time; valid if `sent`
    bool has_result = true;         // there may be an evaluation already
    bool is_stored = false;         // in the database or its uncommitted batch
  };

  void store(const evaluation_key& key, work& w);
  void send(const evaluation_key& key, work& w, const schema::Variant::Reader& variant,
            double best_score, double known_score, std::uint64_t now_ms,
            std::vector<record<schema::CompileJob>>& jobs);
  record<schema::Variant> variant_of(const evaluation_key& key) const;

  database* db_;
  options options_;
  std::map<std::string, record<schema::DeviceType>> device_types_;
  std::map<task_id, record<schema::Task>> late_tasks_;
  std::map<evaluation_key, work> pending_;
};

}  // namespace hone
