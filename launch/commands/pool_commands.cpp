#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "launch/commands/commands.hpp"
#include "launch/commands/pool_portability.hpp"
#include "launch/files.hpp"
#include "messages/clock.hpp"
#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "messages/parse_number.hpp"
#include "results/printing.hpp"
#include "results/run_results.hpp"
#include "results/variants.hpp"
#include "storage/inspection.hpp"

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
  std::size_t limit = 0;  // 0: none
  std::string since;
  bool tokens = false;
  std::vector<std::string> ids;
  std::string acknowledged;
  std::vector<std::string> devices;
  bool share_cores = false;
};

// Throws pool_error if the pool has tasks, but not this one. An empty pool is not an error.
void check_task(const pool_inspector& pool, const std::string& name) {
  if (name.empty()) return;
  choice_set known;
  for (const auto& t : pool.tasks()) known.insert(text(t->getName()));
  if (!known.empty() && !known.contains(name))
    throw pool_error("the pool has no task " + name + describe_choices(name, known));
}

// Throws pool_error if the pool has evaluations, but none on this device type. Reads the whole
// pool, so it is for filters that have found nothing.
void check_device_type(const pool_inspector& pool, const std::string& name) {
  if (name.empty()) return;
  choice_set types;
  pool.each_known_evaluation([&](const evaluation_key& key, const record<schema::Evaluation>&) {
    types.insert(key.device_type);
  });
  if (types.empty() || types.contains(name)) return;
  throw pool_error("the pool has no evaluation on the device type " + name +
                   describe_choices(name, types));
}

std::vector<std::string> outcome_names() {
  std::vector<std::string> names;
  for (int i = 0; i < outcome_count; ++i) names.emplace_back(name_of(static_cast<Outcome>(i)));
  return names;
}

// Returns a time such as "90s" or "2h" in milliseconds. Throws pool_error if it is none.
std::uint64_t parse_duration_ms(const std::string& text) {
  static const std::map<char, std::uint64_t> units = {
      {'s', 1'000}, {'m', 60'000}, {'h', 3'600'000}, {'d', 86'400'000}};
  const auto unit = text.empty() ? units.end() : units.find(text.back());
  const auto number =
      text.empty() ? std::nullopt : parse_number<std::uint32_t>(text.substr(0, text.size() - 1));
  if (!number || unit == units.end())
    throw pool_error("--since: '" + text + "' is not a time such as 90s, 30m, 2h or 1d");
  return *number * unit->second;
}

bool is_wanted(const pool_arguments& a, const std::string& task,
               const schema::Evaluation::Reader& e) {
  return (a.task.empty() || a.task == task) &&
         (a.device_type.empty() || view(e.getDeviceType()) == a.device_type) &&
         (a.outcome.empty() || name_of(e.getOutcome()) == a.outcome);
}

record<schema::Variant> variant_named(const pool_inspector& pool, const std::string& prefix) {
  const variant_id id = pool.find_variant(prefix);
  const auto v = pool.variant(id);
  if (!v) throw pool_error("the variant " + to_string(id) + " is gone");
  return *v;
}

int show(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  const auto v = variant_named(pool, a.ids[0]);
  if (a.json) {
    std::cout << one_line(variant_to_json(pool, *v, max_rollouts_shown, true)) << "\n";
  } else {
    print_variant(pool, variant_id(v->getId()), *v);
  }
  return 0;
}

int diff(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  const auto last = variant_named(pool, a.ids.back());
  const auto first = a.ids.size() == 1 ? reference_of(pool, task_id(last->getTaskId()))
                                       : variant_named(pool, a.ids[0]);
  if (a.json) {
    std::cout << one_line(difference_to_json(pool, *first, *last)) << "\n";
  } else {
    print_difference(pool, *first, *last);
  }
  return 0;
}

// Answers about the named variant.
int answer_about(const pool_arguments& a,
                 ordered_json (*to_json)(const pool_inspector&, const variant_id&),
                 void (*print)(const pool_inspector&, const variant_id&)) {
  const pool_inspector pool(a.pool);
  const variant_id id = pool.find_variant(a.ids[0]);
  if (a.json) {
    std::cout << one_line(to_json(pool, id)) << "\n";
  } else {
    print(pool, id);
  }
  return 0;
}

int descendants(const pool_arguments& a) {
  return answer_about(a, descendants_to_json, print_descendants);
}

int lineage(const pool_arguments& a) { return answer_about(a, lineage_to_json, print_lineage); }

// One line of `hone pool ls`.
struct listed {
  std::string task;
  evaluation_key key;
  Outcome outcome = Outcome::OK;
  double speedup = 0;   // 0: none
  double deciding = 0;  // what `hone pool top` sorts by
  std::size_t measurements = 0;
  std::uint64_t closed_ms = 0;
};

