#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tasks/corpus.hpp"
#include "tasks/task_file.hpp"
#include "tests/support/source_folder.hpp"

namespace hone::testing_support {

// Documents of a corpus and their tasks by name. A judge must not refuse any of the documents.
struct honest_set {
  std::map<std::string, task> tasks;
  std::vector<corpus_document> documents;
};

// Loads the documents of tests/evaluation/honest, whose algorithms differ from their references',
// and their tasks: from `tasks`, or else from the exploits' tasks.
inline honest_set load_other_algorithms(const std::filesystem::path& tasks) {
  const std::filesystem::path tests = source_folder() / "tests/evaluation";
  honest_set set;
  set.documents = load_corpus(tests / "honest");
  for (const corpus_document& document : set.documents) {
    const std::string file = document.task + ".toml";
    const bool ours = std::filesystem::exists(tasks / file);
    set.tasks[document.task] = load_task((ours ? tasks : tests / "exploits/tasks") / file);
  }
  return set;
}

// Loads documents from `configs`/corpus and their tasks from `configs`/tasks. Takes the first
// `of_each_file` documents of every `stride`-th file of each task.
inline honest_set load_honest_set(const std::filesystem::path& configs, std::size_t of_each_file,
                                  std::size_t stride) {
  honest_set set;
  std::map<std::string, std::size_t> files;  // by task: files so far
  std::map<std::string, std::size_t> taken;  // by file: documents so far
  std::map<std::string, bool> chosen;        // by file
  for (corpus_document& document : load_corpus(configs / "corpus")) {
    const std::string file = document.task + "/" + document.name.substr(0, document.name.find(' '));
    if (!chosen.contains(file)) chosen[file] = files[document.task]++ % stride == 0;
    if (!chosen[file] || taken[file]++ >= of_each_file) continue;
    if (!set.tasks.contains(document.task))
      set.tasks[document.task] = load_task(configs / "tasks" / (document.task + ".toml"));
    set.documents.push_back(std::move(document));
  }
  return set;
}

}  // namespace hone::testing_support
