#include "launch/run/run_inputs.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "evaluation/devices.hpp"
#include "launch/chat_templates.hpp"
#include "launch/files.hpp"
#include "launch/teaching.hpp"
#include "messages/clock.hpp"
#include "messages/even_spacing.hpp"
#include "policy/decoder_config.hpp"
#include "policy/files.hpp"
#include "policy/network/decoder_weights.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

// Returns the group whose only rollout is the document.
group_record corpus_group(const corpus_document& document, const task& t,
                          const std::string& device_type, bool timed) {
  record_builder<schema::RolloutGroup> group;
  content_id<group_id>({"corpus", to_string(t.id), device_type, document.text})
      .store(group->initId());
  group->setOrigin(schema::RolloutGroup::Origin::CORPUS);
  group->setFinishedMs(unix_ms());
  group->setTimed(timed);
  auto draw = group->initDraw();
  content_id<draw_id>({"corpus", to_string(t.id), device_type, document.text}).store(draw.initId());
  t.id.store(draw.initTaskId());
  draw.setDeviceType(device_type);
  draw.setStage(Stage::SFT);
  draw.setSamples(1);
  const auto variant = make_variant(t.id, document.text);
  auto rollout = group->initRollouts(1)[0];
  content_id<rollout_id>({"corpus", to_string(t.id), device_type, document.text})
      .store(rollout.initId());
  rollout.setVariantId(variant->getId());
  rollout.setText(document.text);
  group->initVariants(1).setWithCaveats(0, *variant);
  return group.finish();
}

// Adds the names of `count` of the other files, spread evenly over them; of fewer if there are not
// as many.
void hold_out_further(const std::vector<std::filesystem::path>& files, std::size_t count,
                      std::set<std::string>& held_out) {
  std::vector<std::string> others;
  for (const auto& file : files) {
    if (!held_out.contains(file.stem())) others.push_back(file.stem());
  }
  for (const std::size_t i : evenly_spaced(count, others.size())) held_out.insert(others[i]);
}

}  // namespace

task_table load_tasks(const configuration& c) {
  task_table table;
  const std::filesystem::path folder = c.tasks.folder;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder))
    throw format_error(c.file.string(), 0, "tasks.folder", folder.string() + " is not a folder");
  const choice_set known = task_names(folder);
  for (const auto& [key, names] :
       {std::pair{"tasks.names", &c.tasks.names}, std::pair{"tasks.held_out", &c.tasks.held_out}}) {
    for (const std::string& name : *names) {
      if (!known.contains(name))
        throw format_error(
            c.file.string(), 0, key,
            "'" + name + "' is not a task of " + folder.string() + describe_choices(name, known));
      if (!c.tasks.names.empty()) files.push_back(folder / (name + ".toml"));
    }
  }
  if (c.tasks.names.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".toml" && load_task(entry.path()).has_result)
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  }
  std::set<std::string> held_out(c.tasks.held_out.begin(), c.tasks.held_out.end());
  hold_out_further(files, c.tasks.held_out_count, held_out);
  std::set<std::filesystem::path> seen;
  for (const auto& file : files) {
    if (!seen.insert(file).second) continue;
    task t = load_task(file);
    if (!t.has_result)
      throw format_error(c.file.string(), 0, "tasks",
                         "'" + t.name + "' has no result (has_result = false)");
    const bool is_held_out = held_out.contains(file.stem());
    table.add(std::move(t), is_held_out ? task_role::held_out : task_role::learned);
  }
  for (const std::string& name : held_out) {
    if (!seen.contains(folder / (name + ".toml")))
      throw format_error(c.file.string(), 0, "tasks.held_out",
                         "'" + name + "' has no result (has_result = false)");
  }
  const curriculum_options& plan = c.learner.plan;
  const bool trains_on_tasks = plan.self_supervised.steps > 0 || plan.contrastive.steps > 0 ||
                               (plan.sft.updates > 0 && c.stream.workers == 0);
  if (seen.empty())
    throw format_error(c.file.string(), 0, "tasks", "there are no tasks in " + folder.string());
  if (seen.size() <= held_out.size() && trains_on_tasks)
    throw format_error(c.file.string(), 0, "tasks", "all tasks are held out");
  return table;
}

