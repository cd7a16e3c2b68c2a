#include <dtl/dtl.hpp>

#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "launch/commands.hpp"
#include "launch/printing.hpp"
#include "messages/names.hpp"
#include "storage/inspection.hpp"
#include "tasks/settings.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

struct pool_arguments {
  std::string pool;
  bool json = false;
  std::string task;
  std::string device_type;
  std::string outcome;
  std::size_t count = 5;
  std::vector<std::string> ids;
  std::string acknowledged;
};

std::string text(capnp::Text::Reader t) { return std::string(view(t)); }

template <class Id>
std::string short_id(const Id& id) {
  return to_string(id).substr(0, 10);
}

std::string name_or_id(const pool_inspector& pool, const task_id& id) {
  return pool.task_name(id).value_or(short_id(id));
}

// Throws pool_error for a task that the pool does not have, where it has others: nothing to show is
// an answer as well.
void check_task(const pool_inspector& pool, const std::string& name) {
  if (name.empty()) return;
  std::string known;
  for (const auto& t : pool.tasks()) {
    if (view(t->getName()) == name) return;
    known += (known.empty() ? "" : ", ") + text(t->getName());
  }
  if (!known.empty()) throw pool_error("the pool has no task " + name + "; it has " + known);
}

std::vector<std::string> outcome_names() {
  std::vector<std::string> names;
  for (int i = 0; i < outcome_count; ++i) names.emplace_back(name_of(static_cast<Outcome>(i)));
  return names;
}

bool is_wanted(const pool_arguments& a, const std::string& task,
               const schema::Evaluation::Reader& e) {
  return (a.task.empty() || a.task == task) &&
         (a.device_type.empty() || view(e.getDeviceType()) == a.device_type) &&
         (a.outcome.empty() || name_of(e.getOutcome()) == a.outcome);
}

// Its blocks as a document has them; the problem where it did not parse.
std::string code_of(const schema::Variant::Reader& v) {
  if (v.getProblem().size() > 0) return "(does not parse: " + text(v.getProblem()) + ")\n";
  return print_code_blocks(parse_settings(text(v.getSettings())), view(v.getCuda()),
                           view(v.getPython()));
}

ordered_json rollouts_to_json(const pool_inspector& pool, const variant_id& id) {
  ordered_json all = ordered_json::array();
  for (const auto& written : pool.rollouts_of(id)) {
    const auto group = pool.group(written.group);
    if (!group || written.index >= (*group)->getRollouts().size()) continue;
    const auto draw = (*group)->getDraw();
    ordered_json exemplars = ordered_json::array();
    for (const auto e : draw.getExemplars())
      exemplars.push_back(
          {{"variant", to_string(variant_id(e.getVariantId()))}, {"speedup", e.getScore()}});
    const auto progress = pool.progress(written.group);
    const bool trained =
        progress && (*progress)->getState() == schema::GroupProgress::State::TRAINED;
    all.push_back(
        {{"rollout", to_string(written.rollout)},
         {"group", to_string(written.group)},
         {"origin", (*group)->getOrigin() == schema::RolloutGroup::Origin::CORPUS   ? "corpus"
                    : (*group)->getOrigin() == schema::RolloutGroup::Origin::POLICY ? "policy"
                                                                                    : "comparison"},
         {"stage", name_of(draw.getStage())},
         {"device_type", text(draw.getDeviceType())},
         {"policy_version", draw.getPolicyVersion()},
         {"exemplars", exemplars},
         {"trained_into_version",
          trained ? ordered_json((*progress)->getTrainedBy()) : ordered_json(nullptr)},
         {"written_ms", (*group)->getFinishedMs()},
         {"prompt", text((*group)->getPrompt())},
         {"text", text((*group)->getRollouts()[written.index].getText())}});
  }
  return all;
}

ordered_json variant_to_json(const pool_inspector& pool, const schema::Variant::Reader& v) {
  const std::string task = name_or_id(pool, task_id(v.getTaskId()));
  const variant_id id(v.getId());
  ordered_json evaluations = ordered_json::array();
  for (const auto& e : pool.evaluations_of(id)) {
    ordered_json one = to_json(*e, task);
    one["scope"] = e->getScope();
    evaluations.push_back(std::move(one));
  }
  return {{"variant", to_string(id)},          {"task", task},
          {"settings", text(v.getSettings())}, {"cuda", text(v.getCuda())},
          {"python", text(v.getPython())},     {"problem", text(v.getProblem())},
          {"evaluations", evaluations},        {"rollouts", rollouts_to_json(pool, id)}};
}

