#include "launch/run/stream_inputs.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launch/files.hpp"
#include "launch/teaching.hpp"
#include "process/find_program.hpp"
#include "process/replace_file.hpp"
#include "tasks/program_functions.hpp"

namespace hone {

lesson_process::settings stream_settings(const configuration& c,
                                         const std::filesystem::path& excluded) {
  return {.python = find_python(),
          .program = find_python_program("tasks/teaching/stream.py"),
          .seed = c.seed,
          .variants = c.stream.variants,
          .tier_1_share = c.stream.tier_1_share,
          .tier_1_last_share = c.stream.tier_1_last_share,
          .mix_lessons = c.stream.mix_lessons,
          .contrast_share = c.stream.contrast_share,
          .device_kind = std::string(taught_kind(c.node.devices)),
          .excluded = excluded};
}

void exclude_held_out(const task_table& tasks, const std::filesystem::path& file) {
  auto references = nlohmann::json::array();
  for (const auto& t : tasks.all()) {
    if (tasks.is_held_out(t->id)) references.push_back(functions_of_program(t->reference));
  }
  replace_file(file, references.dump(1) + "\n", 0644);
}

std::vector<corpus_document> add_stream_sample(const configuration& c,
                                               const std::filesystem::path& excluded,
                                               task_table& tasks) {
  const double pairs = static_cast<double>(c.learner.plan.sft.updates * c.learner.plan.sft.batch);
  const double lessons = pairs / c.stream.variants;
  const auto count = std::min<std::uint64_t>(
      c.stream.max_judged, static_cast<std::uint64_t>(lessons / c.stream.judge_one_in));
  lesson_process source(stream_settings(c, excluded), 0, c.stream.judge_one_in);
  std::vector<corpus_document> documents;
  for (std::uint64_t i = 0; i < count; ++i) {
    lesson one = source.next();
    if (!one.skipped.empty()) continue;
    const std::string where = "lesson " + std::to_string(one.number) + " of the stream";
    tasks.add(parse_task(one.task, where), task_role::sample);
    if (one.contrast) one.documents.push_back(std::move(one.contrast->document));
    for (std::string& text : one.documents) {
      const std::string name = "teacher-" + std::to_string(documents.size());
      documents.push_back({one.name, name, std::move(text), where});
    }
  }
  return documents;
}

}  // namespace hone
