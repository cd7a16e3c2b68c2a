#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "messages/schema/variant.capnp.h"
#include "storage/database.hpp"
#include "storage/group_book.hpp"

namespace hone {

inline constexpr std::uint32_t max_measurements = 5;
inline constexpr std::uint32_t max_attempts = 3;

// What is known of every variant on every device type, and what has been asked for and has not come
// back. A key is verified once; a program that is met again is measured again until it has five
// measurements, and its score is their median. Writes into the database's uncommitted batch.
class evaluation_ledger {
 public:
  struct options {
    std::uint32_t judge_version = 0;
    std::uint64_t deadline_ms = 120000;
  };
  // Reads pending work back; overdue() hands it out again.
  evaluation_ledger(database& db, const options& o);

  // Work for a type of device that nobody has told about (or has taken back) waits, without losing
  // attempts.
  void add_device_type(const record<schema::DeviceType>& type);
  void remove_device_type(const std::string& name) { device_types_.erase(name); }
  bool has_device_type(const std::string& name) const { return device_types_.contains(name); }

  // A group's variant is met `times` times; `is_new`: the pool has never seen it. Returns true
  // where the group has to wait for its first evaluation. Work that follows is appended to `jobs`;
  // `best_score` travels in it.
  bool meet(const schema::Variant::Reader& variant, bool is_new, const evaluation_key& key,
            const group_id& group, std::uint32_t times, std::uint32_t population, double best_score,
            std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs);
  // Asks for measurements until there are `wanted`, as long as the variant is ok.
  void measure_again(const schema::Variant::Reader& variant, const evaluation_key& key,
                     std::uint32_t wanted, double best_score, std::uint64_t now_ms,
                     std::vector<record<schema::CompileJob>>& jobs);

  struct closing {
    evaluation_key key;
    record<schema::Evaluation> known;  // with the new result merged in
    std::vector<group_id> released;    // groups that waited for it
    std::uint32_t population = 0;
    bool is_first = false;  // nothing was known before this result
    bool was_ok = false;    // before this result
  };
  // A result has come back. Nothing where nobody waits for it: another attempt was faster.
  std::optional<closing> close(const record<schema::Evaluation>& result, double best_score,
                               std::uint64_t now_ms, std::vector<record<schema::CompileJob>>& jobs);

  // Work that is past its deadline, given out again under the next attempt; after three, `lost`
  // gets an evaluation that says infrastructure, to be closed.
  using best_score_of =
      std::function<double(const task_id& task, const std::string& device_type)>;  // 0: none
  void overdue(std::uint64_t now_ms, const best_score_of& best_score,
               std::vector<record<schema::CompileJob>>& jobs,
               std::vector<record<schema::Evaluation>>& lost);

  std::optional<record<schema::Evaluation>> find(const evaluation_key& key) const;
  std::size_t in_flight() const { return pending_.size(); }
  // Groups that wait for at least one key, with how many, and of which type of device.
  std::map<group_id, group_book::waiting_group> waiting_groups() const;

 private:
  struct work {
    task_id task;
    measurement_id measurement;
    std::uint32_t attempt = 1;
    bool verified = false;
    std::uint32_t wanted = 1;
    std::vector<group_id> groups;
    std::uint32_t population = 0;
    std::uint64_t deadline_ms = 0;
    bool has_result = true;  // there may be an evaluation already
    bool is_stored = false;  // as pending work, at least in what is not committed yet
  };

  void store(const evaluation_key& key, work& w);
  void send(const evaluation_key& key, work& w, const schema::Variant::Reader& variant,
            double best_score, double known_score, std::uint64_t now_ms,
            std::vector<record<schema::CompileJob>>& jobs);
  record<schema::Variant> variant_of(const evaluation_key& key) const;

  database* db_;
  options options_;
  std::map<std::string, record<schema::DeviceType>> device_types_;
  std::map<evaluation_key, work> pending_;
};

}  // namespace hone
