#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace hone {

// The files by which a launcher remembers what it has started, so that another process can go on:
//   RUN/cluster/POOL/count        the number of nodes that are wanted
//   RUN/cluster/POOL/POOL-N.node  the record of node N, such as its process; each launcher's own
//   RUN/logs/POOL-N.log           what the node has printed
// One process at a time changes a pool; `cluster.hpp` sees to that.
class pool_folder {
 public:
  // Makes no folder yet.
  pool_folder(const std::filesystem::path& run, std::string pool);

  std::string node_name(std::int64_t node) const { return pool_ + "-" + std::to_string(node); }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }
  std::filesystem::path log(std::int64_t node) const;

  // Makes the folders and remembers the number of nodes that are wanted.
  void set_count(std::int64_t count) const;
  std::int64_t count() const;  // 0 if none was set

  // Returns the records of all nodes that were started and not stopped.
  std::map<std::int64_t, std::string> records() const;
  void write_record(std::int64_t node, const std::string& text) const;
  void remove_record(std::int64_t node) const;
  // Removes the folder; the logs stay.
  void remove() const;

 private:
  std::string pool_;
  std::filesystem::path path_;
  std::filesystem::path logs_;
};

}  // namespace hone