// Lists by task and device type, the fastest first, and then the others by outcome.
int list(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  check_task(pool, a.task);
  const std::uint64_t begin = a.since.empty() ? 0 : unix_ms() - parse_duration_ms(a.since);
  std::vector<listed> rows;
  pool.each_known_evaluation([&](const evaluation_key& key, const record<schema::Evaluation>& e) {
    std::string task = name_or_id(pool, task_id(e->getTaskId()));
    if (!is_wanted(a, task, *e) || e->getClosedMs() < begin) return;
    const headline score = headline_of(*e);
    rows.push_back({std::move(task), key, e->getOutcome(), score.speedup, score.deciding(),
                    e->getMeasurements().size(), e->getClosedMs()});
  });
  if (rows.empty()) check_device_type(pool, a.device_type);
  std::sort(rows.begin(), rows.end(), [](const listed& x, const listed& y) {
    return std::tie(x.task, x.key.device_type, y.deciding, x.outcome, x.key.variant) <
           std::tie(y.task, y.key.device_type, x.deciding, y.outcome, y.key.variant);
  });
  const std::size_t found = rows.size();
  if (a.limit > 0) rows.resize(std::min(a.limit, found));
  if (!a.json && found > 0)
    std::cout << pad("variant", 12) << pad("task", 26) << pad("outcome", 15)
              << pad("speed-up", 9, true) << "  " << pad("measured", 10) << "device type\n";
  for (const listed& row : rows) {
    if (a.json) {
      const auto e = pool.db().get<schema::Evaluation>(family::evaluations, key_of(row.key));
      if (e) std::cout << one_line(to_json(**e, row.task)) << "\n";
      continue;
    }
    const std::string measured =
        is_screening(row.key.scope) ? "screened" : std::to_string(row.measurements);
    std::cout << pad(short_id(row.key.variant), 12) << pad(row.task + " ", 26)
              << pad(std::string(name_of(row.outcome)), 15)
              << pad(row.speedup > 0 ? fixed(row.speedup, 2) + "x" : "-", 9, true) << "  "
              << pad(measured, 10) << row.key.device_type << "\n";
  }
  if (!a.json && found > rows.size())
    std::cout << "and " << found - rows.size() << " more (--limit)\n";
  return 0;
}

int top(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  check_task(pool, a.task);
  std::vector<std::pair<std::string, record<schema::Evaluation>>> rows;
  for (const auto& e : pool.top(a.count)) {
    const std::string task = name_or_id(pool, task_id(e->getTaskId()));
    if (is_wanted(a, task, *e)) rows.emplace_back(task, e);
  }
  if (rows.empty()) check_device_type(pool, a.device_type);
  // Within a task and a device type, the best comes first already.
  std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return std::pair(x.first, view(x.second->getDeviceType())) <
           std::pair(y.first, view(y.second->getDeviceType()));
  });
  if (!a.json)
    std::cout << pad("task", 26) << pad("speed-up", 9, true) << pad("measured", 20, true) << "  "
              << pad("variant", 10) << "  device type\n";
  for (const auto& [task, e] : rows) {
    if (a.json) {
      std::cout << one_line(to_json(*e, task)) << "\n";
    } else {
      const headline score = headline_of(*e);
      std::cout << pad(task + " ", 26) << pad(fixed(score.speedup, 2) + "x", 9, true)
                << pad(range_text(score), 20, true) << "  "
                << pad(short_id(variant_id(e->getVariantId())), 10) << "  "
                << text(e->getDeviceType()) << "\n";
    }
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
                                  {"variant_states",
                                   {{"evaluated", s.evaluated_variants},
                                    {"compared_only", s.compared_variants},
                                    {"waiting", s.waiting_variants}}},
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
  std::cout << s.tasks << " tasks, " << s.rollouts << " samples in " << s.groups << " groups\n"
            << s.variants << " variants: " << s.evaluated_variants << " evaluated, "
            << s.compared_variants << " in a comparison only, " << s.waiting_variants
            << " not yet\n"
            << s.evaluations << " evaluations with " << s.measurements
            << " measurements (not counting comparisons); " << s.pending
            << (is_complete(pool) ? " jobs given up when the run ended\n" : " jobs pending\n");
  std::cout << "groups:";
  for (const auto& [state, count] : s.group_states) std::cout << "  " << state << " " << count;
  std::cout << "\n"
            << counted(s.versions, "policy version")
            << (s.head ? ", head " + std::to_string(*s.head) : "") << "\n";
  for (const auto& [type, outcomes] : s.outcomes) {
    std::cout << "evaluations on " << type << ":";
    for (const auto& [outcome, count] : outcomes) std::cout << "  " << outcome << " " << count;
    std::cout << "\n";
  }
  return 0;
}

