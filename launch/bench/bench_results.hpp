#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/evaluate.hpp"
#include "launch/bench/bench_plan.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"

namespace hone {

// One judged document.
struct bench_result {
  std::string task;
  std::string group;
  std::string document;
  std::string device_type;
  std::string outcome;  // "ok", "wrong_result"...
  std::string message;
  bool has_result = true;  // of the task
  double speedup = 0;      // 0 unless ok and timed
  double low = 0;          // 95 % interval of the speed-up
  double high = 0;
  double reference_us = 0;  // geometric means over the cases; 0 if nothing was timed
  double candidate_us = 0;
  // By baseline: its geometric mean in microseconds.
  std::map<std::string, double> baselines_us;
  // By baseline that a case lacks: why.
  std::map<std::string, std::string> missing_baselines;
  bool is_ok() const { return outcome == "ok"; }
};

// Names a result across runs. Results of a document have different keys for different depths, so
// that one folder can hold all of them.
std::string bench_key(const std::string& device_type, const bench_document& document,
                      evaluation_depth depth);

// The file results.jsonl of a benchmark: a JSON object per judged document, appended as soon as it
// is judged, so that a benchmark goes on where it was stopped. Safe on any thread.
class bench_results {
 public:
  // Opens or creates the file in `folder`. A last line that is cut off is removed. Throws
  // std::runtime_error.
  explicit bench_results(const std::filesystem::path& folder);

  bool contains(const std::string& key) const;
  // `key` is of bench_key(). Throws std::runtime_error if the line cannot be written.
  void add(const std::string& key, const bench_task& t, const bench_document& document,
           const schema::Evaluation::Reader& evaluation);
  // Returns the results of a plan's documents that were judged to this depth, in the order of the
  // plan, once for each device type.
  std::vector<bench_result> of(const bench_plan& plan, const std::vector<std::string>& device_types,
                               evaluation_depth depth) const;

 private:
  void read(const nlohmann::ordered_json& line);

  mutable std::mutex mutex_;
  std::filesystem::path path_;
  std::ofstream out_;
  std::map<std::string, bench_result> by_key_;
};

}  // namespace hone
