#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task_file.hpp"
#include "tasks/teaching/python_process.hpp"

namespace hone {

// The teacher: a program that writes variants of tasks by rules (decision 031). It reads the
// reference's graph and writes kernels of its own for what is not a product or a convolution. What
// its rules do not cover, ATen computes as in the reference, so a variant should be right by
// construction; the judge decides.
//
// The rules are Python, in a process that starts with the first request and again if it was lost
// (tasks/teaching/teach.py says how the two talk). References are parsed and run on tensors without
// contents; nothing of a task is executed. Belongs to the thread that first asks.
class teacher {
 public:
  struct settings {
    std::filesystem::path python;   // interpreter with torch
    std::filesystem::path program;  // teach.py
    std::uint64_t seed = 1;         // of the random moves
  };
  struct lesson {
    std::vector<std::string> documents;  // distinct
    std::string unfit;  // why a document has no kernels of its own; empty if all that could have
  };
  explicit teacher(settings chosen) : settings_(std::move(chosen)) {}

  // Writes the variants number `first` to `first` + `count` - 1 of a task for a kind of device
  // ("cpu", "cuda" or "simulated"). The first two are the teacher's best guess and the reference
  // with settings; the others are drawn. The same numbers are the same variants. Throws
  // std::runtime_error if the process cannot answer.
  lesson write(const task& t, std::string_view device_kind, std::uint64_t first,
               std::uint32_t count);

 private:
  settings settings_;
  python_process python_;
};

}  // namespace hone
