#include "storage/sample_counts.hpp"

#include <string>

#include "messages/schema/storage.capnp.h"

namespace hone {
namespace {

std::string key_of_counts(Stage stage) { return "samples of " + std::string(name_of(stage)); }

}  // namespace

sample_counts::sample_counts(database& db) : db_(&db) {
  for (const Stage stage : {Stage::SFT, Stage::SELF_SUPERVISED, Stage::CONTRASTIVE,
                            Stage::COMPARISON, Stage::VALIDATION, Stage::SERVICE}) {
    const auto stored = db.get<schema::SampleCounts>(family::meta, key_of_counts(stage));
    if (!stored) continue;
    for (const auto n : (*stored)->getOutcomes()) {
      if (const auto outcome = outcome_named(view(n.getName())))
        counts_[stage][*outcome] = static_cast<std::uint64_t>(n.getValue());
    }
  }
}

void sample_counts::count(Stage stage, const std::vector<Outcome>& outcomes) {
  auto& counts = counts_[stage];
  for (const Outcome outcome : outcomes) ++counts[outcome];
  record_builder<schema::SampleCounts> stored;
  auto list = stored->initOutcomes(static_cast<unsigned>(counts.size()));
  unsigned i = 0;
  for (const auto& [outcome, count] : counts) {
    list[i].setName(std::string(name_of(outcome)));
    list[i++].setValue(static_cast<double>(count));
  }
  db_->put(family::meta, key_of_counts(stage), stored.finish());
}

std::map<Outcome, std::uint64_t> sample_counts::of(Stage stage) const {
  const auto found = counts_.find(stage);
  return found == counts_.end() ? std::map<Outcome, std::uint64_t>() : found->second;
}

}  // namespace hone
