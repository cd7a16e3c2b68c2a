#include "tasks/format_error.hpp"

#include <fstream>
#include <iterator>
#include <utility>

namespace hone {
namespace {

std::string lines_of(const std::vector<format_error>& errors) {
  std::string lines;
  for (const format_error& e : errors) lines += (lines.empty() ? "" : "\n") + std::string(e.what());
  return lines;
}

}  // namespace

void format_problems::add(const format_error& e) {
  const auto* several = dynamic_cast<const format_errors*>(&e);
  if (several == nullptr) {
    all_.push_back(e);
  } else {
    all_.insert(all_.end(), several->all.begin(), several->all.end());
  }
}

void format_problems::throw_if_any() const {
  if (all_.size() == 1) throw all_.front();
  if (!all_.empty()) throw format_errors(all_);
}

format_errors::format_errors(std::vector<format_error> errors)
    : format_error(lines_of(errors)), all(std::move(errors)) {}

std::string read_source_file(const std::filesystem::path& path) {
  std::error_code unknown;
  const auto kind = std::filesystem::status(path, unknown).type();
  if (kind == std::filesystem::file_type::not_found)
    throw format_error(path.string(), 0, "", "there is no such file");
  if (kind == std::filesystem::file_type::directory)
    throw format_error(path.string(), 0, "", "is a folder, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw format_error(path.string(), 0, "", "cannot be opened");
  std::error_code is_no_file;
  const std::uintmax_t size = std::filesystem::file_size(path, is_no_file);
  // The buffer has one byte more than the reported size, so that one read reaches the end of the
  // file. Files without a size, and files that have more bytes than they report, are read in
  // pieces.
  constexpr std::size_t piece = 1U << 16U;
  constexpr std::size_t max_stream = 1U << 28U;
  std::string bytes(is_no_file ? piece : static_cast<std::size_t>(size) + 1, '\0');
  std::size_t read = 0;
  while (in.read(bytes.data() + read, static_cast<std::streamsize>(bytes.size() - read))) {
    read = bytes.size();
    if (is_no_file && read > max_stream)
      throw format_error(path.string(), 0, "", "has no end: " + std::to_string(read) + " bytes");
    bytes.resize(bytes.size() + piece);
  }
  if (in.bad()) throw format_error(path.string(), 0, "", "cannot be read");
  bytes.resize(read + static_cast<std::size_t>(in.gcount()));
  return bytes;
}

}  // namespace hone
