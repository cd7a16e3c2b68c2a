#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "policy/prompt.hpp"
#include "policy/trainer.hpp"

namespace hone {

// A working document with its score: what supervised fine-tuning learns from.
struct scored_document {
  std::string task;
  std::string device_type;
  std::string text;
  shown_variant as_exemplar;
};

// Makes training pairs as the later stages' prompts look: for a share of them the prompt shows
// other documents of the same task with their scores. Tokens of documents are computed once.
class sft_sampler {
 public:
  struct options {
    double exemplar_share = 0.5;  // of the pairs whose prompts show exemplars
    std::size_t exemplars = 2;
  };
  // `facts` by task name; `words` and `prompts` must outlive the sampler.
  sft_sampler(const tokenizer& words, token_id end, const prompt_template& prompts,
              std::map<std::string, prompt_facts> facts, const options& o)
      : words_(&words), end_(end), prompts_(&prompts), facts_(std::move(facts)), options_(o) {}

  void add(scored_document document);
  std::size_t size() const { return documents_.size(); }

  // Every document comes once before any comes again, in a new order each time; one that was added
  // late comes twice until it has caught up.
  sft_example next(std::mt19937_64& random);

 private:
  const tokenizer* words_;
  token_id end_;
  const prompt_template* prompts_;
  std::map<std::string, prompt_facts> facts_;
  options options_;
  std::vector<scored_document> documents_;
  std::vector<std::size_t> seen_;  // how often each has come
  std::vector<std::vector<token_id>> tokens_;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_place_;
  std::vector<std::size_t> order_;
};

}  // namespace hone
