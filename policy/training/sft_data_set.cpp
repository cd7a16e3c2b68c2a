#include "policy/training/sft_data_set.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace hone {

void sft_data_set::add(scored_document document) {
  by_place_[{document.task, document.device_type}].push_back(documents_.size());
  tokens_.push_back(codec_->encode_answer(document.text));
  documents_.push_back(std::move(document));
  seen_.resize(std::max(seen_.size(), documents_.size()), 0);
}

std::string sft_data_set::state() const {
  std::ostringstream out;
  for (const auto* numbers : {&seen_, &order_}) {
    out << numbers->size();
    for (const std::size_t number : *numbers) out << " " << number;
    out << "\n";
  }
  return out.str();
}

void sft_data_set::restore(const std::string& state) {
  std::istringstream in(state);
  for (auto* numbers : {&seen_, &order_}) {
    std::size_t count = 0;
    in >> count;
    numbers->clear();
    for (std::size_t number = 0; numbers->size() < count && in >> number;)
      numbers->push_back(number);
  }
  seen_.resize(std::max(seen_.size(), documents_.size()), 0);
}

sft_example sft_data_set::next(std::mt19937_64& random) {
  if (documents_.empty())
    throw std::logic_error("the data set of supervised fine-tuning has no document");
  // A restored state may name documents that have not been added.
  while (!order_.empty() && order_.back() >= documents_.size()) order_.pop_back();
  if (order_.empty()) {
    const std::size_t most = *std::max_element(
        seen_.begin(), seen_.begin() + static_cast<std::ptrdiff_t>(documents_.size()));
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
    std::vector<std::size_t> slower;
    for (const std::size_t other : by_place_.at({document.task, document.device_type})) {
      const shown_variant& shown = documents_[other].as_exemplar;
      if (shown.score > 0 && shown.score <= document.as_exemplar.score &&
          shown.code != document.as_exemplar.code)
        slower.push_back(other);
    }
    std::vector<std::size_t> others;
    std::sample(slower.begin(), slower.end(), std::back_inserter(others), options_.exemplars,
                random);
    std::sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
      return documents_[a].as_exemplar.score < documents_[b].as_exemplar.score;
    });
    for (const std::size_t other : others) facts.exemplars.push_back(documents_[other].as_exemplar);
  }
  sft_example pair{codec_->encode_prompt(prompts_->render(facts)), tokens_[chosen]};
  while (options_.context > 0 && !facts.exemplars.empty() &&
         pair.prompt.size() + pair.completion.size() > options_.context) {
    facts.exemplars.erase(facts.exemplars.begin());
    pair.prompt = codec_->encode_prompt(prompts_->render(facts));
  }
  return pair;
}

}  // namespace hone
