#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "policy/text/prompt.hpp"
#include "policy/text/text_codec.hpp"
#include "policy/training/trainer.hpp"

namespace hone {

// An `ok` document with its score, 0 if it was not timed: one item of the data set of supervised
// fine-tuning.
struct scored_document {
  std::string task;
  std::string device_type;  // device type on which the document was judged
  std::string text;
  shown_variant as_exemplar;
};

// Draws training pairs (prompt, document) that look like the prompts of the later stages: a share
// of the prompts shows documents of the same task and device type with their scores. They are not
// faster than the document that follows, were timed, and hold another program: the policy is to
// learn to improve on what it is shown, neither to copy it nor to do worse. Documents are tokenized
// once, when they are added. Must be used by one thread at a time.
class sft_data_set {
 public:
  struct options {
    double exemplar_share = 0.5;  // share of the pairs whose prompts show exemplars
    std::size_t exemplars = 2;    // exemplars per prompt, or fewer if there are not as many
    // Tokens of a pair for which its prompt loses exemplars, the first ones first; 0: no limit.
    std::size_t context = 0;
  };
  // `facts` are by task name. `codec` and `prompts` must outlive the data set.
  sft_data_set(const text_codec& codec, const prompt_template& prompts,
               std::map<std::string, prompt_facts> facts, const options& o)
      : codec_(&codec), prompts_(&prompts), facts_(std::move(facts)), options_(o) {}

  void add(scored_document document);
  std::size_t size() const { return documents_.size(); }

  // Draws the next pair. Each epoch draws every document once, in a new random order; a document
  // that was added late is drawn twice per epoch while it is more than one draw behind the others.
  // Throws std::logic_error if there is no document, and std::out_of_range if the document's task
  // has no facts.
  sft_example next(std::mt19937_64& random);

  // The state of the draws: which documents are left in this epoch, and how often each was drawn.
  // A data set to which the same documents are added in the same order continues from it; a state
  // of other documents is used as far as it fits.
  std::string state() const;
  void restore(const std::string& state);

 private:
  const text_codec* codec_;
  const prompt_template* prompts_;
  std::map<std::string, prompt_facts> facts_;
  options options_;
  std::vector<scored_document> documents_;
  // Number of draws of each document; after restore(), also of documents that are yet to be added.
  std::vector<std::size_t> seen_;
  std::vector<std::vector<token_id>> tokens_;  // of each document, with the end token
  // Indices of the documents by task and device type.
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> by_place_;
  std::vector<std::size_t> order_;  // documents left in this epoch; the last one is next
};

}  // namespace hone
