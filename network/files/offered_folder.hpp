#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "network/files/file_messages.hpp"
#include "process/unique_fd.hpp"

namespace hone {

// Thrown for a piece that is not there yet, but will be.
class piece_is_coming : public std::runtime_error {
 public:
  piece_is_coming() : std::runtime_error("the piece is coming") {}
};

// Opens a file, which can be read as long as the descriptor is kept, also after it was renamed or
// deleted. Throws std::runtime_error.
std::shared_ptr<unique_fd> open_to_read(const std::filesystem::path& file);
// Reads a part of an open file. Throws std::runtime_error.
void read_part(int fd, std::uint64_t offset, char* to, std::size_t size);

// A file that other nodes may copy.
struct offered_file {
  std::string name;
  std::uint64_t bytes = 0;
  // Reads `size` bytes from `offset` on. Throws piece_is_coming, or std::runtime_error. Safe on any
  // thread.
  std::function<void(std::uint64_t offset, char* to, std::size_t size)> read;
};

// The files of a folder, or data that is offered as one, and their hashes. Never changed once it is
// made, so any number of threads may read it.
struct offered_folder {
  std::vector<offered_file> files;
  folder_contents contents;
};

// Returns the folder of `files`, after reading all of them. Throws std::runtime_error.
offered_folder make_offered_folder(std::vector<offered_file> files);

// Returns a file on disk, which stays open, and so can be read after it was deleted. Throws
// std::runtime_error.
offered_file open_offered_file(const std::filesystem::path& file);

// Returns the regular files of a folder whose names `is_offered` accepts, in the order of their
// names. Throws std::runtime_error.
offered_folder open_offered_folder(const std::filesystem::path& folder,
                                   const std::function<bool(const std::string&)>& is_offered);

}  // namespace hone
