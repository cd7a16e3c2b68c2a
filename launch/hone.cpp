#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>

// The program hone: it becomes hone-ui for `hone ui`, and hone-main for all other commands.
// hone-main takes a third of a second to load LibTorch, and pages need none of it.
int main(int count, char** words) {
  const bool is_viewer = count > 1 && std::string_view(words[1]) == "ui";
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() /
      (is_viewer ? "hone-ui" : "hone-main");
  execv(program.c_str(), is_viewer ? words + 1 : words);
  std::cerr << "hone: " << program.string() << ": cannot be started: " << std::strerror(errno)
            << "\n";
  return 2;
}
