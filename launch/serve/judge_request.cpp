#include "launch/serve/judge_request.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "messages/clock.hpp"
#include "messages/names.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

using nlohmann::json;

constexpr int max_depth = 16;
constexpr std::array<const char*, 3> priorities = {"low", "normal", "high"};

[[noreturn]] void refuse(const std::string& key, const std::string& why) {
  throw bad_request(400, "bad_request", "'" + key + "' " + why);
}

std::string string_of(const json& value, const std::string& key) {
  if (!value.is_string()) refuse(key, "is not a string");
  return value.get<std::string>();
}

bool flag_of(const json& value, const std::string& key) {
  if (!value.is_boolean()) refuse(key, "is neither true nor false");
  return value.get<bool>();
}

double number_of(const json& value, const std::string& key, double most) {
  if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > most)
    refuse(key, "is not a number from 0 to " + std::to_string(static_cast<long>(most)));
  return value.get<double>();
}

std::string choice_of(const json& value, const std::string& key,
                      const std::vector<std::string>& choices) {
  const std::string chosen = string_of(value, key);
  std::string listed;
  for (const std::string& one : choices) listed += (listed.empty() ? "" : ", ") + one;
  if (std::find(choices.begin(), choices.end(), chosen) == choices.end())
    refuse(key, "is '" + chosen + "', expected one of: " + listed);
  return chosen;
}

using reader = std::function<void(const json& value, const std::string& key)>;

// Reads the members of an object, each by its reader. A member that is null is like none.
void read_members(const json& object, const std::string& what,
                  const std::map<std::string, reader>& readers) {
  if (!object.is_object()) refuse(what, "is not an object");
  for (const auto& [key, value] : object.items()) {
    const auto known = readers.find(key);
    if (known == readers.end()) {
      std::string listed;
      for (const auto& [name, unused] : readers) listed += (listed.empty() ? "" : ", ") + name;
      refuse(key, "is not a key of " + what + ", which may have: " + listed);
    }
    if (!value.is_null()) known->second(value, key);
  }
}

asked_program program_of(const json& value) {
  asked_program program;
  if (value.is_string()) {
    program.text = value.get<std::string>();
    return program;
  }
  read_members(
      value, "a program",
      {{"text", [&](const json& v, const std::string& k) { program.text = string_of(v, k); }},
       {"kind", [&](const json& v, const std::string& k) {
          program.is_python = choice_of(v, k, {"document", "python"}) == "python";
        }}});
  return program;
}

record<schema::Variant> variant_of(const task& t, const asked_program& program,
                                   const std::string& device_type) {
  if (!program.is_python) return make_variant(t.id, program.text);
  if (program.problem.empty()) return make_variant(t.id, program.document);
  // CPU devices judge Python modules that cannot be translated.
  if (program.is_unsupported && device_type.starts_with("cpu-"))
    return make_variant(t.id, document_of_module(program.text));
  record_builder<schema::Variant> variant;
  identify_unparsable(program.text).store(variant->initId());
  t.id.store(variant->initTaskId());
  variant->setProblem(program.problem);
  variant->setIsUnsupported(program.is_unsupported);
  return variant.finish();
}

void check_programs(const std::vector<asked_program>& programs) {
  if (programs.empty() || programs.size() > max_programs)
    refuse("programs", "has to have 1 to " + std::to_string(max_programs) + " programs, and has " +
                           std::to_string(programs.size()));
  for (const asked_program& program : programs) {
    if (program.text.size() > max_document_bytes)
      refuse("programs",
             "has a program of more than " + std::to_string(max_document_bytes) + " bytes");
  }
}

}  // namespace

bad_request no_such_task(const std::string& name) {
  return {
      404, "not_found",
      "there is no task '" + name + "'; GET /v1/tasks lists the tasks, and PUT /v1/tasks adds one"};
}

json parse_body(const std::string& body) {
  try {
    return json::parse(body, [](int depth, json::parse_event_t, json&) {
      if (depth > max_depth) throw bad_request(400, "bad_request", "the JSON is nested too deeply");
      return true;
    });
  } catch (const json::parse_error& e) {
    throw bad_request(400, "bad_request",
                      "the body is not JSON in UTF-8, at byte " + std::to_string(e.byte));
  } catch (const json::exception&) {
    throw bad_request(400, "bad_request", "the body is not JSON in UTF-8");
  }
}

