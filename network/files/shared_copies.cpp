#include "network/files/shared_copies.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hone {
namespace {

// Of a kind. Their files stay on the disk as long as they are offered.
constexpr std::ptrdiff_t max_copies = 3;

std::string_view kind_of(std::string_view name) { return name.substr(0, name.find('-')); }

}  // namespace

growing_copy::growing_copy(folder_contents contents, std::chrono::milliseconds patience)
    : contents_(std::move(contents)), patience_(patience) {}

void growing_copy::begin_file(const std::filesystem::path& file) {
  std::shared_ptr<unique_fd> opened = open_to_read(file);
  const std::scoped_lock guard(lock_);
  files_.push_back({std::move(opened), 0});
}

void growing_copy::note(std::uint64_t bytes) {
  {
    const std::scoped_lock guard(lock_);
    files_.back().bytes = bytes;
  }
  grown_.notify_all();
}

void growing_copy::end() {
  {
    const std::scoped_lock guard(lock_);
    has_ended_ = true;
    files_.clear();  // the disk has their room again
  }
  grown_.notify_all();
}

void growing_copy::read(std::size_t file, std::uint64_t offset, char* to, std::size_t size) {
  std::unique_lock guard(lock_);
  const auto is_there = [&] { return file < files_.size() && offset + size <= files_[file].bytes; };
  grown_.wait_for(guard, patience_, [&] { return is_there() || has_ended_; });
  if (!is_there()) {
    if (has_ended_) throw std::runtime_error("the copy was given up");
    throw piece_is_coming();
  }
  const std::shared_ptr<unique_fd> opened = files_[file].opened;
  guard.unlock();
  read_part(opened->get(), offset, to, size);
}

std::shared_ptr<growing_copy> shared_copies::begin(const std::string& name,
                                                   folder_contents contents) {
  const auto copy = std::make_shared<growing_copy>(std::move(contents));
  auto folder = std::make_shared<offered_folder>();
  folder->contents = copy->contents();
  const auto files = folder->contents->getFiles();
  for (unsigned i = 0; i < files.size(); ++i) {
    const auto read = [copy, i](std::uint64_t offset, char* to, std::size_t size) {
      copy->read(i, offset, to, size);
    };
    folder->files.push_back({std::string(view(files[i].getName())), files[i].getBytes(), read});
  }
  const std::scoped_lock guard(lock_);
  std::erase_if(entries_, [&](const entry& one) { return one.name == name; });
  entries_.push_back({name, std::move(folder)});
  const auto is_alike = [&](const entry& one) { return kind_of(one.name) == kind_of(name); };
  if (std::count_if(entries_.begin(), entries_.end(), is_alike) > max_copies)
    entries_.erase(std::find_if(entries_.begin(), entries_.end(), is_alike));
  return copy;
}

std::shared_ptr<const offered_folder> shared_copies::find(const std::string& name) {
  const std::scoped_lock guard(lock_);
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const entry& one) { return one.name == name; });
  if (found == entries_.end()) return nullptr;
  std::rotate(found, found + 1, entries_.end());
  return entries_.back().folder;
}

}  // namespace hone
