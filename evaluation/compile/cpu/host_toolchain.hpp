#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "process/run_process.hpp"

namespace hone {

// Returns the words of a text that white space separates.
std::vector<std::string> words(const std::string& text);

// Returns the options that -march=native implies on this machine's processor, separated by
// blanks. With them, another machine can compile artifacts for this machine's device. Throws
// std::runtime_error if there is no g++.
std::string native_target();
// Returns the compiler and its version: "gcc12.2". Throws std::runtime_error if there is no g++.
std::string compiler_name();
// Returns the path of one of g++'s programs, such as "cc1plus". Throws std::runtime_error.
std::string tool_path(const std::string& name);

// Runs one of g++'s programs in `folder` on hostile input, confined and limited in time and memory.
// Throws block_refused if it exceeds its limits or is killed by others.
process_result run_tool(const std::vector<std::string>& arguments, std::string_view input,
                        std::chrono::steady_clock::time_point deadline, const std::string& folder);

// Throws block_refused with the errors of a program that has failed, as "cuda:12: error: ...".
// Lines are the block's own, because the text behind the prelude begins with `# 1 "cuda"`
// (cpu_compiler.cpp). `what` names the program.
[[noreturn]] void refuse_diagnosed(const process_result& result, const char* what);

}  // namespace hone
