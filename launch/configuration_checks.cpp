#include "launch/configuration_checks.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <tuple>
#include <vector>

#include "network/address.hpp"
#include "network/identity.hpp"
#include "policy/policy_device.hpp"
#include "tasks/reading_toml.hpp"

namespace hone {
namespace {

// True of what TOML takes as a key without quotes.
bool is_bare_key(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
}

// Refuses what contradicts itself in how the policy learns and samples.
template <class Refuse>
void check_policy(const configuration& c, const Refuse& refuse) {
  if (c.policy.adapters.rank > 0 && c.policy.random_weights)
    refuse("policy.adapter_rank", "needs weights of a folder, and policy.random_weights is true");
  const auto check_kind = [&](const std::string& key, const std::string& device) {
    const bool is_cuda = c.policy.device.starts_with("cuda");
    if (device.starts_with("cuda") != is_cuda || (!is_cuda && device != "cpu"))
      refuse(key, "names '" + device + "', and policy.device is " + c.policy.device +
                      "; both must be CPUs or GPUs");
  };
  for (const std::string& device : c.generation.devices) check_kind("generation.devices", device);
  std::vector<std::string> training = {c.policy.device};
  for (const std::string& device : c.policy.data_parallel) {
    check_kind("policy.data_parallel", device);
    const auto is_this = [&](const std::string& other) { return are_same_device(device, other); };
    if (device != "cpu" && std::any_of(training.begin(), training.end(), is_this))
      refuse("policy.data_parallel", "names '" + device + "', which trains already");
    training.push_back(device);
  }
}

// Refuses stages that cannot learn or would never end.
template <class Refuse>
void check_stages(const configuration& c, const Refuse& refuse) {
  if (c.policy.kind == "model" && c.learner.plan.sft.updates > 0 && c.corpus.folder.empty() &&
      c.corpus.taught == 0 && c.stream.workers == 0)
    refuse("corpus.folder",
           "is missing: the sft stage learns from a corpus (or from what the teacher writes, with "
           "corpus.taught or stream.workers)");
  const auto must_fit = [&](const std::string& key, std::int64_t steps, std::int64_t groups) {
    if (steps > 0 && groups > static_cast<std::int64_t>(c.pool.draws.max_groups))
      refuse(key, "is " + std::to_string(groups) + ", and pool.max_groups lets no more than " +
                      std::to_string(c.pool.draws.max_groups) +
                      " be drawn: no step would ever be full");
  };
  must_fit("self_supervised.groups", c.learner.plan.self_supervised.steps,
           c.learner.plan.self_supervised.groups);
  const contrastive_stage_options& contrastive = c.learner.plan.contrastive;
  must_fit("contrastive.groups", contrastive.steps, contrastive.groups);
  must_fit("contrastive.max_groups", contrastive.steps, contrastive.max_groups);
  if (c.policy.kind == "model" && contrastive.steps > 0 && c.pool.draws.samples < 2)
    refuse("generation.group_size",
           "is 1: the contrastive stage compares the samples of a group with each other, and would "
           "learn nothing");
  // Rates that suit a million weights ruin a hundred million.
  const auto needs_rate = [&](const std::string& stage, std::int64_t steps, double rate) {
    if (c.policy.kind == "model" && steps > 0 && rate == 0)
      refuse(stage + ".rate",
             "is 0 or missing: none suits policies of all sizes (configs/gpu.toml has "
             "one for 25 million weights)");
  };
  needs_rate("self_supervised", c.learner.plan.self_supervised.steps,
             c.learner.plan.self_supervised.rate);
  needs_rate("contrastive", c.learner.plan.contrastive.steps, c.learner.plan.contrastive.rate);
  if (!c.node.baselines && needs_baselines(c.learner.plan.contrastive.reward))
    refuse("node.baselines", "is false, and the reward depends on the fastest baseline");
}

// Refuses addresses that cannot be listened on. Clients of other machines need tokens, which must
// not travel in plain text.
template <class Refuse>
void check_addresses(const configuration& c, const Refuse& refuse) {
  const bool serves_others = !c.serve.tokens.empty() && !c.serve.certificate.empty();
  for (const auto& [key, text, is_for_others] :
       {std::tuple("node.metrics", c.node.metrics, true),
        std::tuple("node.listen", c.node.listen, true),
        std::tuple("serve.listen", c.serve.listen, serves_others)}) {
    if (text.empty()) continue;
    try {
      if (!is_loopback(parse_address(text, /*allows_any_port=*/true)) && !is_for_others)
        refuse(key, "'" + text +
                        "' is not a loopback address: clients of other machines need tokens "
                        "(serve.tokens) and TLS (serve.certificate, serve.key)");
    } catch (const network_error& e) {
      refuse(key, e.what());
    }
  }
}

}  // namespace

void check_configuration(const configuration& c) {
  format_problems problems;
  const auto refuse = [&](const std::string& key, const std::string& problem) {
    problems.add({c.file.string(), 0, key, problem});
  };
  if (c.directory.empty()) refuse("directory", "is empty, expected the path of a folder");
  if (c.node.silence_ms < min_heartbeats_in_silence * c.node.heartbeat_ms)
    refuse("node.silence_s", "is less than three times node.heartbeat_s");
  check_addresses(c, refuse);
  const auto kinds = {"model", "endpoint", "teacher", "scripted", "none"};
  if (std::find(kinds.begin(), kinds.end(), c.policy.kind) == kinds.end())
    refuse("policy.kind",
           "is '" + c.policy.kind + "', expected model, endpoint, teacher, scripted or none");
  if (c.policy.kind == "endpoint" && c.endpoints.empty())
    refuse("policy.kind", "is 'endpoint', and there is no [endpoint.NAME]");
  if (c.policy.kind == "endpoint" && c.generation.replicas > 1)
    refuse("generation.replicas",
           "is above 1: each would have the endpoints' limits for itself; raise their concurrency");
  if (c.policy.kind == "endpoint" && c.generation.replicas == 0)
    refuse("generation.replicas", "is 0, and nodes that join ask no endpoints");
  for (const auto& [name, options] : c.endpoints) {
    if (!is_bare_key(name))
      refuse("endpoint", "has the name '" + name + "', expected letters, digits, - and _");
  }
  if (c.policy.kind == "model" && c.policy.folder.empty()) refuse("policy.folder", "is missing");
  if ((c.policy.kind == "model" || c.policy.kind == "endpoint") && c.prompt.prompt_template.empty())
    refuse("prompt.template", "is missing");
  if (c.prompt.format != "auto" && c.prompt.format != "plain" && c.prompt.format != "chat")
    refuse("prompt.format", "is '" + c.prompt.format + "', expected auto, plain or chat");
  check_policy(c, refuse);
  if (c.serve.certificate.empty() != c.serve.key.empty())
    refuse("serve.key", "and serve.certificate belong together");
  if (c.node.devices.empty() && c.corpus.taught > 0)
    refuse("node.devices", "is empty, and corpus.taught writes for the first of them");
  for (const std::string& device : c.node.devices) {
    const bool is_gpu = device == "cuda" || device.starts_with("cuda:");
    if (device != "cpu" && !is_gpu && !is_simulated(device))
      refuse("node.devices",
             "'" + device + "' is unknown, expected cpu, cuda, cuda:NUMBER or simulated:NAME");
  }
  const auto simulated = std::count_if(c.node.devices.begin(), c.node.devices.end(), is_simulated);
  if (simulated != 0 && simulated != std::ssize(c.node.devices) && !c.node.options.mixes_simulation)
    refuse("node.devices",
           "names simulated and real devices, and the scores of simulated ones are made up "
           "(node.mix_simulated = true allows it, to test a system)");
  check_stages(c, refuse);
  if (c.generation.options.sampling.top_p <= 0) refuse("generation.top_p", "must be above 0");
  problems.throw_if_any();
}

}  // namespace hone
