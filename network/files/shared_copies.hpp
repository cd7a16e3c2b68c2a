#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "network/files/offered_folder.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// A copy that other nodes may take pieces of while it is still being made. Written by one thread
// and read by any. Its files stay open, so it can be read after it was renamed or deleted.
class growing_copy {
 public:
  // `patience`: how long read() waits for a part that is not there.
  explicit growing_copy(folder_contents contents,
                        std::chrono::milliseconds patience = std::chrono::seconds(1));

  // The next file begins. Throws std::runtime_error if it cannot be read.
  void begin_file(const std::filesystem::path& file);
  // Bytes of the current file have been written, as far as this.
  void note(std::uint64_t bytes);
  // The copy was given up: nothing of it can be read any more.
  void end();

  // Reads a part of a file. Waits for it for a moment, then throws piece_is_coming. Throws
  // std::runtime_error if it never comes.
  void read(std::size_t file, std::uint64_t offset, char* to, std::size_t size);
  const folder_contents& contents() const { return contents_; }

 private:
  struct growing_file {
    std::shared_ptr<unique_fd> opened;
    std::uint64_t bytes = 0;  // that are there
  };

  const folder_contents contents_;
  const std::chrono::milliseconds patience_;
  std::mutex lock_;  // guards the next ones
  std::condition_variable grown_;
  std::vector<growing_file> files_;
  bool has_ended_ = false;
};

// The copies that a node offers to other nodes: of each kind, which is the first word of its name,
// the last few that were begun or asked for. A copy is offered under the name of its folder, which
// holds the hash of its contents, so that a node that does not know the contents cannot ask for it.
// Safe on any thread.
class shared_copies {
 public:
  std::shared_ptr<growing_copy> begin(const std::string& name, folder_contents contents);
  // Returns null if no copy has this name.
  std::shared_ptr<const offered_folder> find(const std::string& name);

 private:
  struct entry {
    std::string name;
    std::shared_ptr<const offered_folder> folder;
  };
  std::mutex lock_;  // guards the next one
  std::deque<entry> entries_;
};

}  // namespace hone
