#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "results/catalogue.hpp"
#include "results/learning_curve.hpp"
#include "results/run_results.hpp"
#include "storage/inspection.hpp"

namespace hone {

class tokenizer;

// The pool of a run at one moment, with everything that is computed from all of its records. Only
// one thread at a time may use it.
struct snapshot {
  // `folder` is the pool's, in a run's directory.
  explicit snapshot(const std::filesystem::path& folder);

  // Returns the tokenizer of the newest checkpoint that has one, which the first call loads; null
  // if there is none, or if it cannot be read.
  const tokenizer* words() const;

  pool_inspector pool;
  catalogue rows;
  run_results results;
  nlohmann::ordered_json numbers;  // of make_report()
  std::vector<learning_point> curve;
  bool is_complete = false;  // the run has ended
  std::string stamp;         // differs from that of every other state of the pool

 private:
  mutable std::optional<std::shared_ptr<const tokenizer>> words_;  // nullopt: not looked for
};

// Keeps a snapshot of a run's pool up to date: a thread makes a new one after the pool has changed,
// and spends at most a tenth of its time on that.
class snapshot_keeper {
 public:
  // `directory` is a run's. Throws pool_error if it holds no pool that can be read.
  explicit snapshot_keeper(std::filesystem::path directory);
  ~snapshot_keeper();
  snapshot_keeper(const snapshot_keeper&) = delete;
  snapshot_keeper& operator=(const snapshot_keeper&) = delete;

  // Returns the newest snapshot, or null while the first one is being made.
  std::shared_ptr<snapshot> newest() const;
  // Waits for the first snapshot, but at most this long.
  std::shared_ptr<snapshot> wait(std::chrono::milliseconds limit) const;
  // Returns why the pool could not be read the last time, or an empty string.
  std::string problem() const;

  enum class run_state { live, finished, stopped };
  run_state state() const;
  const std::filesystem::path& directory() const { return directory_; }

 private:
  void work();

  std::filesystem::path directory_;
  mutable std::mutex lock_;
  mutable std::condition_variable changed_;
  std::shared_ptr<snapshot> newest_;
  std::string problem_;
  bool stops_ = false;
  std::thread worker_;
};

}  // namespace hone
