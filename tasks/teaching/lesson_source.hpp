#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/teaching/python_process.hpp"

namespace hone {

// A synthesised task with the documents that the teacher has written for it. Nothing has judged
// them.
struct lesson {
  std::uint64_t number = 0;
  std::string name;                    // of the task
  std::string task;                    // text of the task file
  std::vector<std::string> documents;  // distinct
  // The document of a variant whose analysis compares two slower ones that its prompt shows. The
  // speed-ups are estimates (tasks/teaching/costs.py), so they must not get into a pool.
  struct contrast_pair {
    struct slower {
      double estimate = 0;
      std::string document;
    };
    std::vector<slower> shown;  // by ascending estimate
    std::string document;
  };
  std::optional<contrast_pair> contrast;
  std::string skipped;  // why the number has no task; empty if it has one
};

// Gives lessons whose content depends on a seed and their number alone. Confined to one thread.
class lesson_source {
 public:
  virtual ~lesson_source() = default;
  // Blocks until the next lesson is there. Throws std::runtime_error.
  virtual lesson next() = 0;
};

// The lessons number `first`, `first` + `step`, ... of a process that draws tasks and has the
// teacher write for them (stream.py). The process starts with the first lesson, on the thread that
// asks for it, and ends with that thread or with this object.
class lesson_process final : public lesson_source {
 public:
  struct settings {
    std::filesystem::path python;   // interpreter with torch
    std::filesystem::path program;  // stream.py
    std::uint64_t seed = 1;
    std::uint32_t variants = 1;  // most documents of a lesson
    // Share of the lessons that are of tier 1: of the first one, and from lesson `mix_lessons` on.
    // Between them it changes linearly.
    double tier_1_share = 1;
    double tier_1_last_share = 1;
    std::uint64_t mix_lessons = 1;
    double contrast_share = 0;       // share of the lessons that have a contrast and no documents
    std::string device_kind;         // "cpu" or "cuda"
    std::filesystem::path excluded;  // file of structures that no lesson may have; empty: none
  };
  lesson_process(settings chosen, std::uint64_t first, std::uint64_t step)
      : settings_(std::move(chosen)), first_(first), step_(step) {}
  lesson next() override;

 private:
  void start();

  settings settings_;
  std::uint64_t first_;
  std::uint64_t step_;
  python_process python_;
};

}  // namespace hone
