#include "launch/bench/bench_summary.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "results/averages.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

constexpr std::array<double, 4> fast_at = {0, 1, 1.5, 2};
constexpr std::string_view fast_titles = " fast_0 | fast_1 | fast_1.5 | fast_2 |";

// Returns the speed-up against a baseline, 0 if it was not timed.
double speedup_against(const bench_result& result, const std::string& baseline) {
  if (baseline == "eager") return result.speedup;
  const auto found = result.baselines_us.find(baseline);
  return found != result.baselines_us.end() && result.candidate_us > 0
             ? found->second / result.candidate_us
             : 0;
}

bench_summary::column column_of(const std::vector<double>& speedups, std::size_t tasks) {
  bench_summary::column column;
  column.tasks = speedups.size();
  for (const double p : fast_at) {
    const auto above =
        std::count_if(speedups.begin(), speedups.end(), [p](double s) { return s > p; });
    column.fast[p] = tasks > 0 ? static_cast<double>(above) / static_cast<double>(tasks) : 0;
  }
  column.geometric_mean = geometric_mean(speedups);
  column.median = median(speedups);
  return column;
}

bench_summary summarize_group(const std::string& device_type, const std::string& group,
                              const std::vector<const bench_result*>& results) {
  bench_summary summary;
  summary.device_type = device_type;
  summary.group = group;
  std::set<std::string> tasks;
  std::set<std::string> left_out;
  std::map<std::string, const bench_result*> best;  // by task
  std::set<std::string> baselines = {"eager"};
  for (const bench_result* one : results) {
    (one->has_result ? tasks : left_out).insert(one->task);
    if (!one->has_result) continue;
    ++summary.documents;
    ++summary.outcomes[one->outcome];
    if (!one->is_ok()) continue;
    const bench_result*& known = best[one->task];
    if (known == nullptr || one->speedup > known->speedup) known = one;
    for (const auto& [name, us] : one->baselines_us) baselines.insert(name);
  }
  summary.tasks = tasks.size();
  summary.left_out = left_out.size();
  summary.correct = best.size();
  for (const std::string& baseline : baselines) {
    std::vector<double> speedups;
    for (const auto& [task, one] : best) {
      if (const double s = speedup_against(*one, baseline); s > 0) speedups.push_back(s);
    }
    summary.against[baseline] = column_of(speedups, summary.tasks);
  }
  return summary;
}

// Returns a CSV field, in quotes where it needs them.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

// Returns a text as the content of a cell of a Markdown table.
std::string in_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    switch (c) {
      case '|':
        cell += "\\|";
        break;
      case '<':
        cell += "&lt;";
        break;
      case '\n':
      case '\r':
        cell += ' ';
        break;
      default:
        cell += c;
    }
  }
  return cell;
}

std::set<std::string> baselines_of(const std::vector<bench_result>& results) {
  std::set<std::string> names;
  for (const bench_result& one : results) {
    for (const auto& [name, us] : one.baselines_us) {
      if (name != "eager") names.insert(name);
    }
  }
  return names;
}

std::string print_summary(const bench_summary& s) {
  std::string text = "\n## " + s.device_type + ", " + s.group + "\n\n" + std::to_string(s.correct) +
                     " of " + std::to_string(s.tasks) + " tasks have a correct document; " +
                     std::to_string(s.documents) + " documents:";
  for (const auto& [outcome, count] : s.outcomes)
    text += " " + std::to_string(count) + " " + outcome +
            (outcome == s.outcomes.rbegin()->first ? "." : ",");
  if (s.left_out > 0) text += " Left out: " + counted(s.left_out, "task") + " without a result.";
  text += "\n";
  if (s.against.at("eager").tasks == 0) return text;  // nothing was timed
  text += "\n| speed-up against | tasks | geometric mean | median |";
  text += fast_titles;
  text += "\n|---|---|---|---|---|---|---|---|";
  for (const auto& [name, column] : s.against) {
    text += "\n| " + name + " | " + std::to_string(column.tasks) + " | " +
            fixed(column.geometric_mean, 2) + " | " + fixed(column.median, 2) + " |";
    for (const auto& [p, share] : column.fast) text += " " + percent(share) + " |";
  }
  return text + "\n";
}

// Returns a table of the baselines that references lack, each of a task once, or an empty text.
std::string print_missing_baselines(const std::vector<bench_result>& results) {
  std::map<std::string, std::string> reasons;  // by the cells before
  for (const bench_result& one : results) {
    for (const auto& [name, why] : one.missing_baselines)
      reasons.emplace("| " + one.device_type + " | " + one.task + " | " + name + " | ", why);
  }
  if (reasons.empty()) return "";
  std::string text =
      "\n## Missing baselines\n\n| device | task | baseline | why |\n|---|---|---|---|\n";
  for (const auto& [cells, why] : reasons) text += cells + in_cell(why) + " |\n";
  return text;
}

}  // namespace

std::vector<bench_summary> summarize(const std::vector<bench_result>& results) {
  std::map<std::pair<std::string, std::string>, std::vector<const bench_result*>> groups;
  for (const bench_result& one : results) {
    groups[{one.device_type, one.group}].push_back(&one);
    if (one.group != "all") groups[{one.device_type, "all"}].push_back(&one);
  }
  std::vector<bench_summary> all;
  for (const auto& [key, members] : groups)
    all.push_back(summarize_group(key.first, key.second, members));
  return all;
}

std::string print_csv(const std::vector<bench_result>& results) {
  const auto baselines = baselines_of(results);
  std::string text =
      "device_type,group,task,document,outcome,speedup,low,high,reference_us,candidate_us";
  for (const std::string& name : baselines) text += "," + quoted(name + "_us");
  text += ",message\n";
  for (const bench_result& one : results) {
    text += quoted(one.device_type) + "," + quoted(one.group) + "," + quoted(one.task) + "," +
            quoted(one.document) + "," + one.outcome;
    for (const double value : {one.speedup, one.low, one.high, one.reference_us, one.candidate_us})
      text += "," + (value > 0 ? fixed(value, 3) : "");
    for (const std::string& name : baselines) {
      const auto found = one.baselines_us.find(name);
      text += "," + (found != one.baselines_us.end() ? fixed(found->second, 3) : "");
    }
    text += "," + quoted(one.message) + "\n";
  }
  return text;
}

std::string print_markdown(const std::vector<bench_result>& results) {
  std::string text =
      "# Results of `hone bench`\n\nOf each task, the correct document with the highest speed-up "
      "counts. fast_p is the share of\nall tasks with a correct document that is more than p times "
      "as fast.\n";
  for (const bench_summary& s : summarize(results)) text += print_summary(s);
  text +=
      "\n## Documents\n\n| device | task | document | outcome | speed-up | 95 % interval | "
      "reference us | us |\n|---|---|---|---|---|---|---|---|\n";
  for (const bench_result& one : results) {
    const bool timed = one.candidate_us > 0;
    text += "| " + one.device_type + " | " + one.task + " | " + one.document + " | " + one.outcome +
            " | " + (one.is_ok() && timed ? fixed(one.speedup, 2) : "") + " | " +
            (timed ? fixed(one.low, 3) + " to " + fixed(one.high, 3) : "") + " | " +
            (timed ? fixed(one.reference_us, 1) : "") + " | " +
            (timed ? fixed(one.candidate_us, 1) : "") + " |\n";
  }
  return text + print_missing_baselines(results);
}

}  // namespace hone
