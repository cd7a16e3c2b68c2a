#include "network/files/folder_copy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "network/blocking_io.hpp"
#include "network/files/offered_folder.hpp"
#include "process/write_failure.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

// Times that a piece may arrive damaged before the copy is given up.
constexpr int max_damages = 5;
constexpr std::chrono::milliseconds retry_pause{300};
constexpr std::chrono::minutes contents_limit{10};
// How long another node than the first may take to send a piece, and how often it may say, each
// time after a second, that it has yet to get the piece. That is longer in all: a node leaves a
// frozen source after the first limit, and those behind the node shall stay with it meanwhile.
constexpr std::chrono::seconds node_limit{10};
constexpr int max_waits = 30;
// How often a node may have nothing of the folder, which it has asked for before.
constexpr int max_refusals = 10;
// How many nodes are left before the rest comes from the first one.
constexpr int max_losses = 4;
// The kernel may not interrupt a write for actors' messages.
constexpr std::size_t bytes_per_write = std::size_t{256} << 10U;

bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Throws copy_refused for contents that no file_server offers.
void check(const folder_contents& contents, const std::string& name) {
  std::set<std::string_view> names;
  for (const auto file : contents->getFiles()) {
    if (is_file_name(view(file.getName())) && names.insert(view(file.getName())).second &&
        file.getPieces().size() == count_pieces(file.getBytes()))
      continue;
    throw copy_refused(name + ": the other end offers files that cannot be copied");
  }
}

file_reply ask(channel& to, const file_request& request, std::chrono::milliseconds patience,
               steady::time_point end = endless) {
  send_request(to, request);
  file_reply reply = receive_reply(to, patience, end);
  if (reply->getProblem().size() > 0) throw copy_refused(std::string(view(reply->getProblem())));
  return reply;
}

}  // namespace

folder_copy::folder_copy(copy_sources sources, std::string name, std::filesystem::path cache)
    : sources_(std::move(sources)), name_(std::move(name)), cache_(std::move(cache)) {}

folder_copy::~folder_copy() {
  if (share_ != nullptr && !is_complete_) share_->end();
  std::error_code ignored;
  if (!unfinished_.empty()) std::filesystem::remove_all(unfinished_, ignored);
}

bool folder_copy::proceed() {
  if (is_complete_) return true;
  try {
    if (connection_ == nullptr && node_.empty()) connection_ = sources_.connect();
    if (!contents_) {
      take_contents();
    } else if (!lost_.empty()) {
      ask_for_another_node();
    } else if (file_ == contents_->getFiles().size()) {
      finish();
    } else if (!out_) {
      create_file();
    } else if (piece_ == file().getPieces().size()) {
      close_file();
      ++file_;
      piece_ = 0;
    } else {
      copy_piece();
    }
  } catch (const connection_failed&) {
    connection_.reset();
    throw;
  } catch (const std::filesystem::filesystem_error& e) {
    throw copy_refused(name_ + ": " + e.what());
  }
  return is_complete_;
}

file_reply folder_copy::ask_for_contents(std::chrono::milliseconds patience) {
  record_builder<schema::FileRequest> request;
  request->setFolder(name_);
  request->setPort(sources_.port);
  request->setLost(lost_);
  return ask(*connection_, request.finish(), patience);
}

void folder_copy::leave_node(bool is_lost) {
  lost_ = is_lost && ++losses_ <= max_losses ? node_ : "";
  node_.clear();
  to_node_.reset();
  waits_ = 0;
  refusals_ = 0;
}

void folder_copy::ask_for_another_node() {
  const file_reply reply = ask_for_contents(message_limit);
  const auto& found = reply->getContents();
  // The first node may have another folder of this name by now, if it was started again.
  if (copy_record<schema::FolderContents>(found).bytes() != contents_.bytes())
    throw copy_refused(name_ + ": its contents have changed meanwhile");
  node_ = std::string(view(reply->getSource()));
  lost_.clear();
}

void folder_copy::take_contents() {
  // The other end reads a whole folder before it tells its contents.
  const file_reply reply = ask_for_contents(contents_limit);
  folder_contents contents = copy_record<schema::FolderContents>(reply->getContents());
  check(contents, name_);
  contents_ = std::move(contents);
  const auto hash = content_id<piece_id>({{contents_.bytes().data(), contents_.bytes().size()}});
  std::string base = name_ + "-" + to_string(hash);
  std::replace(base.begin(), base.end(), '/', '-');
  folder_ = cache_ / base;
  is_complete_ = is_there();
  if (is_complete_) return share_all();
  std::filesystem::remove_all(folder_);
  unfinished_ = cache_ / (base + unfinished_mark + to_hex(random_bits(), random_bits()));
  std::filesystem::create_directories(unfinished_);
  if (sources_.connect_to_node) node_ = std::string(view(reply->getSource()));
  begin_to_share();
}

// Files of the right size are not enough: those of a node that has lost power may be zeros.
bool folder_copy::is_there() const {
  try {
    if (!std::filesystem::exists(folder_)) return false;
    std::vector<offered_file> files;
    for (const auto one : contents_->getFiles()) {
      files.push_back(open_offered_file(folder_ / std::string(view(one.getName()))));
      if (files.back().bytes != one.getBytes()) return false;
    }
    const folder_contents found = make_offered_folder(std::move(files)).contents;
    return copy_record<schema::FolderContents>(*found).bytes() ==
           copy_record<schema::FolderContents>(*contents_).bytes();
  } catch (const std::runtime_error&) {
    return false;
  }
}

