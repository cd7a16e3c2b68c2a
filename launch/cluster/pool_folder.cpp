#include "launch/cluster/pool_folder.hpp"

#include <fstream>

#include "launch/cluster/programs.hpp"
#include "messages/parse_number.hpp"
#include "process/replace_file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr const char* record_ending = ".node";

}  // namespace

pool_folder::pool_folder(const fs::path& run, std::string pool)
    : pool_(std::move(pool)), path_(run / "cluster" / pool_), logs_(run / "logs") {}

fs::path pool_folder::log(std::int64_t node) const { return logs_ / (node_name(node) + ".log"); }

void pool_folder::set_count(std::int64_t count) const {
  fs::create_directories(path_);
  fs::create_directories(logs_);
  replace_file(path_ / "count", std::to_string(count) + "\n", 0600);
}

std::int64_t pool_folder::count() const {
  std::ifstream in(path_ / "count");
  std::int64_t count = 0;
  return in >> count ? count : 0;
}

std::map<std::int64_t, std::string> pool_folder::records() const {
  std::map<std::int64_t, std::string> records;
  if (!fs::exists(path_)) return records;
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != record_ending || !stem.starts_with(pool_ + "-")) continue;
    const auto node = parse_number<std::int64_t>(std::string_view(stem).substr(pool_.size() + 1));
    if (!node || *node < 0) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    records[*node] = std::string{std::istreambuf_iterator<char>(in), {}};
  }
  return records;
}

void pool_folder::write_record(std::int64_t node, const std::string& text) const {
  replace_file(path_ / (node_name(node) + record_ending), text, 0600);
}

void pool_folder::remove_record(std::int64_t node) const {
  fs::remove(path_ / (node_name(node) + record_ending));
}

void pool_folder::remove() const { fs::remove_all(path_); }

}  // namespace hone