int list(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  check_task(pool, a.task);
  pool.each_evaluation([&](const evaluation_key& key, const record<schema::Evaluation>& e) {
    const std::string task = name_or_id(pool, task_id(e->getTaskId()));
    if (!is_wanted(a, task, *e)) return;
    if (a.json) {
      std::cout << one_line(to_json(*e, task)) << "\n";
      return;
    }
    std::cout << short_id(key.variant) << "  " << pad(task, 26)
              << pad(std::string(name_of(e->getOutcome())), 15)
              << pad(e->getOutcome() == Outcome::OK ? fixed(e->getScore(), 2) + "x" : "-", 9, true)
              << "  " << e->getMeasurements().size() << " measured  " << key.device_type << "\n";
  });
  return 0;
}

int top(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  check_task(pool, a.task);
  for (const auto& e : pool.top(a.count)) {
    const std::string task = name_or_id(pool, task_id(e->getTaskId()));
    if (!is_wanted(a, task, *e)) continue;
    if (a.json) {
      std::cout << one_line(to_json(*e, task)) << "\n";
    } else {
      std::cout << pad(task, 26) << pad(fixed(e->getScore(), 2) + "x", 9, true) << "  "
                << short_id(variant_id(e->getVariantId())) << "  " << text(e->getDeviceType())
                << "\n";
    }
  }
  return 0;
}

int show(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  const variant_id id = pool.find_variant(a.ids[0]);
  const auto v = pool.variant(id);
  if (!v) throw pool_error("the variant " + to_string(id) + " is gone");
  if (a.json) {
    std::cout << one_line(variant_to_json(pool, **v)) << "\n";
    return 0;
  }
  std::cout << "variant " << to_string(id) << " of " << name_or_id(pool, task_id((*v)->getTaskId()))
            << "\n\n"
            << code_of(**v) << "\n";
  for (const auto& e : pool.evaluations_of(id)) {
    std::cout << text(e->getDeviceType())
              << (e->getScope() > 0 ? " (judged afresh for a comparison)" : "") << ": "
              << describe(*e) << "\n";
    for (const auto m : e->getMeasurements())
      std::cout << "    measured " << fixed(m.getScoreRaw(), 3) << "x ["
                << fixed(m.getIntervalLow(), 3) << ", " << fixed(m.getIntervalHigh(), 3) << "] on "
                << text(m.getNode()) << " " << text(m.getDevice()) << ", seed " << m.getSeed()
                << "\n";
  }
  const auto written = pool.rollouts_of(id);
  std::cout << written.size() << (written.size() == 1 ? " rollout\n" : " rollouts\n");
  if (!written.empty()) {
    const auto group = pool.group(written.back().group);
    if (group && written.back().index < (*group)->getRollouts().size())
      std::cout << "\nits latest text:\n\n"
                << text((*group)->getRollouts()[written.back().index].getText()) << "\n";
  }
  return 0;
}

