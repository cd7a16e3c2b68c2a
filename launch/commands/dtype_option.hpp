#pragma once

#include <CLI/CLI.hpp>

#include "policy/decoder_config.hpp"

namespace hone {

// Adds --dtype, which is what a policy is computed in.
inline void add_dtype_option(CLI::App& command, compute_dtype& dtype) {
  command
      .add_option_function<std::string>(
          "--dtype", [&dtype](const std::string& name) { dtype = *compute_dtype_named(name); },
          "auto (the type of the weights on GPUs, float32 on CPUs), float32, bfloat16 or float16")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}));
}

}  // namespace hone
