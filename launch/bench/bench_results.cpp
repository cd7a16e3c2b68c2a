#include "launch/bench/bench_results.hpp"

#include <cmath>
#include <stdexcept>

#include "launch/printing.hpp"
#include "messages/ids.hpp"
#include "messages/versions.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Returns the geometric mean over the cases of each baseline that was timed in all of them.
std::map<std::string, double> baselines_of(const ordered_json& cases) {
  std::map<std::string, double> logs;
  std::map<std::string, std::size_t> timed;
  for (const auto& one : cases) {
    for (const auto& [name, us] : one.at("baselines_us").items()) {
      if (us.get<double>() <= 0) continue;
      logs[name] += std::log(us.get<double>());
      ++timed[name];
    }
  }
  std::map<std::string, double> means;
  for (const auto& [name, log] : logs) {
    if (timed[name] == cases.size())
      means[name] = std::exp(log / static_cast<double>(cases.size()));
  }
  return means;
}

// Returns the cases of the measurement whose score is nearest to the evaluation's.
ordered_json shown_cases(const ordered_json& evaluation) {
  ordered_json cases = ordered_json::array();
  double distance = 0;
  for (const auto& m : evaluation.at("measurements")) {
    if (m.at("outcome") != "ok" || evaluation.at("speedup").is_null()) continue;
    const double off =
        std::abs(m.at("speedup").get<double>() - evaluation.at("speedup").get<double>());
    if (!cases.empty() && off > distance) continue;
    cases = m.at("cases");
    distance = off;
  }
  return cases;
}

double number(const ordered_json& value) { return value.is_number() ? value.get<double>() : 0; }

}  // namespace

std::string bench_key(const std::string& device_type, const task& t, const std::string& text) {
  const auto variant = make_variant(t.id, text);
  return device_type + "/" + to_string(t.id) + "/" + to_string(variant_id(variant->getId())) +
         "/judge" + std::to_string(judge_version);
}

bench_results::bench_results(const fs::path& folder) : path_(folder / "results.jsonl") {
  fs::create_directories(folder);
  std::uintmax_t whole = 0;
  {
    std::ifstream in(path_, std::ios::binary);
    for (std::string line; std::getline(in, line) && !in.eof();) {
      read(ordered_json::parse(line));
      whole += line.size() + 1;
    }
  }
  if (fs::exists(path_)) fs::resize_file(path_, whole);
  out_.open(path_, std::ios::binary | std::ios::app);
  if (!out_) throw std::runtime_error(path_.string() + ": cannot be written");
}

void bench_results::read(const ordered_json& line) {
  bench_result one;
  one.task = line.at("task");
  one.group = line.at("group");
  one.document = line.at("document");
  one.device_type = line.at("device_type");
  one.outcome = line.at("outcome");
  one.message = line.at("message");
  one.speedup = number(line.at("speedup"));
  if (line.at("interval").is_array()) {
    one.low = line.at("interval")[0];
    one.high = line.at("interval")[1];
  }
  one.reference_us = number(line.at("reference_us"));
  one.candidate_us = number(line.at("candidate_us"));
  one.baselines_us = baselines_of(shown_cases(line));
  by_key_[line.at("key")] = std::move(one);
}

bool bench_results::contains(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return by_key_.contains(key);
}

void bench_results::add(const std::string& key, const bench_task& t, const bench_document& document,
                        const schema::Evaluation::Reader& evaluation) {
  ordered_json line = {{"key", key}, {"group", t.group}, {"document", document.name}};
  line.update(to_json(evaluation, t.of.name));
  const std::lock_guard lock(mutex_);
  out_ << one_line(line) << std::endl;
  if (!out_) throw std::runtime_error(path_.string() + ": cannot be written");
  read(line);
}

std::vector<bench_result> bench_results::of(const bench_plan& plan,
                                            const std::vector<std::string>& device_types) const {
  const std::lock_guard lock(mutex_);
  std::vector<bench_result> all;
  for (const std::string& type : device_types) {
    for (const bench_task& t : plan.tasks) {
      for (const bench_document& document : t.documents) {
        const auto found = by_key_.find(bench_key(type, t.of, document.text));
        if (found != by_key_.end()) all.push_back(found->second);
      }
    }
  }
  return all;
}

}  // namespace hone
