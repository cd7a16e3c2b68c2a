#include "policy/sft_data_set.hpp"

#include <algorithm>
#include <stdexcept>

namespace hone {

void sft_data_set::add(scored_document document) {
  auto tokens = words_->encode(document.text);
  tokens.push_back(end_);
  by_place_[{document.task, document.device_type}].push_back(documents_.size());
  tokens_.push_back(std::move(tokens));
  documents_.push_back(std::move(document));
  seen_.push_back(0);
}

sft_example sft_data_set::next(std::mt19937_64& random) {
  if (documents_.empty())
    throw std::logic_error("the data set of supervised fine-tuning has no document");
  if (order_.empty()) {
    const std::size_t most = *std::max_element(seen_.begin(), seen_.end());
    for (std::size_t i = 0; i < documents_.size(); ++i) {
      order_.push_back(i);
      if (seen_[i] + 1 < most) order_.push_back(i);  // was added late and catches up
    }
    std::shuffle(order_.begin(), order_.end(), random);
  }
  const std::size_t chosen = order_.back();
  order_.pop_back();
  ++seen_[chosen];
  const scored_document& document = documents_[chosen];
  prompt_facts facts = facts_.at(document.task);
  facts.device_type = document.device_type;
  if (std::uniform_real_distribution<double>()(random) < options_.exemplar_share) {
    const auto& place = by_place_.at({document.task, document.device_type});
    std::vector<std::size_t> others;
    std::sample(place.begin(), place.end(), std::back_inserter(others), options_.exemplars + 1,
                random);
    std::erase(others, chosen);
    others.resize(std::min(others.size(), options_.exemplars));
    std::sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
      return documents_[a].as_exemplar.score < documents_[b].as_exemplar.score;
    });
    for (const std::size_t other : others) facts.exemplars.push_back(documents_[other].as_exemplar);
  }
  return {words_->encode(prompts_->render(facts)), tokens_[chosen]};
}

}  // namespace hone
