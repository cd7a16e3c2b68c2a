#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tasks/teaching/lesson_source.hpp"

namespace hone::testing_support {

// Lessons without a process. Every fifth one has no task, the others have two documents.
class counted_lessons final : public lesson_source {
 public:
  counted_lessons(std::uint64_t first, std::uint64_t step) : next_(first), step_(step) {}

  lesson next() override {
    lesson made;
    made.number = next_;
    const std::string number = std::to_string(next_);
    next_ += step_;
    if (made.number % 5 == 4) {
      made.skipped = "its result is empty";
      return made;
    }
    made.name = "task_" + number;
    made.task = "name = \"task_" + number +
                "\"\nsummary = \"s\"\nreference = '''\ndef forward(x: Tensor) -> Tensor:\n    "
                "return x\n'''\n[[input]]\nname = \"x\"\nshape = [4]\n[[case]]\ntimed = true\n";
    made.documents = {"document " + number + " a", "document " + number + " b"};
    return made;
  }

  static std::unique_ptr<lesson_source> open(std::uint64_t first, std::uint64_t step) {
    return std::make_unique<counted_lessons>(first, step);
  }

 private:
  std::uint64_t next_;
  std::uint64_t step_;
};

}  // namespace hone::testing_support
