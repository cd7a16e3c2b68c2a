#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>

#include "policy/decoder_config.hpp"

namespace hone {

// Adds the folder of a model.
inline void add_model_folder(CLI::App& command, std::string& folder) {
  command
      .add_option("folder", folder,
                  "Hugging Face folder with config.json, tokenizer.json and safetensors")
      ->required()
      ->check([](const std::string& given) {
        return std::filesystem::is_directory(given)
                   ? std::string()
                   : given + " is not a folder, expected one as scripts/get-smollm2 makes it";
      });
}

// Adds --dtype, which is what a policy is computed in.
inline void add_dtype_option(CLI::App& command, compute_dtype& dtype) {
  command
      .add_option_function<std::string>(
          "--dtype", [&dtype](const std::string& name) { dtype = *compute_dtype_named(name); },
          "auto (the type of the weights on GPUs, float32 on CPUs), float32, bfloat16 or float16")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "float16"}));
}

}  // namespace hone
