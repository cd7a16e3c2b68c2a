#include "launch/bench/bench_results.hpp"

#include <stdexcept>

#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "process/cut_line.hpp"
#include "process/write_failure.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

double number(const ordered_json& value) { return value.is_number() ? value.get<double>() : 0; }

}  // namespace

std::string bench_key(const std::string& device_type, const bench_document& document,
                      evaluation_depth depth) {
  const char* const suffix = depth == evaluation_depth::verdict     ? "/verified"
                             : depth == evaluation_depth::screening ? "/screened"
                                                                    : "";
  return device_type + "/" + document.id + suffix;
}

bench_results::bench_results(const fs::path& folder) : path_(folder / "results.jsonl") {
  fs::create_directories(folder);
  remove_cut_line(path_);
  std::ifstream in(path_, std::ios::binary);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    try {
      read(ordered_json::parse(line));
    } catch (const nlohmann::json::exception&) {
      throw std::runtime_error(path_.string() + ":" + std::to_string(number) +
                               ": is no result of `hone bench`; remove the line");
    }
  }
  out_.open(path_, std::ios::binary | std::ios::app);
  if (!out_) throw std::runtime_error(write_failure(path_));
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
  one.baselines_us = line.at("baselines_us");
  if (line.contains("missing_baselines")) one.missing_baselines = line.at("missing_baselines");
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
  line["baselines_us"] = ordered_json::object();
  line["missing_baselines"] = ordered_json::object();
  if (evaluation.getOutcome() == Outcome::OK) {
    line["baselines_us"] = baselines_us(measurement_of_score(evaluation));
    line["missing_baselines"] = missing_baselines(measurement_of_score(evaluation));
  }
  const std::lock_guard lock(mutex_);
  out_ << one_line(line) << std::endl;
  if (!out_) throw std::runtime_error(write_failure(path_));
  read(line);
}

std::vector<bench_result> bench_results::of(const bench_plan& plan,
                                            const std::vector<std::string>& device_types,
                                            evaluation_depth depth) const {
  const std::lock_guard lock(mutex_);
  std::vector<bench_result> all;
  for (const std::string& type : device_types) {
    for (const bench_task& t : plan.tasks) {
      for (const bench_document& document : t.documents) {
        const auto found = by_key_.find(bench_key(type, document, depth));
        if (found == by_key_.end()) continue;
        all.push_back(found->second);
        all.back().has_result = t.of.has_result;
      }
    }
  }
  return all;
}

}  // namespace hone
