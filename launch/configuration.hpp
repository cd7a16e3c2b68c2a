#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "actors/draw_schedule.hpp"
#include "evaluation/backends/simulated/simulated_device.hpp"
#include "policy/curriculum.hpp"
#include "policy/generation.hpp"
#include "policy/optimizer.hpp"
#include "storage/exemplar_choice.hpp"

namespace hone {

// A run's configuration, complete: what the file leaves out has its default here. Paths are
// relative to the file there, and absolute here.
struct configuration {
  std::filesystem::path file;
  std::uint64_t seed = 1;
  std::string directory = "runs/hone";  // of the run; relative to the current folder

  struct {
    std::uint16_t port = 0;  // 0: a free one
    std::vector<std::string> devices = {"cpu"};
    std::int64_t compilers = 1;
    bool share_cores = false;
  } node;
  struct {
    std::string folder = "tasks";
    std::vector<std::string> names;  // empty: all of the folder
  } tasks;
  struct {
    std::string folder;  // empty: none
    std::int64_t per_task =
        0;  // at most so many documents of each task, spread over its files; 0: all
  } corpus;
  struct {
    std::string prompt_template;
  } prompt;
  struct {
    std::string kind =
        "model";  // or "scripted": documents without a model, to exercise everything else
    std::string folder;
    bool random_weights = true;  // false: from the folder's safetensors
    std::string device = "cpu";
    std::int64_t threads = 1;
  } policy;
  struct {
    std::int64_t group_size = 16;
    std::int64_t replicas = 1;  // generators, each with its own copy of the policy
    generation_options options;
  } generation;
  struct {
    exemplar_options exemplars;
    std::int64_t max_groups = 20;  // drawn and not yet trained on
    std::int64_t max_lag = 2;
    double job_deadline_s =
        600;  // a job that has not come back is sent again; above what queues hold
    std::int64_t keep_checkpoints = 3;
    std::string
        acknowledgements;  // a file that lists what has been acknowledged, for tests of durability
  } pool;
  curriculum_options plan;
  optimizer_options optimiser;
  bool trace = true;
  std::map<std::string, simulated_device_options> simulated;
};

// Reads a configuration with `overrides` ("section.key=value") applied. Throws format_error that
// names the file, the line (or
// --set), the key, what was found and what was expected.
configuration load_configuration(const std::filesystem::path& file,
                                 const std::vector<std::string>& overrides);

// All of it as TOML, which reads back to the same: kept in the run's folder.
std::string print_configuration(const configuration& c);

}  // namespace hone
