#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "network/channel.hpp"
#include "network/files/file_messages.hpp"
#include "network/identity.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// What the other end does not offer, and what the disk does not take.
class copy_refused : public network_error {
 public:
  using network_error::network_error;
};

// Stands in the name of a copy that is not complete.
inline constexpr const char* unfinished_mark = ".part-";

// The copy of a folder of another node, piece by piece. Each piece is compared with its hash, and
// copied again if it differs. For one thread.
class folder_copy {
 public:
  // Returns a connection to a file_server. Throws connection_failed.
  using make_connection = std::function<std::shared_ptr<channel>()>;

  // `name` is that of the folder at the other end. The copy becomes a folder in `cache`, named by
  // `name` and the hash of its contents; one that is there already is not copied again.
  folder_copy(make_connection connect, std::string name, std::filesystem::path cache);
  // Removes a copy that is not complete.
  ~folder_copy();
  folder_copy(const folder_copy&) = delete;
  folder_copy& operator=(const folder_copy&) = delete;

  // Copies the next piece. Returns true once the folder is complete. Throws connection_failed,
  // after which another call goes on where this one failed, or copy_refused.
  bool proceed();
  // Returns the complete folder.
  const std::filesystem::path& folder() const { return folder_; }
  std::uint64_t bytes_copied() const { return copied_; }

 private:
  void take_contents();
  // True if a complete copy is there: after a loss of power, files may be shorter than they were.
  bool is_there() const;
  void close_file();
  void create_file();
  void copy_piece();
  void finish();
  file_reply ask(const file_request& request);
  schema::FolderContents::File::Reader file() const { return contents_->getFiles()[file_]; }

  make_connection connect_;
  std::string name_;
  std::filesystem::path cache_;
  std::shared_ptr<channel> connection_;
  folder_contents contents_;
  std::filesystem::path folder_;
  std::filesystem::path unfinished_;
  unique_fd out_;            // the file that is being copied
  unsigned file_ = 0;        // index of it
  std::uint32_t piece_ = 0;  // the next one of it
  int damaged_ = 0;          // times that this piece arrived damaged
  std::uint64_t copied_ = 0;
  std::vector<char> bytes_;
  bool is_complete_ = false;
};

// Copies a whole folder and returns its path; repeats what may work a moment later, as long as a
// piece comes within `patience`. Throws network_error.
std::filesystem::path copy_folder(const folder_copy::make_connection& connect,
                                  const std::string& name, const std::filesystem::path& cache,
                                  std::chrono::seconds patience);

}  // namespace hone
