#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tasks/task_file.hpp"

namespace hone {

// A variant document that a benchmark judges.
struct bench_document {
  std::string name;  // the corpus file's name with its sweep's values, or "reference"
  std::string text;
  std::string id;  // of the task, the text and the judge's version; set by plan_bench()
};

// A task of a benchmark, with the documents that are judged against it.
struct bench_task {
  task of;
  std::string group;  // "level1" for a task named "level1_12_matmul", else "all"
  std::vector<bench_document> documents;
};

// What `hone bench` judges.
struct bench_plan {
  std::vector<bench_task> tasks;  // by name
  std::size_t documents() const;
};

// Loads the tasks that `tasks` names: task files, folders of them, or names under configs/tasks.
// The documents of a task are those of its subfolder of `variants` (see load_corpus()) and of the
// file variants/TASK.md. With `references`, a task's reference is judged against itself as well.
// Throws format_error if two tasks have one name, if a folder holds no task, or if `variants` has
// documents for a task that is not there. `variants` may be empty.
bench_plan plan_bench(const std::vector<std::string>& tasks, const std::filesystem::path& variants,
                      bool references);

}  // namespace hone
