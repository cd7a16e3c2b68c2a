#include "ui/server/snapshot.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "messages/parse_number.hpp"
#include "policy/text/tokenizer.hpp"
#include "process/file_lock.hpp"
#include "results/report.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr auto pause_between_looks = std::chrono::milliseconds(500);
constexpr int share_of_time = 10;  // one part of so many
constexpr int lowest_priority = 19;

// Returns a text that changes whenever a writer has written to the pool: the sizes and times of its
// logs and of the list of its files.
std::string stamp_of(const fs::path& pool) {
  std::string stamp;
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(pool, ignored)) {
    const std::string name = file.path().filename();
    if (!name.ends_with(".log") && !name.starts_with("MANIFEST")) continue;
    const auto written = fs::last_write_time(file, ignored).time_since_epoch().count();
    stamp += name + ":" + std::to_string(fs::file_size(file, ignored)) + ":" +
             std::to_string(written) + " ";
  }
  return stamp;
}

// Returns the tokenizer of the newest version's checkpoint that has one.
std::shared_ptr<const tokenizer> load_tokenizer(const fs::path& checkpoints) {
  constexpr auto name = "tokenizer.json";
  try {
    fs::path newest;
    std::uint64_t newest_version = 0;
    for (const auto& folder : fs::directory_iterator(checkpoints)) {
      const auto version = parse_number<std::uint64_t>(folder.path().filename().string());
      if (!version || (!newest.empty() && *version < newest_version)) continue;
      if (!fs::is_regular_file(folder.path() / name)) continue;
      newest = folder.path() / name;
      newest_version = *version;
    }
    if (newest.empty()) return nullptr;
    return std::make_shared<const tokenizer>(tokenizer::load(newest));
  } catch (const std::exception&) {
    return nullptr;  // pages show texts without it
  }
}

std::string hash_text(const std::string& stamp) {
  return std::to_string(std::hash<std::string>()(stamp));
}

}  // namespace

snapshot::snapshot(const fs::path& folder) : pool(folder) {
  compact_groups groups = read_compact_groups(pool);
  results = read_results(pool, groups);
  numbers = make_report(results).json;
  curve = learning_curve(results);
  is_complete = hone::is_complete(pool);
  rows = read_catalogue(pool, std::move(groups));
}

const tokenizer* snapshot::words() const {
  if (!words_) words_ = load_tokenizer(pool.db().folder().parent_path() / "checkpoints");
  return words_->get();
}

snapshot_keeper::snapshot_keeper(fs::path directory) : directory_(std::move(directory)) {
  const pool_inspector readable(directory_ / "pool");
  worker_ = std::thread([this] { work(); });
}

snapshot_keeper::~snapshot_keeper() {
  {
    const std::lock_guard hold(lock_);
    stops_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

std::shared_ptr<snapshot> snapshot_keeper::newest() const {
  const std::lock_guard hold(lock_);
  return newest_;
}

std::shared_ptr<snapshot> snapshot_keeper::wait(std::chrono::milliseconds limit) const {
  std::unique_lock hold(lock_);
  changed_.wait_for(hold, limit, [this] { return newest_ != nullptr || stops_; });
  return newest_;
}

std::string snapshot_keeper::problem() const {
  const std::lock_guard hold(lock_);
  return problem_;
}

snapshot_keeper::run_state snapshot_keeper::state() const {
  if (is_locked(directory_ / "lock")) return run_state::live;
  const auto now = newest();
  if (!now) return run_state::stopped;
  return now->is_complete ? run_state::finished : run_state::stopped;
}

void snapshot_keeper::work() {
  // Pages can be a little late; a run on the same cores should not be.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), lowest_priority);
  std::string stamp;
  auto pause = steady_clock::duration(pause_between_looks);
  for (bool is_first = true;; is_first = false) {
    {
      std::unique_lock hold(lock_);
      if (!is_first) changed_.wait_for(hold, pause, [this] { return stops_; });
      if (stops_) return;
    }
    pause = pause_between_looks;
    const std::string now = stamp_of(directory_ / "pool");
    if (now == stamp) continue;
    const auto begin = steady_clock::now();
    std::shared_ptr<snapshot> made;
    std::string problem;
    try {
      made = std::make_shared<snapshot>(directory_ / "pool");
      made->stamp = hash_text(now);
      stamp = now;
    } catch (const std::exception& e) {
      problem = e.what();
    }
    pause = std::max(pause, (share_of_time - 1) * (steady_clock::now() - begin));
    const std::lock_guard hold(lock_);
    if (made) newest_ = std::move(made);
    problem_ = std::move(problem);
    changed_.notify_all();
  }
}

}  // namespace hone
