#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"

namespace hone::testing_support {

// Returns "ok", or the outcome and the message of the error.
inline std::string verdict(const std::string& source, std::size_t inputs = 1,
                           std::size_t parameters = 0) {
  torchscript_program::enter_thread();  // as in a sandbox
  try {
    torchscript_program program(source, inputs, parameters);
    return "ok";
  } catch (const program_error& e) {
    return std::string(name_of(e.outcome)) + ": " + e.what();
  }
}

// Return a host program of one input: with these statements, or that returns this expression.
inline std::string body(const std::string& statements) {
  return "def forward(x: Tensor) -> Tensor:\n" + statements;
}
inline std::string returning(const std::string& expression) {
  return body("    return " + expression + "\n");
}

// Returns the output of a host program of one input.
inline at::Tensor run(const std::string& source, const at::Tensor& x) {
  torchscript_program::enter_thread();
  torchscript_program program(source, 1, 0);
  std::vector<c10::IValue> arguments = {x};
  return program.forward(arguments).at(0);
}

}  // namespace hone::testing_support
