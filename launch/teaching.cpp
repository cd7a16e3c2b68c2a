#include "launch/teaching.hpp"

#include "launch/files.hpp"
#include "process/find_program.hpp"

namespace hone {

teacher::settings find_teacher(std::uint64_t seed) {
  return {.python = find_python(),
          .program = find_python_program("tasks/teaching/teach.py"),
          .seed = seed};
}

std::string_view taught_kind(const std::vector<std::string>& devices) {
  return !devices.empty() && devices.front() == "cpu" ? "cpu" : "cuda";
}

std::vector<corpus_document> teach(teacher& by, const task& t, std::string_view device_kind,
                                   std::uint64_t first, std::uint32_t count) {
  std::vector<corpus_document> documents;
  for (std::string& text : by.write(t, device_kind, first, count).documents) {
    const std::string name = "teacher-" + std::to_string(documents.size());
    documents.push_back({t.name, name, std::move(text), "the teacher's " + t.name + "/" + name});
  }
  return documents;
}

}  // namespace hone
