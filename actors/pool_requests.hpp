#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "actors/draw_schedule.hpp"
#include "messages/caf_records.hpp"
#include "storage/pool.hpp"

namespace hone {

// Holds the requests that the pool cannot serve yet, for draws and for a training batch, and serves
// them as soon as it can. Contains no actor: replies are functions, and the time is a parameter.
// Must be used by one thread at a time.
class pool_requests {
 public:
  // Answers a request once: with a record, or with nullopt if the request was held for
  // timeouts::pool_hold.
  template <class Record>
  using reply = std::function<void(const std::optional<Record>&)>;

  struct batch_request {
    pool::batch_request groups;
    // Spreads the groups evenly over the tasks, unless no further group can become ready.
    bool is_even = false;
  };

  // `of` and `schedule` must outlive this object.
  pool_requests(pool& of, draw_schedule& schedule) : pool_(&of), schedule_(&schedule) {}

  // Adds a generator's request for a draw. The caller has a number for each generator. Times are
  // Unix times in ms.
  void add(reply<draw_record> answer, std::uint64_t now_ms, std::uint64_t generator = 0);
  // Gives up the requests and draws of a generator that has ended.
  void forget(std::uint64_t generator);
  // Adds the request for a batch. It replaces an earlier one, whose requester has given it up. The
  // groups that it does without take no room from draws any more: they only wait for their commit.
  void add(const batch_request& request, reply<batch_record> answer, std::uint64_t now_ms);

  // Serves the batch request and the validation if enough groups are ready. Throws pool_error.
  void serve_batch(std::uint64_t now_ms);
  // Serves requests for draws, in their order, while the schedule has room. Throws pool_error.
  void serve_draws(std::uint64_t now_ms);
  // Refuses the requests that have been held for timeouts::pool_hold.
  void refuse_expired(std::uint64_t now_ms);

  // Schedules a comparison, and drops a validation and the rest of the earlier stages. The
  // groups of the same comparison that an earlier process has made are kept, and those of others
  // dropped. Returns the number of groups, the kept ones included.
  std::size_t compare(const schema::ComparisonRequest::Reader& request);
  // Drops a group that was handed in after a comparison has begun and is of an earlier stage.
  void drop_if_late(const schema::RolloutGroup::Reader& group);
  // Schedules a validation of at most `tasks` tasks, which replaces an earlier one. The answer has
  // the groups that are judged when all are, or after timeouts::validation; it has none if there
  // are no tasks, or a comparison begins.
  void validate(std::size_t tasks, reply<batch_record> answer, std::uint64_t now_ms);

  // Adds a request for the judgement of a group that a client handed in. The answer comes when the
  // group does not wait any more or at `until_ms`; it is nullopt if there is no such group.
  void add(const group_id& group, reply<judgement_record> answer, std::uint64_t until_ms);
  // Gives up a group that a client handed in.
  void withdraw(const group_id& group);
  // Gives up those that have expired.
  void withdraw_expired(std::uint64_t now_ms);
  // Answers the requests for judgements that can be answered. Throws pool_error.
  void serve_judgements(std::uint64_t now_ms);

  // Returns the measurements that nobody needs any more since the last call.
  std::vector<measurement_id> take_given_up() { return std::exchange(given_up_, {}); }

  std::size_t waiting_draws() const { return draws_.size(); }
  // Mean lag, in steps, of the versions that wrote the latest batch.
  double lag() const { return lag_; }

 private:
  struct waiting_draw {
    reply<draw_record> answer;
    std::uint64_t since_ms = 0;
    std::uint64_t generator = 0;
  };
  struct waiting_batch {
    batch_request request;
    reply<batch_record> answer;
    std::uint64_t since_ms = 0;
  };

  struct waiting_validation {
    reply<batch_record> answer;
    std::size_t groups = 0;
    std::uint64_t since_ms = 0;
  };

  struct waiting_judgement {
    group_id group;
    reply<judgement_record> answer;
    std::uint64_t until_ms = 0;
  };

  void give_up(const std::vector<measurement_id>& measurements);
  void serve_validation(std::uint64_t now_ms);
  void end_validation();
  void abandon(Stage stage, const std::set<draw_id>& kept = {});
  void leave_out(const std::vector<draw_record>& draws);
  std::uint64_t head_version() const;
  pool::batch_request limits_for(const batch_request& request) const;
  draw_record make_draw(const draw_schedule::assignment& what);
  double mean_lag(const schema::TrainingBatch::Reader& batch) const;

  pool* pool_;
  draw_schedule* schedule_;
  std::deque<waiting_draw> draws_;
  std::optional<waiting_batch> batch_;
  std::set<group_id> trained_;  // those of the latest request for a batch
  std::optional<waiting_validation> validation_;
  std::vector<waiting_judgement> judgements_;
  std::uint64_t compared_at_ = 0;                        // the head when the comparison began
  std::map<std::size_t, draw_record> comparison_draws_;  // by index; all versions share them
  bool compares_ = false;  // a comparison has begun, so nothing is trained any more
  std::vector<measurement_id> given_up_;
  double lag_ = 0;
};

}  // namespace hone
