#include "launch/generator_setup.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "actors/timeouts.hpp"
#include "launch/files.hpp"
#include "launch/run/run_inputs.hpp"
#include "launch/teaching.hpp"
#include "policy/endpoint/endpoint_sampler.hpp"
#include "policy/network/adapters.hpp"
#include "policy/policy_device.hpp"
#include "policy/training/checkpoint.hpp"

namespace hone {
namespace {

constexpr const char* policy_folder = "policy";
constexpr std::string_view checkpoints_prefix = "checkpoints/";
constexpr std::chrono::minutes copy_patience{1};
// Folders that stay open, those that were asked for last: the policy and the newest versions.
constexpr std::size_t max_offered = 4;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_of_checkpoint(const std::string& file) {
  return file != "optimizer.safetensors" && file != "checkpoint.json";
}

}  // namespace

std::unique_ptr<completion_sampler> make_sampler(
    const configuration& settings, const std::string& device, std::uint64_t stream,
    const std::function<void(const std::string&)>& log) {
  if (settings.policy.kind == "scripted") return make_scripted_sampler(settings.seed + stream);
  if (settings.policy.kind == "teacher")
    return make_teacher_sampler(find_teacher(settings.seed + stream));
  if (settings.policy.kind == "endpoint")
    return make_endpoint_sampler(settings.endpoints, settings.generation.options, log);
  generation_options options = settings.generation.options;
  options.seed += stream;
  return make_model_sampler(settings.policy.folder, device, settings.policy.dtype, options,
                            {settings.policy.chat, settings.generation.stop_at_program});
}

std::map<std::string, shared_gpu> share_gpus(const std::vector<std::string>& users,
                                             std::vector<planned_device>& devices,
                                             const std::function<void(const std::string&)>& log) {
  std::map<std::string, shared_gpu> shared;
  for (const std::string& user : users) {
    planned_device* const device = find_device_on_gpu(devices, user);
    if (device == nullptr) continue;
    if (device->job_limit) *device->job_limit += timeouts::gpu_lease;
    if (shared.contains(user)) continue;
    shared[user].device = device->name;
    shared[user].finish = [user] { finish_policy_work(user); };
    log("the policy leases " + device->name + " from the judge");
  }
  return shared;
}

generator_setup_record make_generator_setup(const configuration& settings) {
  record_builder<schema::GeneratorSetup> setup;
  setup->setPrompts(settings.prompt.prompt_template.empty()
                        ? default_prompts
                        : read_text(settings.prompt.prompt_template));
  setup->setChat(print_chat_format(settings.policy.chat));
  return setup.finish();
}

file_server::find_folder offer_policy(const configuration& settings,
                                      const std::filesystem::path& run_folder) {
  using entry = std::pair<std::string, std::shared_ptr<const offered_folder>>;
  const auto open_folders = std::make_shared<std::deque<entry>>();
  const auto open_folder = [run_folder, policy = std::filesystem::path(settings.policy.folder),
                            has_adapters = settings.policy.adapters.rank > 0](
                               const std::string& name) -> std::shared_ptr<const offered_folder> {
    if (name == policy_folder) {
      const std::set<std::string> files = policy_files();
      const auto is_offered = [&](const std::string& file) {
        const bool is_weights =
            file.ends_with(".safetensors") || file == "model.safetensors.index.json";
        return files.contains(file) || (has_adapters && is_weights);
      };
      return std::make_shared<offered_folder>(open_offered_folder(policy, is_offered));
    }
    if (!name.starts_with(checkpoints_prefix) || !is_number(name.substr(checkpoints_prefix.size())))
      return nullptr;
    if (!std::filesystem::is_directory(run_folder / name)) return nullptr;
    return std::make_shared<offered_folder>(
        open_offered_folder(run_folder / name, is_of_checkpoint));
  };
  return [open_folders, open_folder](const std::string& name) {
    const auto known = std::find_if(open_folders->begin(), open_folders->end(),
                                    [&](const entry& one) { return one.first == name; });
    if (known != open_folders->end()) {
      std::rotate(known, known + 1, open_folders->end());
      return open_folders->back().second;
    }
    const auto folder = open_folder(name);
    if (folder == nullptr) return folder;
    open_folders->emplace_back(name, folder);
    if (open_folders->size() > max_offered) open_folders->pop_front();
    return folder;
  };
}

std::shared_ptr<generator_inputs> read_generator_setup(const std::string& configuration,
                                                       const generator_setup_record& setup,
                                                       const std::filesystem::path& cache) {
  std::filesystem::create_directories(cache);
  const auto write = [&](const char* name, std::string_view text) {
    write_text(cache / name, std::string(text));
    return cache / name;
  };
  auto inputs = std::make_shared<generator_inputs>();
  inputs->settings = load_configuration(write("configuration.toml", configuration), {});
  inputs->settings.policy.chat =
      load_chat_format(write("chat_format.json", view(setup->getChat())));
  inputs->prompts = std::make_shared<const prompt_template>(prompt_template::parse(
      std::string(view(setup->getPrompts())), inputs->settings.prompt.prompt_template));
  return inputs;
}

std::filesystem::path policy_copy::folder() {
  const std::scoped_lock guard(lock_);
  if (folder_.empty()) folder_ = copy_folder(sources_, policy_folder, cache_, copy_patience);
  return folder_;
}

void prepare_checkpoint(const std::filesystem::path& checkpoint, policy_copy& policy) {
  if (has_adapters(checkpoint)) set_adapter_base(checkpoint, policy.folder());
}

}  // namespace hone
