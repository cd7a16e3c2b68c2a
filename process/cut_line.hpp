#pragma once

#include <filesystem>

namespace hone {

// Removes a last line without its newline: a process was writing it when it was killed, and lines
// that are appended later would continue it. Errors are ignored, because appending to the file
// meets them again. The file must have no other writer.
void remove_cut_line(const std::filesystem::path& file);

}  // namespace hone
