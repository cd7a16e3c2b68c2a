#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "network/channel.hpp"
#include "network/files/file_messages.hpp"
#include "network/files/shared_copies.hpp"
#include "network/identity.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// A file that the peer does not offer, or that cannot be written.
class copy_refused : public network_error {
 public:
  using network_error::network_error;
};

// Where the pieces of a copy come from, and where they are passed on.
struct copy_sources {
  // Returns a connection to a file_server. Throws connection_failed.
  using make_connection = std::function<std::shared_ptr<channel>()>;

  make_connection connect;  // to the first node
  // Returns a connection to the file_server of another node, given its address; null if that is not
  // tried. Throws network_error. Empty: all pieces come from the first node.
  std::function<std::shared_ptr<channel>(const std::string& address)> connect_to_node{};
  // The copies that this node passes on, and the port where it does; null and 0: none.
  std::shared_ptr<shared_copies> shared{};
  std::uint16_t port = 0;
};

// Part of the name of a copy that is not complete.
inline constexpr const char* unfinished_mark = ".part-";

// The copy of a folder of the first node, piece by piece. Each piece is compared with its hash,
// which the first node tells, and copied again if it differs. The first node may name another node
// to take the pieces from; if that one fails, takes long for one, or sends a damaged one, the first
// node is asked for another, a few times, and sends the rest itself in the end. For one thread.
class folder_copy {
 public:
  // `name` is that of the folder at the first node. The copy becomes a folder in `cache`, named by
  // `name` and the hash of its contents; one that is there already is not copied again.
  folder_copy(copy_sources sources, std::string name, std::filesystem::path cache);
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
  // Returns how many of them came from another node than the first.
  std::uint64_t bytes_of_nodes() const { return copied_of_nodes_; }

 private:
  void take_contents();
  // Asks the first node for the contents, and where to take them from.
  file_reply ask_for_contents(std::chrono::milliseconds patience);
  // Leaves the node that the pieces come from. `is_lost`: the first node is notified.
  void leave_node(bool is_lost);
  void ask_for_another_node();
  // True if a complete copy is there: after a loss of power, files may be shorter than they were.
  bool is_there() const;
  void close_file();
  void create_file();
  void copy_piece();
  // Receives the next piece from a connection. Returns false if it is not there yet.
  bool receive_piece(channel& from, const std::string& folder, std::chrono::milliseconds patience,
                     std::chrono::steady_clock::time_point end);
  bool is_damaged() const;
  // Receives the next piece from the node that the first one has named. Returns false if it is not
  // there yet, or if that node was given up.
  bool receive_from_node();
  void write_piece();
  void finish();
  void begin_to_share();
  // Shares a file that is about to be copied, or is there.
  void share(const std::filesystem::path& one);
  void share_all();
  schema::FolderContents::File::Reader file() const { return contents_->getFiles()[file_]; }

  copy_sources sources_;
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
  std::uint64_t copied_of_nodes_ = 0;
  std::vector<char> bytes_;              // of the piece that has arrived
  std::size_t size_ = 0;                 // of it
  std::string node_;                     // where pieces come from; empty: the first node
  std::shared_ptr<channel> to_node_;     // the connection to it
  std::string lost_;                     // a node that was left, to report to the first node
  int losses_ = 0;                       // of nodes
  int waits_ = 0;                        // times that it did not have the next piece yet
  int refusals_ = 0;                     // times that it had nothing of the folder
  std::shared_ptr<growing_copy> share_;  // null: it is not passed on
  bool is_complete_ = false;
};

// Copies a whole folder and returns its path; repeats what may work a moment later, up to
// `patience` after the last piece. Throws network_error.
std::filesystem::path copy_folder(const copy_sources& sources, const std::string& name,
                                  const std::filesystem::path& cache,
                                  std::chrono::seconds patience);

}  // namespace hone