std::vector<corpus_document> read_corpus(const configuration& c, const task_table& tasks) {
  std::vector<corpus_document> documents;
  if (!c.corpus.folder.empty()) {
    if (!std::filesystem::is_directory(c.corpus.folder))
      throw format_error(c.file.string(), 0, "corpus.folder", c.corpus.folder + " is not a folder");
    documents = load_corpus(c.corpus.folder);
  }
  if (c.corpus.taught == 0 && c.corpus.held_out == 0) return documents;
  std::set<std::string> known;
  for (const corpus_document& document : documents) known.insert(document.task);
  std::optional<teacher> by;
  for (const auto& t : tasks.all()) {
    const std::uint32_t count = tasks.is_held_out(t->id) ? c.corpus.held_out : c.corpus.taught;
    if (known.contains(t->name) || count == 0) continue;
    if (c.node.devices.empty())
      throw format_error(c.file.string(), 0, "node.devices",
                         "is empty, and the teacher writes for the first of them");
    if (!by) by.emplace(find_teacher(c.seed));
    for (corpus_document& document :
         teach(*by, *t, taught_kind(c.node.devices), c.corpus.taught_first, count))
      documents.push_back(std::move(document));
  }
  return documents;
}

std::vector<corpus_document> choose_documents(const configuration& c, const task_table& tasks,
                                              const std::vector<corpus_document>& corpus) {
  std::vector<corpus_document> documents;
  std::map<std::string, std::vector<corpus_document>> by_task;
  std::set<std::pair<std::string, std::string>> seen;
  for (const corpus_document& document : corpus) {
    const auto t = tasks.find(document.task);
    if (t != nullptr && seen.emplace(document.task, document.text).second)
      by_task[document.task].push_back(document);
  }
  for (auto& [name, list] : by_task) {
    const bool is_held_out = tasks.is_held_out(tasks.find(name)->id);
    const auto limit =
        static_cast<std::size_t>(is_held_out ? c.corpus.held_out : c.corpus.per_task);
    const std::size_t most = is_held_out || limit > 0 ? limit : list.size();
    for (const std::size_t i : evenly_spaced(most, list.size()))
      documents.push_back(std::move(list[i]));
  }
  return documents;
}

std::vector<group_record> make_corpus_groups(const std::vector<corpus_document>& documents,
                                             const task_table& tasks,
                                             const std::vector<std::string>& device_types,
                                             bool timed) {
  std::map<std::string, std::vector<const corpus_document*>> by_task;
  for (const corpus_document& document : documents) by_task[document.task].push_back(&document);
  std::vector<group_record> groups;
  for (std::size_t round = 0; groups.size() < documents.size() * device_types.size(); ++round) {
    for (const auto& [name, list] : by_task) {
      // A stride without a common divisor with the number of documents visits each document once
      // and keeps neighbors of a sweep apart.
      const std::size_t stride = list.size() % 7 != 0 ? 7 : 1;
      if (round >= list.size()) continue;
      const task& t = *tasks.find(name);
      const task_role role = tasks.role_of(t.id);
      const bool is_timed = role == task_role::learned ? timed : role == task_role::held_out;
      for (const std::string& type : device_types)
        groups.push_back(corpus_group(*list[round * stride % list.size()], t, type, is_timed));
    }
  }
  return groups;
}

std::shared_ptr<const prompt_template> load_prompts(const configuration& c) {
  if (c.prompt.prompt_template.empty())
    return std::make_shared<const prompt_template>(
        prompt_template::parse(default_prompts, "default"));
  const std::string& file = c.prompt.prompt_template;
  const std::string text = read_policy_file(file);
  if (text.find("{{") == std::string::npos)
    throw format_error(c.file.string(), 0, "prompt.template",
                       file + " has no {{...}}, so its prompts would say nothing of the task");
  return std::make_shared<const prompt_template>(prompt_template::parse(text, file));
}

chat_format find_chat_format(const configuration& c) {
  if (c.policy.kind != "model") return {};
  return find_chat_format(c.policy.folder, c.prompt.format);
}

bool begins_random(const configuration& c) {
  return c.policy.kind == "model" && c.policy.random_weights;
}

