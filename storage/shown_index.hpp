#pragma once

#include "messages/schema/variant.capnp.h"
#include "storage/database.hpp"

namespace hone {

// The family `shown` leads from a variant to the groups whose prompts showed it.

// Enters a group. The caller commits.
void index_shown(database& db, const schema::RolloutGroup::Reader& group);

// Enters all groups of a pool of an earlier program, which had no such index. Writes as it goes;
// the caller commits.
void index_all_shown(database& db);

}  // namespace hone
