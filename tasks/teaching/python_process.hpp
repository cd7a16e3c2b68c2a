#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "process/child_process.hpp"
#include "process/line_connection.hpp"

namespace hone {

// A Python program of the teacher that reads and writes lines.
struct python_process {
  child_process process;
  line_connection connection;
};

// Starts a program with these arguments. Its name, and the most bytes of an answer, are those of
// its connection. Throws std::system_error.
python_process start_python(const std::filesystem::path& python,
                            const std::filesystem::path& program,
                            const std::vector<std::string>& arguments, const std::string& name,
                            std::size_t max_bytes, bool ignores_stop_signals = false);

}  // namespace hone