task_reference parse_task_reference(const json& body) {
  task_reference task;
  const auto into = [](std::string& field) {
    return [&field](const json& v, const std::string& k) { field = string_of(v, k); };
  };
  if (body.is_string()) {
    task.named = body.get<std::string>();
  } else {
    read_members(body, "a task",
                 {{"name", into(task.named)},
                  {"id", into(task.named)},
                  {"toml", into(task.toml)},
                  {"module", into(task.module)},
                  {"precision",
                   [&](const json& v, const std::string& k) {
                     task.precision = choice_of(v, k, {"strict", "relaxed"});
                   }},
                  {"dtype",
                   [&](const json& v, const std::string& k) {
                     task.dtype = choice_of(v, k, {"float16", "bfloat16"});
                   }},
                  {"fixed_sizes",
                   [&](const json& v, const std::string& k) { task.fixes_sizes = flag_of(v, k); }},
                  {"vary_constants", [&](const json& v, const std::string& k) {
                     task.varies_constants = flag_of(v, k);
                   }}});
  }
  const int given =
      (task.named.empty() ? 0 : 1) + (task.toml.empty() ? 0 : 1) + (task.module.empty() ? 0 : 1);
  if (given != 1) refuse("task", "has to have one of: name, id, toml, module");
  return task;
}

judge_request parse_judge_request(const json& body) {
  judge_request request;
  bool has_task = false;
  read_members(
      body, "the request",
      {{"task",
        [&](const json& v, const std::string&) {
          request.task = parse_task_reference(v);
          has_task = true;
        }},
       {"programs",
        [&](const json& v, const std::string& k) {
          if (!v.is_array()) refuse(k, "is not a list");
          for (const json& one : v) request.programs.push_back(program_of(one));
        }},
       {"device_type",
        [&](const json& v, const std::string& k) { request.device_type = string_of(v, k); }},
       {"want",
        [&](const json& v, const std::string& k) {
          request.wants_score = choice_of(v, k, {"score", "verdict"}) == "score";
        }},
       {"priority",
        [&](const json& v, const std::string& k) {
          const std::string name = choice_of(v, k, {priorities.begin(), priorities.end()});
          request.priority = static_cast<std::uint8_t>(
              std::find(priorities.begin(), priorities.end(), name) - priorities.begin());
        }},
       {"deadline_s",
        [&](const json& v, const std::string& k) { request.deadline_s = number_of(v, k, 1e6); }},
       {"id",
        [&](const json& v, const std::string& k) {
          request.id = string_of(v, k);
          if (request.id.empty() || request.id.size() > 256)
            refuse(k, "has to have 1 to 256 bytes");
        }},
       {"wait_s",
        [&](const json& v, const std::string& k) { request.wait_s = number_of(v, k, max_wait_s); }},
       {"details",
        [&](const json& v, const std::string& k) { request.has_details = flag_of(v, k); }}});
  if (!has_task) refuse("task", "is missing");
  check_programs(request.programs);
  return request;
}

group_id group_of(const std::string& client, const std::string& id) {
  return content_id<group_id>({"service", client, id});
}

group_record make_group(const judge_request& request, const std::string& client, const task& t,
                        const std::string& device_type) {
  record_builder<schema::RolloutGroup> group;
  const group_id id = request.id.empty() ? random_id<group_id>() : group_of(client, request.id);
  id.store(group->initId());
  group->setOrigin(schema::RolloutGroup::Origin::SERVICE);
  group->setStartedMs(unix_ms());
  group->setFinishedMs(unix_ms());
  group->setTimed(request.wants_score);
  auto asked = group->initRequest();
  asked.setClient(client);
  asked.setPriority(request.priority);
  if (request.deadline_s > 0)
    asked.setExpiresMs(unix_ms() + static_cast<std::uint64_t>(request.deadline_s * 1000));
  auto draw = group->initDraw();
  draw_id(id.high, id.low).store(draw.initId());
  t.id.store(draw.initTaskId());
  draw.setDeviceType(device_type);
  draw.setStage(Stage::SERVICE);
  draw.setSamples(static_cast<std::uint32_t>(request.programs.size()));
  std::map<variant_id, record<schema::Variant>> distinct;
  auto rollouts = group->initRollouts(static_cast<unsigned>(request.programs.size()));
  for (unsigned i = 0; i < rollouts.size(); ++i) {
    const auto variant = variant_of(t, request.programs[i], device_type);
    random_id<rollout_id>().store(rollouts[i].initId());
    rollouts[i].setVariantId(variant->getId());
    rollouts[i].setText(request.programs[i].text);
    distinct.emplace(variant_id(variant->getId()), variant);
  }
  auto variants = group->initVariants(static_cast<unsigned>(distinct.size()));
  unsigned v = 0;
  for (const auto& [variant, program] : distinct) variants.setWithCaveats(v++, *program);
  return group.finish();
}

}  // namespace hone
