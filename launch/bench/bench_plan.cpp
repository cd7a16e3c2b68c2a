#include "launch/bench/bench_plan.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "launch/files.hpp"
#include "messages/ids.hpp"
#include "messages/versions.hpp"
#include "tasks/corpus.hpp"
#include "tasks/format_error.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// Returns "level1" for "level1_12_matmul", the form of the names that `hone task import` gives to
// KernelBench's problems.
std::string group_of(const std::string& task_name) {
  constexpr std::string_view prefix = "level";
  std::size_t end = prefix.size();
  if (!task_name.starts_with(prefix)) return "all";
  while (end < task_name.size() && std::isdigit(static_cast<unsigned char>(task_name[end])) != 0)
    ++end;
  const bool has_level = end > prefix.size() && end < task_name.size() && task_name[end] == '_';
  return has_level ? task_name.substr(0, end) : "all";
}

// Returns the reference of a task as a variant document.
std::string reference_document(const task& t) {
  return "## Code Implementation\n```python\n" + t.reference +
         (t.reference.ends_with('\n') ? "" : "\n") + "```\n";
}

std::string id_of(const task& t, const std::string& text) {
  const auto variant = make_variant(t.id, text);
  return to_string(t.id) + "/" + to_string(variant_id(variant->getId())) + "/judge" +
         std::to_string(judge_version);
}

// Returns the documents below `folder`, by task: FOLDER/TASK/*.md and FOLDER/TASK.md.
std::map<std::string, std::vector<bench_document>> load_documents(const fs::path& folder) {
  std::map<std::string, std::vector<bench_document>> by_task;
  if (folder.empty()) return by_task;
  if (!fs::is_directory(folder)) throw format_error(folder.string(), 0, "", "is not a folder");
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".md") continue;
    const std::string task = entry.path().stem().string();
    for (const corpus_document& one :
         expand_corpus_text(read_text(entry.path().string()), entry.path().string(), task, task))
      by_task[task].push_back({one.name, one.text, ""});
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    for (const corpus_document& one : load_corpus(entry.path()))
      by_task[one.task].push_back({one.name, one.text, ""});
  }
  return by_task;
}

}  // namespace

std::size_t bench_plan::documents() const {
  std::size_t count = 0;
  for (const bench_task& t : tasks) count += t.documents.size();
  return count;
}

bench_plan plan_bench(const std::vector<std::string>& tasks, const fs::path& variants,
                      bool references) {
  auto documents = load_documents(variants);
  std::map<std::string, bench_task> by_name;
  for (const std::string& named : tasks) {
    for (const fs::path& file : find_task_files(named)) {
      bench_task one;
      one.of = load_task(file);
      one.group = group_of(one.of.name);
      if (references) one.documents.push_back({"reference", reference_document(one.of), ""});
      if (const auto found = documents.extract(one.of.name))
        one.documents.insert(one.documents.end(), found.mapped().begin(), found.mapped().end());
      for (bench_document& document : one.documents) document.id = id_of(one.of, document.text);
      const std::string name = one.of.name;
      if (!by_name.emplace(name, std::move(one)).second)
        throw format_error(file.string(), 0, "", "is a second task named '" + name + "'");
    }
  }
  if (!documents.empty())
    throw format_error(
        variants.string(), 0, "",
        "has documents for '" + documents.begin()->first + "', which is none of the tasks");
  bench_plan plan;
  for (auto& [name, one] : by_name) plan.tasks.push_back(std::move(one));
  if (plan.documents() == 0)
    throw format_error(variants.empty() ? tasks.front() : variants.string(), 0, "",
                       "there is no document to judge; name a folder of documents with --variants, "
                       "or ask for --references");
  return plan;
}

}  // namespace hone
