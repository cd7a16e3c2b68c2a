#include "network/files/folder_copy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "network/blocking_io.hpp"

namespace hone {
namespace {

using steady = std::chrono::steady_clock;

// Times that a piece may arrive damaged before the copy is given up.
constexpr int most_damages = 5;
constexpr std::chrono::milliseconds retry_pause{300};
constexpr std::chrono::minutes contents_limit{10};
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

}  // namespace

folder_copy::folder_copy(make_connection connect, std::string name, std::filesystem::path cache)
    : connect_(std::move(connect)), name_(std::move(name)), cache_(std::move(cache)) {}

folder_copy::~folder_copy() {
  std::error_code ignored;
  if (!unfinished_.empty()) std::filesystem::remove_all(unfinished_, ignored);
}

bool folder_copy::proceed() {
  if (is_complete_) return true;
  try {
    if (connection_ == nullptr) connection_ = connect_();
    if (!contents_) {
      take_contents();
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

file_reply folder_copy::ask(const file_request& request) {
  send_request(*connection_, request);
  // The other end reads a whole folder before it tells its contents.
  file_reply reply =
      receive_reply(*connection_, request->hasPiece() ? message_limit : contents_limit);
  if (reply->getProblem().size() > 0) throw copy_refused(std::string(view(reply->getProblem())));
  return reply;
}

void folder_copy::take_contents() {
  record_builder<schema::FileRequest> request;
  request->setFolder(name_);
  const file_reply reply = ask(request.finish());
  folder_contents contents = copy_record<schema::FolderContents>(reply->getContents());
  check(contents, name_);
  contents_ = std::move(contents);
  const auto hash = content_id<piece_id>({{contents_.bytes().data(), contents_.bytes().size()}});
  std::string base = name_ + "-" + to_string(hash);
  std::replace(base.begin(), base.end(), '/', '-');
  folder_ = cache_ / base;
  is_complete_ = is_there();
  if (is_complete_) return;
  std::filesystem::remove_all(folder_);
  unfinished_ = cache_ / (base + unfinished_mark + to_hex(random_bits(), random_bits()));
  std::filesystem::create_directories(unfinished_);
}

bool folder_copy::is_there() const {
  std::error_code problem;
  for (const auto one : contents_->getFiles()) {
    const auto bytes =
        std::filesystem::file_size(folder_ / std::string(view(one.getName())), problem);
    if (problem || bytes != one.getBytes()) return false;
  }
  return std::filesystem::exists(folder_, problem);
}

void folder_copy::close_file() {
  if (close(out_.release()) != 0)
    throw copy_refused((unfinished_ / std::string(view(file().getName()))).string() +
                       ": cannot be written");
}

void folder_copy::create_file() {
  const auto path = unfinished_ / std::string(view(file().getName()));
  out_.reset(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out_) throw copy_refused(path.string() + ": cannot be written");
}

void folder_copy::copy_piece() {
  record_builder<schema::FileRequest> request;
  request->setFolder(name_);
  request->initPiece().setFile(file_);
  request->getPiece().setNumber(piece_);
  const file_reply reply = ask(request.finish());
  const std::size_t size = size_of_piece(file().getBytes(), piece_);
  if (bytes_.size() < size) bytes_.resize(size);
  if (reply->getBytes() != size)
    throw connection_failed(name_ + ": a piece of another size arrived");
  read_all(*connection_, bytes_.data(), size, message_limit);
  if (content_id<piece_id>({{bytes_.data(), size}}) != piece_id(file().getPieces()[piece_])) {
    if (++damaged_ < most_damages) return;
    throw copy_refused(name_ + "/" + std::string(view(file().getName())) +
                       ": the other end's bytes are not those that it has promised");
  }
  for (std::size_t done = 0; done < size;) {
    const ssize_t count =
        write(out_.get(), bytes_.data() + done, std::min(size - done, bytes_per_write));
    if (count < 0)
      throw copy_refused((unfinished_ / std::string(view(file().getName()))).string() +
                         ": cannot be written");
    done += static_cast<std::size_t>(count);
  }
  copied_ += size;
  damaged_ = 0;
  ++piece_;
}

void folder_copy::finish() {
  std::error_code exists;  // another copy of the same was faster
  std::filesystem::rename(unfinished_, folder_, exists);
  if (exists && !std::filesystem::exists(folder_))
    throw copy_refused(folder_.string() + ": " + exists.message());
  if (!exists) unfinished_.clear();
  is_complete_ = true;
}

std::filesystem::path copy_folder(const folder_copy::make_connection& connect,
                                  const std::string& name, const std::filesystem::path& cache,
                                  std::chrono::seconds patience) {
  auto end = steady::now() + patience;
  folder_copy copy(connect, name, cache);
  for (;;) {
    try {
      if (copy.proceed()) return copy.folder();
      end = steady::now() + patience;
    } catch (const connection_failed&) {
      if (steady::now() + retry_pause > end) throw;
      std::this_thread::sleep_for(retry_pause);
    }
  }
}

}  // namespace hone