std::vector<std::string> lines_of(const std::string& s) {
  std::vector<std::string> lines;
  std::istringstream in(s);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

int diff(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  std::vector<variant_id> ids;
  std::vector<record<schema::Variant>> variants;
  for (const std::string& prefix : a.ids) {
    ids.push_back(pool.find_variant(prefix));
    variants.push_back(*pool.variant(ids.back()));
  }
  const auto score_of = [&](const variant_id& id) {
    std::string scores;
    for (const auto& e : pool.evaluations_of(id)) {
      if (e->getScope() == 0)
        scores += "  " +
                  (e->getOutcome() == Outcome::OK ? fixed(e->getScore(), 2) + "x"
                                                  : std::string(name_of(e->getOutcome()))) +
                  " on " + text(e->getDeviceType());
    }
    return scores;
  };
  dtl::Diff<std::string> difference(lines_of(code_of(*variants[0])),
                                    lines_of(code_of(*variants[1])));
  difference.compose();
  difference.composeUnifiedHunks();
  std::ostringstream hunks;
  difference.printUnifiedFormat(hunks);
  if (a.json) {
    std::cout << one_line(ordered_json{{"from", variant_to_json(pool, *variants[0])},
                                       {"to", variant_to_json(pool, *variants[1])},
                                       {"diff", hunks.str()}})
              << "\n";
    return 0;
  }
  std::cout << "--- " << short_id(ids[0]) << score_of(ids[0]) << "\n+++ " << short_id(ids[1])
            << score_of(ids[1]) << "\n"
            << hunks.str();
  return 0;
}

// Ancestors by way of the exemplars that a variant's writers were shown; each is spelled out once.
class lineage_printer {
 public:
  explicit lineage_printer(const pool_inspector& pool) : pool_(pool) {}

  void print(const variant_id& id, const std::string& indent) {
    std::string scores;
    for (const auto& e : pool_.evaluations_of(id)) {
      if (e->getScope() == 0)
        scores += "  " + (e->getOutcome() == Outcome::OK ? fixed(e->getScore(), 2) + "x"
                                                         : std::string(name_of(e->getOutcome())));
    }
    const bool known = !seen_.insert(id).second;
    std::cout << indent << "variant " << short_id(id) << scores << (known ? "  (see above)" : "")
              << "\n";
    if (known) return;
    std::map<std::string, std::pair<std::size_t, std::set<variant_id>>> origins;
    std::vector<std::string> order;
    for (const auto& written : pool_.rollouts_of(id)) {
      const auto group = pool_.group(written.group);
      if (!group) continue;
      const auto [line, exemplars] = origin_of(**group, written);
      if (!origins.contains(line)) order.push_back(line);
      auto& [count, shown] = origins[line];
      ++count;
      shown.insert(exemplars.begin(), exemplars.end());
    }
    for (const std::string& line : order) {
      const auto& [count, shown] = origins[line];
      std::cout << indent << "  " << line
                << (count > 1 ? " (" + std::to_string(count) + " rollouts)" : "") << "\n";
      for (const variant_id& exemplar : shown) print(exemplar, indent + "    ");
    }
  }

 private:
  std::pair<std::string, std::vector<variant_id>> origin_of(
      const schema::RolloutGroup::Reader& group, const pool_inspector::written_as& written) const {
    std::vector<variant_id> exemplars;
    for (const auto e : group.getDraw().getExemplars()) exemplars.emplace_back(e.getVariantId());
    if (group.getOrigin() == schema::RolloutGroup::Origin::CORPUS)
      return {"from the corpus", exemplars};
    std::string line = "written in " + std::string(name_of(group.getDraw().getStage())) + " by";
    std::set<std::uint64_t> versions;
    for (const auto run : group.getRollouts()[written.index].getVersions())
      versions.insert(run.getVersion());
    for (const std::uint64_t version : versions) line += " version " + std::to_string(version);
    const auto progress = pool_.progress(written.group);
    if (progress && (*progress)->getState() == schema::GroupProgress::State::TRAINED)
      line += ", trained into version " + std::to_string((*progress)->getTrainedBy());
    if (!exemplars.empty()) line += ", having seen";
    return {line, exemplars};
  }

  const pool_inspector& pool_;
  std::set<variant_id> seen_;
};

// Everything that a variant descends from, one object each.
ordered_json lineage_to_json(const pool_inspector& pool, const variant_id& first) {
  ordered_json all = ordered_json::array();
  std::vector<variant_id> open = {first};
  std::set<variant_id> seen = {first};
  while (!open.empty()) {
    const variant_id id = open.back();
    open.pop_back();
    const auto v = pool.variant(id);
    if (!v) continue;
    all.push_back(variant_to_json(pool, **v));
    for (const auto& written : pool.rollouts_of(id)) {
      const auto group = pool.group(written.group);
      if (!group) continue;
      for (const auto e : (*group)->getDraw().getExemplars()) {
        if (seen.insert(variant_id(e.getVariantId())).second) open.emplace_back(e.getVariantId());
      }
    }
  }
  return all;
}

int lineage(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  const variant_id id = pool.find_variant(a.ids[0]);
  if (a.json) {
    std::cout << one_line(lineage_to_json(pool, id)) << "\n";
  } else {
    lineage_printer(pool).print(id, "");
  }
  return 0;
}

int stats(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  const auto s = pool.count();
  if (a.json) {
    std::cout << one_line(
                     ordered_json{{"tasks", s.tasks},
                                  {"variants", s.variants},
                                  {"rollouts", s.rollouts},
                                  {"groups", s.groups},
                                  {"group_states", s.group_states},
                                  {"evaluations", s.evaluations},
                                  {"measurements", s.measurements},
                                  {"pending", s.pending},
                                  {"ready_groups", s.ready},
                                  {"versions", s.versions},
                                  {"head", s.head ? ordered_json(*s.head) : ordered_json(nullptr)},
                                  {"outcomes", s.outcomes}})
              << "\n";
    return 0;
  }
  std::cout << s.tasks << " tasks, " << s.variants << " variants, " << s.rollouts << " rollouts in "
            << s.groups << " groups\n";
  std::cout << s.evaluations << " evaluations with " << s.measurements
            << " measurements (comparisons' not counted); " << s.pending << " pending\n";
  std::cout << "groups:";
  for (const auto& [state, count] : s.group_states) std::cout << "  " << state << " " << count;
  std::cout << "\n"
            << s.versions << " policy versions"
            << (s.head ? ", head " + std::to_string(*s.head) : "") << "\n";
  for (const auto& [type, outcomes] : s.outcomes) {
    std::cout << type << ":";
    for (const auto& [outcome, count] : outcomes) std::cout << "  " << outcome << " " << count;
    std::cout << "\n";
  }
  return 0;
}

int export_all(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  check_task(pool, a.task);
  pool.db().scan<schema::Variant>(family::variants, "",
                                  [&](std::string_view /*key*/, const record<schema::Variant>& v) {
                                    const ordered_json one = variant_to_json(pool, *v);
                                    if (a.task.empty() || one["task"] == a.task)
                                      std::cout << one_line(one) << "\n";
                                    return static_cast<bool>(std::cout);
                                  });
  return std::cout ? 0 : 1;
}

int verify(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  verification_report report = verify_pool(pool);
  if (!a.acknowledged.empty()) check_acknowledgements(pool, a.acknowledged, report);
  if (a.json) {
    std::cout << one_line(ordered_json{{"checked", report.checked},
                                       {"problem_count", report.problem_count},
                                       {"problems", report.problems}})
              << "\n";
  } else {
    for (const auto& [what, count] : report.checked)
      std::cout << count << " " << what << " checked\n";
    for (const std::string& problem : report.problems) std::cout << "problem: " << problem << "\n";
    std::cout << (report.problem_count == 0 ? "the pool is consistent\n"
                                            : std::to_string(report.problem_count) + " problems\n");
  }
  return report.problem_count == 0 ? 0 : 1;
}

}  // namespace

