#include "launch/run/run_folder.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "launch/cluster/cluster.hpp"
#include "launch/cluster/programs.hpp"
#include "policy/training/checkpoint.hpp"
#include "process/file_lock.hpp"
#include "process/replace_file.hpp"
#include "storage/inspection.hpp"

namespace hone {
namespace {

// Names of a run's files, of which one at least is in each run's folder.
constexpr std::array<std::string_view, 5> names_of_runs = {"pool", "config.toml", "checkpoints",
                                                           "lock", "cluster"};

// Throws if a folder has files and none of a run: the run's would be mixed with them.
void refuse_other_files(const std::filesystem::path& path) {
  std::error_code problem;
  std::string other;
  for (const auto& entry : std::filesystem::directory_iterator(path, problem)) {
    const std::string name = entry.path().filename();
    if (std::find(names_of_runs.begin(), names_of_runs.end(), name) != names_of_runs.end()) return;
    if (!name.starts_with(".") && (other.empty() || name < other)) other = name;
  }
  if (!other.empty())
    throw std::runtime_error(path.string() + ": holds files of something else, such as " + other +
                             "; name an empty or a new folder with --dir");
}

// The file whose lock keeps other processes out.
std::filesystem::path lock_of(const std::filesystem::path& directory) { return directory / "lock"; }

}  // namespace

run_folder::run_folder(const std::filesystem::path& path, bool resume) : path_(path) {
  const bool exists = std::filesystem::exists(path / "pool");
  // A run that was killed before it had a pool has its configuration, and begins anew.
  if (resume && !exists && !std::filesystem::exists(path / "config.toml"))
    throw std::runtime_error(path.string() + ": there is no run to resume here");
  refuse_other_files(path);
  std::error_code problem;
  std::filesystem::create_directories(path / "checkpoints", problem);
  if (problem)
    throw std::runtime_error(path.string() +
                             ": the directory of the run cannot be made: " + problem.message());
  // `hone status` may look at the lock at this moment.
  lock_ = try_lock_file(lock_of(path), std::chrono::milliseconds(500));
  if (!lock_) {
    const std::string holder = describe_holder(lock_of(path));
    throw std::runtime_error(path.string() + ": another process runs in this directory" +
                             (holder.empty() ? "" : ", " + holder) +
                             " (hone status --dir shows it); name another directory with --dir");
  }
  if (exists && !resume)
    throw std::runtime_error(
        path.string() +
        ": there is a run already; continue it with --resume or name another folder with --dir");
  // A killed process leaves the checkpoint that it was writing.
  for (const auto& entry : std::filesystem::directory_iterator(path / "checkpoints")) {
    if (entry.path().extension() == ".unfinished") std::filesystem::remove_all(entry.path());
  }
}

run_folder::resume_point run_folder::find_resume_point(
    const std::function<void(const std::string&)>& say) const {
  if (!std::filesystem::exists(pool())) return {};
  const pool_inspector inspector(pool());
  const version_chain chain = inspector.versions();
  resume_point point;
  point.next_version = inspector.next_version();
  point.scored_device_types = inspector.scored_device_types();
  // A run that was killed before its first version starts anew over the same pool.
  if (!chain.head()) return point;
  std::vector<std::uint64_t> path = chain.path_to(*chain.head());
  while (!path.empty()) {
    const auto damage = find_checkpoint_damage(path_ / checkpoint_name(path.back()));
    if (!damage) break;
    if (std::filesystem::exists(path_ / checkpoint_name(path.back())))
      say(*damage + "; looking for an earlier one");
    path.pop_back();
    point.leaves_branch = true;
  }
  if (path.empty())
    throw std::runtime_error(path_.string() +
                             ": no checkpoint is intact, so the run cannot be resumed (its pool "
                             "can still be read: hone pool ls --pool " +
                             pool().string() + ")");
  for (const std::uint64_t version : path) point.chain.push_back(*chain.find(version));
  return point;
}

// The version that ended the stage belongs to the next one, so that the stage's last step is made
// again.
std::optional<std::int64_t> run_folder::resume_point::reopen_contrastive_stage() {
  while (!chain.empty() && chain.back()->getStage() == Stage::COMPARISON) {
    chain.pop_back();
    leaves_branch = true;
  }
  if (chain.empty() || chain.back()->getStage() != Stage::CONTRASTIVE) return std::nullopt;
  return static_cast<std::int64_t>(chain.back()->getStep()) + (leaves_branch ? 1 : 0);
}

void run_folder::write(const std::string& name, const std::string& text) const {
  replace_file(path_ / name, text, 0644);
}

bool is_live(const std::filesystem::path& directory) { return is_locked(lock_of(directory)); }

namespace {
// True for the directory of `hone serve`, which has no policy.
bool is_of_server(const std::filesystem::path& directory) {
  std::ifstream in(directory / "config.toml");
  bool is_policy = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("[")) is_policy = line == "[policy]";
    if (is_policy && line == "kind = \"none\"") return true;
  }
  return false;
}
}  // namespace

std::string command_to_go_on(const std::filesystem::path& directory, bool is_finished) {
  const std::string run = shell_quoted(directory.string());
  if (is_of_server(directory))
    return "hone serve " + shell_quoted((directory / "config.toml").string()) + " --dir " + run;
  if (is_finished) return "hone run --dir " + run + " --extend contrastive.steps=20";
  return (is_cluster(directory) ? "hone up " : "hone run --dir ") + run + " --resume";
}

std::string command_to_watch(const std::filesystem::path& directory) {
  return "hone ui " + shell_quoted(directory.string());
}

}  // namespace hone
