#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/configuration.hpp"
#include "tasks/corpus.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// The problems of a run before it starts, as sentences for people.
struct start_findings {
  std::vector<std::string> problems;  // each would make the run fail or learn nothing
  std::vector<std::string> notes;     // other facts that are worth knowing
  std::size_t tasks = 0;
  std::size_t documents = 0;
};

// Checks the corpus of a run: every document parses, every folder is named after a task, and there
// is something to learn from. `corpus`: all of its documents; `chosen`: those that the run takes.
start_findings check_corpus(const configuration& c, const task_table& tasks,
                            const std::vector<corpus_document>& corpus,
                            const std::vector<corpus_document>& chosen);

// Does what a start of the run does, short of starting: reads tasks, corpus and prompts, opens the
// devices and the policy, and compares prompts and documents with the policy's context. Finds all
// problems and not only the first. Keeps this process off the cores that devices reserve.
// `begin_to_wait`: as in device_options.
start_findings check_start(const configuration& c,
                           const std::function<void(const std::string&)>& begin_to_wait);

}  // namespace hone
