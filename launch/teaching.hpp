#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/corpus.hpp"
#include "tasks/teaching/teacher.hpp"

namespace hone {

// Finds the teacher's program and its Python. Throws std::runtime_error.
teacher::settings find_teacher(std::uint64_t seed);

// Returns the kind of device that the teacher writes for in a run with these devices: that of the
// first one, or a GPU.
std::string_view taught_kind(const std::vector<std::string>& devices);

// Has the teacher write `count` variants of a task, from number `first` on (teacher::write), for a
// kind of device ("cpu", "cuda" or "simulated"), less repetitions. Throws std::runtime_error.
std::vector<corpus_document> teach(teacher& by, const task& t, std::string_view device_kind,
                                   std::uint64_t first, std::uint32_t count);

}  // namespace hone
