#include "launch/run/run_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <fstream>
#include <stdexcept>

#include "launch/cluster/cluster.hpp"
#include "policy/training/checkpoint.hpp"
#include "storage/inspection.hpp"

namespace hone {
namespace {

std::string quoted_for_shell(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+-") ==
          std::string::npos)
    return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Opens the file whose lock keeps other processes out. `flags`: as of open().
unique_fd open_lock(const std::filesystem::path& directory, int flags) {
  return unique_fd(open((directory / "lock").c_str(), O_RDWR | O_CLOEXEC | flags, 0644));
}

}  // namespace

run_folder::run_folder(const std::filesystem::path& path, bool resume) : path_(path) {
  const bool exists = std::filesystem::exists(path / "pool");
  if (resume && !exists)
    throw std::runtime_error(path.string() + ": there is no run to resume here");
  std::filesystem::create_directories(path / "checkpoints");
  lock_ = open_lock(path, O_CREAT);
  if (!lock_ || flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    throw std::runtime_error(path.string() + ": another process runs in this directory");
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
  const auto unfinished = path_ / (name + ".unfinished");
  std::ofstream out(unfinished, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(unfinished.string() + ": cannot be written");
  std::filesystem::rename(unfinished, path_ / name);
}

bool is_locked(const std::filesystem::path& directory) {
  const unique_fd lock = open_lock(directory, 0);
  return lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

std::string command_to_go_on(const std::filesystem::path& directory, bool is_finished) {
  const std::string run = quoted_for_shell(directory.string());
  if (is_finished) return "hone run --dir " + run + " --extend contrastive.steps=20";
  return (is_cluster(directory) ? "hone up " : "hone run --dir ") + run + " --resume";
}

}  // namespace hone
