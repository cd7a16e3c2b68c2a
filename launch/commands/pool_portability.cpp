#include "launch/commands/pool_portability.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "evaluation/compile_ahead.hpp"
#include "evaluation/devices.hpp"
#include "evaluation/evaluate.hpp"
#include "messages/measurements.hpp"
#include "results/averages.hpp"
#include "results/printing.hpp"
#include "results/variants.hpp"
#include "tasks/task_file.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

// The best variant of a task on one type of device.
struct leader {
  task_id about;
  std::string task;
  std::string found_on;
  variant_id variant;
  std::string document{};  // empty: the pool does not keep it any more
};

// What came of a leader on a type of device.
struct result {
  Outcome outcome = Outcome::OK;
  std::string message{};  // why it is not ok
  double speedup = 0;     // 0 unless ok
  bool is_fresh = false;
};

using results = std::map<std::pair<std::size_t, std::string>, result>;  // by leader and type

std::vector<leader> find_leaders(const pool_inspector& pool, const std::string& task) {
  std::vector<leader> all;
  for (const auto& best : pool.top(1)) {
    const std::string name = name_or_id(pool, task_id(best->getTaskId()));
    if (!task.empty() && name != task) continue;
    const variant_id id(best->getVariantId());
    all.push_back({task_id(best->getTaskId()), name, text(best->getDeviceType()), id,
                   document_of(pool, id).value_or("")});
  }
  std::sort(all.begin(), all.end(), [](const leader& a, const leader& b) {
    return std::pair(a.found_on, a.task) < std::pair(b.found_on, b.task);
  });
  return all;
}

result result_of(const schema::Evaluation::Reader& e, bool is_fresh) {
  return {e.getOutcome(), text(e.getMessage()), has_score(e) ? e.getScore() : 0, is_fresh};
}

// Judges all leaders on one device.
void measure(const planned_device& planned, const pool_inspector& pool,
             const std::vector<leader>& leaders, results& found) {
  const std::string type(view(planned.type->getName()));
  std::map<task_id, task> tasks;
  for (const auto& stored : pool.tasks())
    tasks.emplace(task_id(stored->getId()), from_record(*stored));
  const auto device = planned.make();
  compile_ahead compiler(*planned.type);
  std::vector<std::pair<std::size_t, std::future<compiled_document>>> compiling;
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    const auto of = tasks.find(leaders[i].about);
    if (of != tasks.end() && !leaders[i].document.empty())
      compiling.emplace_back(i, compiler.submit(leaders[i].document, of->second));
  }
  for (auto& [i, compiled] : compiling) {
    const auto judged = evaluate(*device, compiled.get(), tasks.at(leaders[i].about));
    found[{i, type}] = result_of(*judged, true);
  }
}

std::string cell_of(const result* r) {
  if (r == nullptr) return "-";
  if (r->speedup > 0) return fixed(r->speedup, 2) + "x";
  return r->outcome == Outcome::OK ? "ok, untimed" : std::string(name_of(r->outcome));
}

// Prints the leaders that were found on one type of device, a row each.
void print_block(const std::string& found_on, const std::vector<leader>& leaders,
                 const std::vector<std::string>& types, const results& found) {
  constexpr std::size_t task_width = 34;
  std::vector<std::size_t> widths;
  std::cout << "best variants of " << found_on << "\n  " << pad("task", task_width);
  for (const std::string& type : types) {
    widths.push_back(std::max<std::size_t>(type.size(), 14) + 2);
    std::cout << pad(type, widths.back(), true);
  }
  std::cout << "\n";
  std::vector<std::vector<double>> speedups(types.size());
  std::vector<std::size_t> judged(types.size());
  std::vector<std::size_t> ok(types.size());
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    if (leaders[i].found_on != found_on) continue;
    std::cout << "  " << pad(leaders[i].task, task_width);
    for (std::size_t t = 0; t < types.size(); ++t) {
      const auto at = found.find({i, types[t]});
      const result* const r = at == found.end() ? nullptr : &at->second;
      std::cout << pad(cell_of(r), widths[t], true);
      if (r == nullptr) continue;
      ++judged[t];
      ok[t] += r->outcome == Outcome::OK ? 1 : 0;
      if (r->speedup > 0) speedups[t].push_back(r->speedup);
    }
    std::cout << "\n";
  }
  const auto print_row = [&](const char* name, const auto& value) {
    std::cout << "  " << pad(name, task_width);
    for (std::size_t t = 0; t < types.size(); ++t) std::cout << pad(value(t), widths[t], true);
    std::cout << "\n";
  };
  print_row("ok, of those judged",
            [&](std::size_t t) { return std::to_string(ok[t]) + "/" + std::to_string(judged[t]); });
  const auto average = [](double value) { return value > 0 ? fixed(value, 2) + "x" : "-"; };
  print_row("geometric mean of the timed",
            [&](std::size_t t) { return average(geometric_mean(speedups[t])); });
  print_row("median of the timed", [&](std::size_t t) { return average(median(speedups[t])); });
  std::cout << "\n";
}

void print_json(const std::vector<leader>& leaders, const results& found) {
  for (const auto& [key, r] : found) {
    const leader& one = leaders[key.first];
    std::cout << one_line(ordered_json{
                     {"task", one.task},
                     {"variant", to_string(one.variant)},
                     {"found_on", one.found_on},
                     {"device_type", key.second},
                     {"outcome", name_of(r.outcome)},
                     {"message", r.message},
                     {"speedup", r.speedup > 0 ? ordered_json(r.speedup) : ordered_json(nullptr)},
                     {"measured_now", r.is_fresh}})
              << "\n";
  }
}

}  // namespace

int print_portability(const pool_inspector& pool, const std::vector<std::string>& devices,
                      bool share_cores, const std::string& task, bool json) {
  const std::vector<leader> leaders = find_leaders(pool, task);
  if (leaders.empty()) {
    std::cerr << "hone: the pool has no variant that is ok" << (task.empty() ? "" : " of " + task)
              << "\n";
    return 1;
  }
  results found;
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    for (const auto& e : pool.evaluations_of(leaders[i].variant)) {
      if (e->getScope() == run_scope) found[{i, text(e->getDeviceType())}] = result_of(*e, false);
    }
  }
  std::set<std::string> measured;
  for (const std::string& name : devices) {
    const planned_device device = plan_device(
        name, {.node = "portability", .share_cores = share_cores, .programs = leaders.size()});
    if (measured.emplace(view(device.type->getName())).second)
      measure(device, pool, leaders, found);
  }
  if (json) {
    print_json(leaders, found);
    return 0;
  }
  std::vector<std::string> types;
  for (const auto& [key, r] : found) types.push_back(key.second);
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  std::string before;
  for (const leader& one : leaders) {
    if (one.found_on != std::exchange(before, one.found_on))
      print_block(one.found_on, leaders, types, found);
  }
  std::cout << "columns: types of device on which they were judged; -: not judged there"
            << (devices.empty() ? " (--devices judges them)" : "") << "\n";
  return 0;
}

}  // namespace hone