void folder_copy::close_file() {
  if (fsync(out_.get()) != 0 || close(out_.release()) != 0)
    throw copy_refused(write_failure(unfinished_ / std::string(view(file().getName()))));
}

void folder_copy::create_file() {
  const auto path = unfinished_ / std::string(view(file().getName()));
  out_.reset(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out_) throw copy_refused(write_failure(path));
  share(path);
}

void folder_copy::share(const std::filesystem::path& one) {
  if (share_ == nullptr) return;
  try {
    share_->begin_file(one);
  } catch (const std::runtime_error&) {  // no descriptors are left: it is not passed on
    share_->end();
    share_.reset();
  }
}

void folder_copy::share_all() {
  begin_to_share();
  for (const auto one : contents_->getFiles()) {
    share(folder_ / std::string(view(one.getName())));
    if (share_ != nullptr) share_->note(one.getBytes());
  }
}

void folder_copy::begin_to_share() {
  if (sources_.shared != nullptr)
    share_ = sources_.shared->begin(folder_.filename().string(),
                                    copy_record<schema::FolderContents>(*contents_));
}

void folder_copy::copy_piece() {
  size_ = size_of_piece(file().getBytes(), piece_);
  if (bytes_.size() < size_) bytes_.resize(size_);
  if (!node_.empty()) {
    if (!receive_from_node()) return;
  } else {
    if (!receive_piece(*connection_, name_, message_limit, endless))
      throw connection_failed(name_ + ": a piece is not there yet");
    if (is_damaged()) {
      if (++damaged_ < max_damages) return;
      throw copy_refused(name_ + "/" + std::string(view(file().getName())) +
                         ": the other end's bytes are not those that it has promised");
    }
  }
  write_piece();
  copied_ += size_;
  if (!node_.empty()) copied_of_nodes_ += size_;
  damaged_ = 0;
  ++piece_;
  if (share_ != nullptr) share_->note(std::uint64_t{piece_ - 1} * piece_bytes + size_);
}

bool folder_copy::receive_piece(channel& from, const std::string& folder,
                                std::chrono::milliseconds patience, steady::time_point end) {
  record_builder<schema::FileRequest> request;
  request->setFolder(folder);
  request->initPiece().setFile(file_);
  request->getPiece().setNumber(piece_);
  const file_reply reply = ask(from, request.finish(), patience, end);
  if (reply->getComing()) return false;
  if (reply->getBytes() != size_)
    throw connection_failed(name_ + ": a piece of another size arrived");
  read_all(from, bytes_.data(), size_, patience, end);
  return true;
}

bool folder_copy::is_damaged() const {
  return content_id<piece_id>({{bytes_.data(), size_}}) != piece_id(file().getPieces()[piece_]);
}

bool folder_copy::receive_from_node() {
  try {
    if (to_node_ == nullptr) to_node_ = sources_.connect_to_node(node_);
    if (to_node_ == nullptr) {
      leave_node(false);
      return false;
    }
    const bool has_come = receive_piece(*to_node_, folder_.filename().string(), node_limit,
                                        steady::now() + node_limit);
    if (!has_come && ++waits_ < max_waits) return false;
    if (has_come && !is_damaged()) {
      waits_ = 0;
      return true;
    }
  } catch (const copy_refused&) {  // it has asked for the folder, but may not have begun yet
    if (++refusals_ < max_refusals) {
      std::this_thread::sleep_for(retry_pause);
      return false;
    }
  } catch (const network_error&) {  // it has gone or cannot be reached
  }
  leave_node(true);
  return false;
}

void folder_copy::write_piece() {
  for (std::size_t done = 0; done < size_;) {
    const ssize_t count =
        write(out_.get(), bytes_.data() + done, std::min(size_ - done, bytes_per_write));
    if (count < 0)
      throw copy_refused(write_failure(unfinished_ / std::string(view(file().getName()))));
    done += static_cast<std::size_t>(count);
  }
}

void folder_copy::finish() {
  std::error_code exists;  // another copy of the same was faster
  std::filesystem::rename(unfinished_, folder_, exists);
  if (exists && !std::filesystem::exists(folder_))
    throw copy_refused(folder_.string() + ": " + exists.message());
  if (!exists) unfinished_.clear();
  is_complete_ = true;
}

std::filesystem::path copy_folder(const copy_sources& sources, const std::string& name,
                                  const std::filesystem::path& cache,
                                  std::chrono::seconds patience) {
  std::optional<steady::time_point> failing_since;
  folder_copy copy(sources, name, cache);
  for (;;) {
    try {
      if (copy.proceed()) return copy.folder();
      failing_since.reset();
    } catch (const connection_failed&) {
      if (!failing_since) failing_since = steady::now();
      if (steady::now() + retry_pause > *failing_since + patience) throw;
      std::this_thread::sleep_for(retry_pause);
    }
  }
}

}  // namespace hone
