#pragma once

#include <string>
#include <vector>

#include "launch/configuration.hpp"
#include "policy/text/prompt.hpp"
#include "tasks/corpus.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// Problems with the lengths of prompts and documents, and other findings that are worth knowing.
struct length_findings {
  std::vector<std::string> problems;
  std::vector<std::string> warnings;  // a policy could not write what it is to learn from
  std::vector<std::string> notes;     // what else a dry run tells
  std::size_t max_prompt = 0;         // tokens, exemplars included
};

// Compares prompts, with and without exemplars, and the corpus's documents with the policy's
// context and with generation.max_new_tokens. The policy must be a model. Throws policy_error or
// format_error if the policy's folder cannot be read.
length_findings check_lengths(const configuration& c, const task_table& tasks,
                              const prompt_template& prompts,
                              const std::vector<corpus_document>& documents);

}  // namespace hone