void add_pool_commands(CLI::App& app, command_action& action) {
  CLI::App* pool = app.add_subcommand("pool", "Look into a pool, also while a run writes to it");
  pool->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*work)(const pool_arguments&)) {
    auto arguments = std::make_shared<pool_arguments>();
    CLI::App* command = pool->add_subcommand(name, what);
    command->add_option("--pool", arguments->pool, "the pool's folder: pool/ in a run's directory")
        ->required();
    command->add_flag("--json", arguments->json, "JSON, one object a line");
    command->callback(
        [arguments, work, &action] { action = [arguments, work] { return work(*arguments); }; });
    return std::pair(command, arguments);
  };
  const auto filters = [](auto& entry) {
    entry.first->add_option("--task", entry.second->task, "only of this task");
    entry.first->add_option("--device-type", entry.second->device_type,
                            "only on this type of device");
  };
  const auto ids = [](auto& entry, int count) {
    entry.first
        ->add_option("id", entry.second->ids, "a variant's id, or a beginning that no other has")
        ->required()
        ->expected(count);
  };
  auto ls = add("ls", "Every evaluated variant with its outcome and score", list);
  filters(ls);
  ls.first->add_option("--outcome", ls.second->outcome, "only of this outcome: ok, crash, ...")
      ->check(CLI::IsMember(outcome_names()).description(""));
  auto best = add("top", "The best variants of each task", top);
  filters(best);
  best.first->add_option("-n,--count", best.second->count, "a task")->capture_default_str();
  auto one = add("show", "A variant: code, scores, text", show);
  ids(one, 1);
  auto two = add("diff", "What two variants have different", diff);
  ids(two, 2);
  auto line = add("lineage", "What a variant descends from", lineage);
  ids(line, 1);
  add("stats", "How much there is of everything", stats);
  auto all =
      add("export", "Every variant with its evaluations and rollouts, as JSON lines", export_all);
  all.first->add_option("--task", all.second->task, "only of this task");
  auto check = add("verify", "Check every reference and index", verify);
  check.first->add_option("--acknowledged", check.second->acknowledged,
                          "a run's file of acknowledgements: all that it lists must be there");
}

}  // namespace hone
