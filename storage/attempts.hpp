#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/variant.capnp.h"

namespace hone {

// A variant to be made better, and the turn in which that is asked for.
struct open_attempt {
  record<schema::Attempt> attempt;
  std::uint32_t turn = 1;
};

// Keeps, for each task and device type, the newest attempts of the policy that a draw may ask to be
// made better: of each judged group at most one, drawn at random among its failed and slow
// variants. In memory only: after a restart, new groups bring new attempts. Not thread-safe.
class attempt_book {
 public:
  // `turns`: most writings in a row, the first included. 1: nothing is ever asked to be made
  // better.
  explicit attempt_book(std::uint32_t turns) : turns_(turns) {}

  struct judged_variant {
    record<schema::Variant> variant;
    record<schema::Evaluation> evaluation;
  };
  // Considers the variants of a group that is fully judged. `best` is the best score that is known
  // for its task and device type; a variant is slow if it is not among the best.
  void consider(const schema::RolloutGroup::Reader& group,
                const std::vector<judged_variant>& judged, double best, std::mt19937_64& random);
  // Takes the newest attempt, or nullopt if there is none.
  std::optional<open_attempt> take(const task_id& task, const std::string& device_type);

 private:
  std::uint32_t turns_;
  std::map<std::pair<task_id, std::string>, std::deque<open_attempt>> open_;
};

// Returns lines that say how an evaluation's program ran: its time and the reference's, the
// bytes that it must move a second, and for each kernel its launch, registers and occupancy. Empty
// if it was not timed.
std::string describe_profile(const schema::Evaluation::Reader& evaluation);

}  // namespace hone
