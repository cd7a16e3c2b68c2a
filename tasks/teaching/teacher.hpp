#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task_file.hpp"
#include "tasks/teaching/python_process.hpp"

namespace hone {

// The teacher: a program that writes variants of tasks by rules. It reads the
// reference's graph and writes kernels for all operators but products and convolutions. What its
// rules do not cover, ATen computes as in the reference, so a variant should be right by
// construction; the judge decides.
//
// The rules are Python, in a process that starts with the first request and again if it was lost
// (tasks/teaching/teach.py says how the two talk). References are parsed and run on tensors without
// contents; nothing of a task is executed. Belongs to the thread that first asks.
class teacher {
 public:
  struct settings {
    std::filesystem::path python;            // interpreter with torch
    std::filesystem::path program;           // teach.py
    std::uint64_t seed = 1;                  // of the random moves
    std::chrono::seconds answer_limit{300};  // loading torch on a busy machine included
  };
  struct lesson {
    std::vector<std::string> documents;  // distinct
    std::string unfit;  // why a document has no kernels; empty if all that could have kernels do
  };
  explicit teacher(settings chosen) : settings_(std::move(chosen)) {}

  // Writes the variants number `first` to `first` + `count` - 1 of a task for a kind of device
  // ("cpu", "cuda" or "simulated"). The first two are the teacher's best guess and the reference
  // with settings; the others are drawn. The same numbers are the same variants. A task for which
  // the process ends twice, or gives no answer in time, gets the reference alone, now and later.
  // Throws std::runtime_error if the process does not answer for the smallest task either.
  lesson write(const task& t, std::string_view device_kind, std::uint64_t first,
               std::uint32_t count);

 private:
  lesson ask(const std::string& request);

  settings settings_;
  python_process python_;
  std::map<task_id, std::string> failed_;  // tasks that it cannot write for, and why
};

}  // namespace hone
