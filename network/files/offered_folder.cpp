#include "network/files/offered_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace hone {

std::shared_ptr<unique_fd> open_to_read(const std::filesystem::path& file) {
  auto opened = std::make_shared<unique_fd>(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!*opened) throw std::runtime_error(file.string() + ": cannot be read");
  return opened;
}

void read_part(int fd, std::uint64_t offset, char* to, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = pread(fd, to + done, size - done, static_cast<off_t>(offset + done));
    if (count <= 0) throw std::runtime_error("a file cannot be read");
    done += static_cast<std::size_t>(count);
  }
}

offered_folder make_offered_folder(std::vector<offered_file> files) {
  record_builder<schema::FolderContents> contents;
  auto list = contents->initFiles(static_cast<unsigned>(files.size()));
  std::vector<char> piece(piece_bytes);
  for (unsigned f = 0; f < list.size(); ++f) {
    const offered_file& file = files[f];
    list[f].setName(file.name);
    list[f].setBytes(file.bytes);
    auto pieces = list[f].initPieces(count_pieces(file.bytes));
    for (unsigned p = 0; p < pieces.size(); ++p) {
      const std::size_t size = size_of_piece(file.bytes, p);
      file.read(std::uint64_t{p} * piece_bytes, piece.data(), size);
      content_id<piece_id>({std::string_view(piece.data(), size)}).store(pieces[p]);
    }
  }
  return {std::move(files), contents.finish()};
}

offered_file open_offered_file(const std::filesystem::path& file) {
  const auto read = [opened = open_to_read(file)](std::uint64_t offset, char* to,
                                                  std::size_t size) {
    read_part(opened->get(), offset, to, size);
  };
  return {file.filename().string(), std::filesystem::file_size(file), read};
}

offered_folder open_offered_folder(const std::filesystem::path& folder,
                                   const std::function<bool(const std::string&)>& is_offered) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file() && is_offered(entry.path().filename().string()))
      paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<offered_file> files;
  files.reserve(paths.size());
  for (const auto& path : paths) files.push_back(open_offered_file(path));
  return make_offered_folder(std::move(files));
}

}  // namespace hone