std::map<Stage, stage_work> work_of_stages(const configuration& c, const task_table& tasks,
                                           std::size_t device_types) {
  const curriculum_options& plan = c.learner.plan;
  const double group_size = c.pool.draws.samples;
  const auto samples = [&](std::int64_t steps, std::int64_t groups) {
    return static_cast<double>(steps * groups) * group_size;
  };
  stage_work contrastive{samples(plan.contrastive.steps, plan.contrastive.groups), {}};
  if (plan.contrastive.minutes > 0) contrastive.limit_s = plan.contrastive.minutes * 60;
  const auto held_out = static_cast<double>(tasks.count(task_role::held_out));
  const comparison_stage_options& o = plan.comparison;
  auto learned = static_cast<double>(tasks.count(task_role::learned));
  if (o.tasks > 0) learned = std::min(learned, static_cast<double>(o.tasks));
  if (plan.contrastive.steps == 0) learned = 0;
  double kept = begins_random(c) ? 0 : 1;  // versions that write for held-out tasks
  for (const Stage stage : {Stage::SFT, Stage::SELF_SUPERVISED, Stage::CONTRASTIVE}) {
    const std::int64_t steps = steps_of(plan, stage);
    kept += steps > 0 ? static_cast<double>(1 + std::min(o.curve, steps - 1)) : 0;
  }
  const double compared =
      static_cast<double>(device_types) *
      (2 * learned * (o.samples + o.bare_samples + o.greedy_samples) +
       kept * held_out *
           (o.held_out_samples + o.held_out_bare_samples + std::min(o.greedy_samples, 1U)));
  return {{Stage::SELF_SUPERVISED,
           {samples(plan.self_supervised.steps, plan.self_supervised.groups), {}}},
          {Stage::CONTRASTIVE, contrastive},
          {Stage::COMPARISON, {compared, {}}}};
}

std::vector<std::string> devices_of_generators(const configuration& c) {
  std::vector<std::string> all = c.generation.devices;
  if (all.empty()) all.push_back(c.policy.device);
  std::vector<std::string> of_generators;
  for (std::int64_t i = 0; i < c.generation.replicas; ++i)
    of_generators.insert(of_generators.end(), all.begin(), all.end());
  return of_generators;
}

bool trains(const configuration& c) {
  const curriculum_options& plan = c.learner.plan;
  return plan.sft.updates + plan.self_supervised.steps + plan.contrastive.steps > 0;
}

std::string describe_dtype(const configuration& c) {
  if (c.policy.kind != "model") return "";
  const std::string folder = decoder_config::load(c.policy.folder + "/config.json").dtype;
  const std::string used = load_config_for(c.policy.device, c.policy.folder, c.policy.dtype).dtype;
  if (c.policy.device == "cpu" && used != "float32")
    return "warning: policy.dtype is " + used +
           ", in which a CPU computes about ten times slower than in float32";
  return used == folder ? ""
                        : "the policy's weights are " + folder + " and are computed in " + used;
}

void require_policy(const configuration& c) {
  if (c.policy.kind != "model") return;
  const auto refuse = [&](const std::string& key, const std::string& why) {
    throw format_error(c.file.string(), 0, key, why);
  };
  if (!std::filesystem::is_directory(c.policy.folder))
    refuse("policy.folder", c.policy.folder + " is not a folder");
  try {
    load_config_for(c.policy.device, c.policy.folder, c.policy.dtype);
    if (!c.policy.random_weights) decoder_weights::require_files(c.policy.folder);
  } catch (const std::runtime_error& e) {
    refuse("policy.folder", e.what());
  }
  if (c.policy.device == "cpu") return;
  bool is_here = false;
  try {
    is_here = !gpus_named(c.policy.device).empty();
  } catch (const std::runtime_error& e) {
    refuse("policy.device", "is '" + c.policy.device + "', and " + e.what());
  }
  if (!is_here) refuse("policy.device", "is '" + c.policy.device + "', which is not here");
}

std::unique_ptr<trainer> make_trainer(const configuration& c) {
  if (c.policy.kind != "model") return nullptr;
  trainer::options o;
  o.device = c.policy.device;
  o.dtype = c.policy.dtype;
  o.more_devices = c.policy.data_parallel;
  o.optimizer = c.optimizer;
  o.seed = c.seed;
  o.chat = c.policy.chat;
  o.micro_batch_tokens = c.policy.micro_batch_tokens;
  o.adapters = c.policy.adapters;
  o.trains = trains(c);
  if (c.policy.recompute) o.recompute = recomputation::logits_and_layers;
  return std::make_unique<trainer>(c.policy.folder, c.policy.random_weights, o);
}

}  // namespace hone