int export_all(const pool_arguments& a) {
  constexpr std::size_t all_rollouts = std::numeric_limits<std::size_t>::max();
  const pool_inspector pool(a.pool);
  check_task(pool, a.task);
  pool.db().scan<schema::Variant>(
      family::variants, "", [&](std::string_view /*key*/, const record<schema::Variant>& v) {
        const ordered_json one = variant_to_json(pool, *v, all_rollouts, a.tokens);
        if (a.task.empty() || one["task"] == a.task) std::cout << one_line(one) << "\n";
        return static_cast<bool>(std::cout);
      });
  return std::cout ? 0 : 1;
}

int portability(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  check_task(pool, a.task);
  return print_portability(pool, a.devices, a.share_cores, a.task, a.json);
}

int verify(const pool_arguments& a) {
  const pool_inspector pool(a.pool);
  verification_report report = verify_pool(pool);
  if (!a.acknowledged.empty()) check_acknowledgments(pool, a.acknowledged, report);
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

void add_portability_options(CLI::App& command, pool_arguments& a) {
  command.add_option("--task", a.task, "only this task");
  command
      .add_option("--devices", a.devices,
                  "judge them now on these devices, separated by commas: cpu, cuda or cuda:NUMBER; "
                  "otherwise scores are the pool's")
      ->delimiter(',');
  command.add_flag("--share-cores", a.share_cores,
                   "share cores and GPUs with other processes of Hone, which disturbs times");
}

void add_filters(CLI::App& command, pool_arguments& a) {
  command.add_option("--task", a.task, "only this task");
  command.add_option("--device-type", a.device_type, "only this device type");
}

void add_list_options(CLI::App& command, pool_arguments& a) {
  command.add_option("--outcome", a.outcome, "only this outcome: ok, crash, ...")
      ->check(CLI::IsMember(outcome_names()).description(""));
  command.add_option("--since", a.since,
                     "only what was judged in the last so many seconds, minutes, hours or days: "
                     "90s, 30m, 2h, 1d");
  command.add_option("--limit", a.limit, "at most so many lines");
}

void add_ids(CLI::App& command, pool_arguments& a, int least, int most) {
  command.add_option("id", a.ids, "a variant's id, or the first digits of it if they are unique")
      ->required()
      ->expected(least, most);
}

}  // namespace

void add_pool_commands(CLI::App& app, command_action& action) {
  CLI::App* pool = app.add_subcommand("pool", "Inspect a pool, also while a run writes to it");
  pool->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*work)(const pool_arguments&)) {
    auto arguments = std::make_shared<pool_arguments>();
    CLI::App* command = pool->add_subcommand(name, what);
    command->add_option("--pool", arguments->pool, "a run's directory, or the folder pool/ in it")
        ->required();
    command->add_flag("--json", arguments->json, "print JSON, one object per line");
    command->callback([arguments, work, &action] {
      action = [arguments, work] {
        arguments->pool = find_pool(arguments->pool);
        return work(*arguments);
      };
    });
    return std::pair(command, arguments);
  };
  auto ls = add("ls", "List the evaluated variants with their outcomes and scores", list);
  add_filters(*ls.first, *ls.second);
  add_list_options(*ls.first, *ls.second);
  auto best = add("top", "List the best variants of each task", top);
  add_filters(*best.first, *best.second);
  best.first->add_option("-n,--count", best.second->count, "number of variants per task")
      ->capture_default_str();
  auto one = add("show", "Show a variant: its code, its scores and one of its documents", show);
  add_ids(*one.first, *one.second, 1, 1);
  auto two =
      add("diff",
          "Show the differences between two variants, or between a task's reference and one", diff);
  add_ids(*two.first, *two.second, 1, 2);
  auto line = add("lineage", "Show the exemplars that a variant descends from", lineage);
  add_ids(*line.first, *line.second, 1, 1);
  auto later =
      add("descendants", "Show the variants of prompts that showed a variant", descendants);
  add_ids(*later.first, *later.second, 1, 1);
  add("stats", "Count tasks, variants, groups, evaluations and versions", stats);
  auto ports =
      add("portability", "Show how fast the best variants of each type of device are on the others",
          portability);
  add_portability_options(*ports.first, *ports.second);
  auto all = add("export", "Print every variant with its evaluations and rollouts as JSON lines",
                 export_all);
  all.first->add_option("--task", all.second->task, "only this task");
  all.first->add_flag("--tokens", all.second->tokens,
                      "with each rollout's tokens and their log-probabilities");
  auto check = add("verify", "Check every reference between records and every index", verify);
  check.first->add_option(
      "--acknowledged", check.second->acknowledged,
      "a run's file of acknowledgments; everything that it lists must be in the pool");
}

}  // namespace hone
