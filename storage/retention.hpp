#pragma once

#include <cstdint>

#include "messages/record.hpp"
#include "messages/schema/variant.capnp.h"
#include "storage/database.hpp"
#include "storage/version_chain.hpp"

namespace hone {

// Number of steps for which a pool keeps contents of rollouts that nothing reads any more, in
// groups that a step has trained on. 0: indefinitely. Programs, outcomes, scores and lineage stay
// in any case, and so does all of the corpus.
struct retention_options {
  std::uint32_t tokens = 0;  // tokens and log-probabilities
  std::uint32_t texts = 0;   // prompts and documents
};

struct group_parts {
  bool variants = false;
  bool tokens = false;
  bool texts = false;
};
// Removes these parts of a group. Without its texts, the draw's exemplars have no programs. A group
// without its tokens says so, and cannot be trained on any more. Their memory stays in the message
// until copy_record() leaves it out.
void remove_parts(schema::RolloutGroup::Builder group, const group_parts& removed);

// Removes the contents of a group that was dropped, as far as anything is removed at all. Changes
// go into the database's uncommitted batch, here and below. Throws pool_error.
void remove_contents_of_dropped(database& db, const group_id& group, const retention_options& o);
// Removes the contents of the groups whose step has become old enough with the head.
void remove_old_contents(database& db, const version_chain& chain, const retention_options& o);

}  // namespace hone
