#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/generator.hpp"
#include "evaluation/devices.hpp"
#include "launch/configuration.hpp"
#include "messages/caf_records.hpp"
#include "network/files/file_server.hpp"
#include "network/files/folder_copy.hpp"
#include "policy/text/prompt.hpp"

namespace hone {

// What generators are made of, on a run's first node and on nodes that join it.

// Makes the sampler of a generator, which opens its policy. `stream`: the number of its stream of
// random numbers; the generators of a run have different ones. Throws policy_error or
// std::runtime_error.
std::unique_ptr<completion_sampler> make_sampler(
    const configuration& settings, const std::string& device, std::uint64_t stream,
    const std::function<void(const std::string&)>& log);

// Gives each device of the policy that also judges its GPU leases, and lengthens the time limit of
// that device's jobs, which wait for them. `log` receives a line about each such device. Returns
// the shared GPUs by the policy's device, without their node.
std::map<std::string, shared_gpu> share_gpus(const std::vector<std::string>& users,
                                             std::vector<planned_device>& devices,
                                             const std::function<void(const std::string&)>& log);

// Returns a joined node's settings for generators, beyond the run's configuration and without the
// number of the first one. `settings` has the chat format that the run uses. Throws format_error.
generator_setup_record make_generator_setup(const configuration& settings);

// Offers joined nodes the run's checkpoints, "checkpoints/N", and the files of its policy,
// "policy": without weights, since a checkpoint has them, unless checkpoints are adapters. The
// folder of the run must outlive the server.
file_server::find_folder offer_policy(const configuration& settings,
                                      const std::filesystem::path& run_folder);

// The same on a joined node, whose policy is a copy.
struct generator_inputs {
  configuration settings;
  std::shared_ptr<const prompt_template> prompts;
};

// Reads what the first node has sent, the run's configuration as TOML and the rest. `cache` is the
// folder of the node's copies. Throws format_error.
std::shared_ptr<generator_inputs> read_generator_setup(const std::string& configuration,
                                                       const generator_setup_record& setup,
                                                       const std::filesystem::path& cache);

// The copy of the run's policy, which all generators of a node share. Safe on any thread.
class policy_copy {
 public:
  policy_copy(copy_sources sources, std::filesystem::path cache)
      : sources_(std::move(sources)), cache_(std::move(cache)) {}

  // Returns its folder; the first call makes it, and others wait. Throws network_error.
  std::filesystem::path folder();

 private:
  copy_sources sources_;
  std::filesystem::path cache_;
  std::mutex lock_;  // guards the next one
  std::filesystem::path folder_;
};

// Makes the copy of a checkpoint independent of the first node's folders: adapters belong to the
// copy of the policy from then on. Throws network_error or policy_error.
void prepare_checkpoint(const std::filesystem::path& checkpoint, policy_copy& policy);

}  // namespace hone
