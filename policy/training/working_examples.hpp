#pragma once

#include <vector>

#include "messages/schema/training.capnp.h"
#include "policy/text/text_codec.hpp"
#include "policy/training/trainer.hpp"

namespace hone {

// Returns the `ok` completions of a batch as pairs for supervised fine-tuning, each program of a
// task once. Left out are completions that the length limit has cut, and programs that the prompt
// shows: to train on them would teach the policy to copy. A completion that the end of its program
// has stopped gets an end token, because a policy that is used elsewhere has to write one.
std::vector<sft_example> working_examples(const schema::TrainingBatch::Reader& batch,
                                          const text_codec& codec);

}  // namespace hone
