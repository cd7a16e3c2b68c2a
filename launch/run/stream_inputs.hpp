#pragma once

#include <filesystem>
#include <vector>

#include "launch/configuration.hpp"
#include "policy/training/pair_stream.hpp"
#include "tasks/corpus.hpp"
#include "tasks/task_table.hpp"
#include "tasks/teaching/lesson_source.hpp"

namespace hone {

// Returns what the processes of the stream of synthesised tasks are started with. `excluded`: file
// of exclude_held_out(). Throws std::runtime_error if the program or its Python is not found.
lesson_process::settings stream_settings(const configuration& c,
                                         const std::filesystem::path& excluded);

// Writes the references of the held-out tasks to a file that the stream's processes read: no lesson
// has the structure of one of them.
void exclude_held_out(const task_table& tasks, const std::filesystem::path& file);

// Adds the tasks of a sample of the stream's lessons to a run's tasks and returns the lessons'
// documents, which are judged: nothing else of the stream is. Throws std::runtime_error.
std::vector<corpus_document> add_stream_sample(const configuration& c,
                                               const std::filesystem::path& excluded,
                                               task_table& tasks);

}  // namespace hone
