#include "policy/training/working_examples.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "messages/ids.hpp"
#include "messages/names.hpp"

namespace hone {
namespace {

void end(std::vector<token_id>& completion, const text_codec& codec) {
  const std::vector<token_id>& ends = codec.end_tokens();
  const bool has_end =
      !completion.empty() && std::find(ends.begin(), ends.end(), completion.back()) != ends.end();
  if (!has_end) completion.push_back(ends.front());
}

}  // namespace

std::vector<sft_example> working_examples(const schema::TrainingBatch::Reader& batch,
                                          const text_codec& codec) {
  std::vector<sft_example> examples;
  std::set<std::pair<task_id, variant_id>> seen;
  for (const auto scored : batch.getGroups()) {
    const auto draw = scored.getGroup().getDraw();
    const auto prompt = codec.encode_prompt(view(scored.getGroup().getPrompt()));
    for (unsigned i = 0; i < scored.getResults().size(); ++i) {
      const auto rollout = scored.getGroup().getRollouts()[i];
      if (scored.getResults()[i].getOutcome() != Outcome::OK || rollout.getTruncated()) continue;
      const variant_id variant(rollout.getVariantId());
      if (scored.getResults()[i].getIsCopy()) continue;
      if (!seen.emplace(task_id(draw.getTaskId()), variant).second) continue;
      sft_example example{prompt, {}};
      for (const token_id token : rollout.getTokens()) example.completion.push_back(token);
      end(example.completion, codec);
      examples.push_back(std::move(example));
    }
  }
  return examples;
}

}  // namespace hone
