#pragma once

#include <string>

#include "messages/schema/training.capnp.h"
#include "policy/training/curriculum.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// Describes the judged greedy answers of a validation, without those that ended inconclusively:
//   validation_version          the version that was the newest when it began
//   validation_answers          their number
//   validation_ok               the share of them that is ok
//   validation_tier_N_ok        the same for the tasks of a tier, of tasks with tiers
//   validation_log_speedup      the mean log speed-up of the ok answers, by screenings
//   validation_copies           the share whose program is an exemplar that its prompt showed
curriculum::numbers describe_validation(const schema::TrainingBatch::Reader& batch,
                                        const task_table& tasks);

// Returns a line about these numbers for people.
std::string validation_text(const curriculum::numbers& of);

}  // namespace hone
