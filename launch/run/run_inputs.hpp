#pragma once

#include <map>
#include <memory>
#include <vector>

#include "evaluation/devices.hpp"
#include "launch/configuration.hpp"
#include "launch/run/run_pace.hpp"
#include "messages/caf_records.hpp"
#include "policy/text/prompt.hpp"
#include "policy/training/trainer.hpp"
#include "tasks/corpus.hpp"
#include "tasks/task_table.hpp"

namespace hone {

// Read a run's inputs from files before anything is started. All functions throw format_error,
// which names the file and the key.

// Reads the tasks that the configuration names, or all tasks of its folder if it names none.
task_table load_tasks(const configuration& c);

// Reads all documents of the corpus; none if the run has no corpus. Of each task that it holds none
// of, the teacher writes corpus.taught, for the kind of the run's first device. Throws
// std::runtime_error if the teacher cannot.
std::vector<corpus_document> read_corpus(const configuration& c, const task_table& tasks);

// Returns the documents of a corpus that the run takes: those of `tasks`, each distinct text
// once, at most corpus.per_task per task, and corpus.held_out per held-out task.
std::vector<corpus_document> choose_documents(const configuration& c, const task_table& tasks,
                                              const std::vector<corpus_document>& corpus);

// Returns one group per document and device type, in the order in which they enter the pool: one
// document of each task in turn, so that every task has exemplars early. The ids follow from the
// contents, so that a resumed run records each group only once. `timed`: as corpus.timed; documents
// of held-out tasks are timed in any case.
std::vector<group_record> make_corpus_groups(const std::vector<corpus_document>& documents,
                                             const task_table& tasks,
                                             const std::vector<std::string>& device_types,
                                             bool timed);

// The template of prompts if the configuration names none: the task's name.
inline constexpr const char* default_prompts = "{{task}}\n";

// Reads the prompt template. If the configuration names none, a prompt is the task's name.
std::shared_ptr<const prompt_template> load_prompts(const configuration& c);

// Returns what prompt.format says of the policy's folder: the format of its chat template, or a
// plain one. Throws policy_error.
chat_format find_chat_format(const configuration& c);

// True if a stage trains the policy.
bool trains(const configuration& c);

// True if the first version of the policy has random weights.
bool begins_random(const configuration& c);

// Returns what the stages are to do in which the policy writes, with these tasks and this many
// types of device.
std::map<Stage, stage_work> work_of_stages(const configuration& c, const task_table& tasks,
                                           std::size_t device_types);

// Returns the device of each generator.
std::vector<std::string> devices_of_generators(const configuration& c);

// Returns a sentence if the policy is computed in another type than its weights have, or in one
// that is slow on its device; otherwise nothing. Throws policy_error.
std::string describe_dtype(const configuration& c);

// Refuses a model that a run cannot start from: its folder, files of weights or device are missing
// or damaged. Reads the files' heads alone. Throws format_error.
void require_policy(const configuration& c);

// Opens the policy for training. Returns null for the teacher and a scripted policy. Throws
// policy_error.
std::unique_ptr<trainer> make_trainer(const configuration& c);

}  // namespace hone
