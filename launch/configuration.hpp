#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "actors/learner.hpp"
#include "actors/node.hpp"
#include "actors/pool.hpp"
#include "actors/timeouts.hpp"
#include "evaluation/devices.hpp"
#include "launch/serve/service_limits.hpp"
#include "policy/endpoint/endpoint_options.hpp"
#include "policy/sampling/generation.hpp"
#include "policy/text/chat_format.hpp"
#include "policy/training/optimizer.hpp"

namespace hone {

// The complete configuration of a run. The options structs that it embeds own the defaults of what
// they configure; the sections here own the rest. launch/configuration_keys.hpp lists every key.
// Paths in a file are relative to the file, those in overrides to the current folder; paths here
// are absolute.
struct configuration {
  std::filesystem::path file;
  std::uint64_t seed = 1;
  std::string directory = "runs/hone";
  bool trace = true;

  struct {
    bool tensorboard = false;
  } run;
  struct {
    std::uint16_t port = 0;
    std::string listen;    // HOST:PORT; empty: 127.0.0.1 and `port`
    std::string identity;  // folder; empty: none
    std::string metrics;   // HOST:PORT; empty: off
    std::uint64_t heartbeat_ms = signs_of_life{}.every.count();
    std::uint64_t silence_ms = signs_of_life{}.lost_after.count();
    std::vector<std::string> devices = {"cpu"};
    bool share_cores = false;
    bool baselines = true;
    node_options options;
  } node;
  struct {
    std::string folder = "tasks";
    std::vector<std::string> names;
    std::vector<std::string> held_out;
    std::size_t held_out_count = 0;
  } tasks;
  struct {
    std::string folder;
    std::int64_t per_task = 0;
    std::uint32_t taught = 0;
    std::uint32_t taught_first = 0;
    std::uint32_t held_out = 0;
    bool timed = true;
  } corpus;
  struct {
    std::size_t workers = 0;
    std::uint32_t variants = 1;
    double tier_1_share = 0.8;
    double tier_1_last_share = 0.3;
    std::uint64_t mix_lessons = 10000;
    double contrast_share = 0;
    std::uint32_t judge_one_in = 200;
    std::uint64_t max_judged = 500;
  } stream;
  struct {
    std::string prompt_template;
    std::string format = "auto";
  } prompt;
  struct {
    std::string kind = "model";
    std::string folder;
    bool random_weights = false;
    std::string device = "cpu";
    compute_dtype dtype = compute_dtype::automatic;
    std::vector<std::string> data_parallel;  // devices that train in addition to `device`
    std::int64_t threads = 1;
    std::int64_t micro_batch_tokens = 8192;
    bool recompute = false;
    adapter_options adapters;
    chat_format chat;  // no key: what prompt.format finds in the folder (launch/run/run_inputs.hpp)
  } policy;
  struct {
    std::int64_t replicas = 1;
    generation_options options;
    std::vector<std::string> devices;  // none: policy.device
    bool stop_at_program = false;
  } generation;
  // Of `hone serve`.
  struct {
    std::string listen = "127.0.0.1:8470";
    std::string tokens;  // file; empty: none
    std::string certificate;
    std::string key;
    service_limits limits;
    std::size_t max_tasks = 10000;
    std::size_t importers = 1;
    double keep_hours = 24;
  } serve;
  pool_actor_options pool;
  std::vector<std::string> max_lag_of;  // TEXT=STEPS; `pool` has them as numbers
  learner_options learner;
  optimizer_options optimizer;
  std::map<std::string, simulated_device_options> simulated;
  std::map<std::string, endpoint_options> endpoints;  // by name
};

// Reads a configuration and applies `overrides` ("section.key=value"). Throws format_error that
// names the file, the line (or --set), the key, what was found and what was expected.
configuration load_configuration(const std::filesystem::path& file,
                                 const std::vector<std::string>& overrides);

// Returns how the simulated devices of a run behave, by NAME; `text`: its whole configuration, as
// print_configuration() returns it. Throws format_error.
std::map<std::string, simulated_device_options> parse_simulated(const std::string& text);

// Returns the whole configuration as TOML that reads back to the same. `with_comments` adds a
// sentence about each key.
std::string print_configuration(const configuration& c, bool with_comments);

// Returns a reference of all keys, with their defaults, as Markdown: doc/configuration.md.
std::string configuration_reference();

}  // namespace hone
