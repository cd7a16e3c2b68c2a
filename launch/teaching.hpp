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

// Has the teacher write its first `count` variants of a task for a kind of device ("cpu", "cuda" or
// "simulated"), less repetitions. Throws std::runtime_error.
std::vector<corpus_document> teach(teacher& by, const task& t, std::string_view device_kind,
                                   std::uint32_t count);

}  // namespace hone
