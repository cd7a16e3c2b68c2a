#include "process/visible_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "process/seccomp_filters.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing_support::temporary_folder;
using testing_support::write_file;

class VisibleFiles : public testing::Test {
 protected:
  VisibleFiles() {
    fs::create_directories(folder_ / "include/inner");
    fs::create_directories(folder_ / "work");
    write_file(folder_ / "include/a.h", "the first");
    write_file(folder_ / "include/inner/b.h", std::string(300'000, 'b'));
    write_file(folder_ / "work/own.h", "own");
    write_file(folder_ / "work/large.pch", "precompiled");
    write_file(folder_ / "secret.h", "secret");
    fs::create_directory_symlink("inner", folder_ / "include/linked");
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Returns what `work` returns in a process that works in the folder "work" and sees the files of
  // "include", "own.h", "large.pch" and the folder itself.
  int hidden(const std::function<int()>& work) const {
    const pid_t child = fork();
    if (child == 0) {
      try {
        fs::current_path(folder_ / "work");
        visible_files files;
        files.read({folder_ / "include", "own.h"}, 1U << 20U);
        files.add_opened("large.pch");
        files.add_opened(".");
        files.hide_others();
        _exit(work());
      } catch (const std::exception& e) {
        std::fputs(e.what(), stderr);
        _exit(98);
      }
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
  }

  temporary_folder folder_;
};

std::string contents(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY);
  if (file < 0) return "cannot be opened";
  std::string text(1U << 20U, '\0');
  std::size_t got = 0;
  for (ssize_t n = 0; (n = read(file, text.data() + got, text.size() - got)) > 0;)
    got += static_cast<std::size_t>(n);
  close(file);
  return text.substr(0, got);
}

TEST_F(VisibleFiles, AreReadAsOftenAsNeededByAnySpellingOfTheirPaths) {
  EXPECT_EQ(hidden([&] {
              for (int again = 0; again < 2; ++again) {
                if (contents(path("include/a.h")) != "the first") return 1;
                if (contents(path("include/inner/../a.h")) != "the first") return 2;
                if (contents("../include//inner/./b.h") != std::string(300'000, 'b')) return 3;
                if (contents(path("include/linked/b.h")).size() != 300'000) return 6;
                if (contents("./own.h") != "own" || contents("own.h") != "own") return 4;
                if (contents("./large.pch") != "precompiled") return 5;
              }
              return 0;
            }),
            0);
}

TEST_F(VisibleFiles, HaveFactsAndCanBeMapped) {
  EXPECT_EQ(hidden([&] {
              struct stat facts {};
              if (stat(path("include/a.h").c_str(), &facts) != 0 || facts.st_size != 9) return 1;
              if (!S_ISREG(facts.st_mode)) return 2;
              if (stat(".", &facts) != 0 || !S_ISDIR(facts.st_mode)) return 3;
              const int file = open("large.pch", O_RDONLY);
              if (fstat(file, &facts) != 0 || facts.st_size != 11) return 4;
              const void* mapped = mmap(nullptr, 11, PROT_READ, MAP_PRIVATE, file, 0);
              return mapped != MAP_FAILED && std::memcmp(mapped, "precompiled", 11) == 0 ? 0 : 5;
            }),
            0);
}

TEST_F(VisibleFiles, AreListedInAFolderThatWasOpened) {
  EXPECT_EQ(hidden([&] {
              for (int again = 0; again < 2; ++again) {
                DIR* folder = opendir(".");
                if (folder == nullptr) return 1;
                int files = 0;
                while (const dirent* entry = readdir(folder)) files += entry->d_name[0] != '.';
                closedir(folder);
                if (files != 2) return 2;
              }
              return opendir("..") == nullptr ? 0 : 3;
            }),
            0);
}

TEST_F(VisibleFiles, AreAllThatExists) {
  const std::string secret = path("secret.h");
  const std::vector<std::function<bool()>> attempts = {
      [&] { return open(secret.c_str(), O_RDONLY) >= 0; },
      [&] { return open("../secret.h", O_RDONLY) >= 0; },
      [&] { return open("/etc/passwd", O_RDONLY) >= 0; },
      [&] { return open("/proc/self/exe", O_RDONLY) >= 0; },
      [&] { return open(path("include").c_str(), O_RDONLY | O_DIRECTORY) >= 0; },
      [&] { return openat(open(".", O_RDONLY), "../secret.h", O_RDONLY) >= 0; },
      [&] { return syscall(SYS_open, secret.c_str(), O_RDONLY) >= 0; },
      [&] { return syscall(SYS_openat2, AT_FDCWD, secret.c_str(), nullptr, 0) >= 0; },
      [&] { return access(secret.c_str(), F_OK) == 0; },
      [&] { return syscall(SYS_faccessat2, AT_FDCWD, secret.c_str(), F_OK, 0) == 0; },
      [&] {
        struct stat facts {};
        return stat(secret.c_str(), &facts) == 0 || lstat(secret.c_str(), &facts) == 0 ||
               fstatat(open(".", O_RDONLY), "../secret.h", &facts, 0) == 0;
      },
      [&] {
        struct statx facts {};
        return statx(AT_FDCWD, secret.c_str(), 0, STATX_ALL, &facts) == 0;
      },
      [&] {
        std::string target(100, '\0');
        return readlink("/proc/self/exe", target.data(), target.size()) >= 0;
      },
      [&] { return chdir("/") == 0; },
      [&] { return rename("own.h", "other.h") == 0; },
      [&] { return mkdir("new", 0700) == 0; },
      [&] { return truncate(secret.c_str(), 0) == 0; },
      [&] { return execl("/bin/true", "true", nullptr) == 0; },
      [&] { return fork() >= 0; },
      [&] { return socket(AF_UNIX, SOCK_STREAM, 0) >= 0; },
      [&] { return kill(getppid(), 0) == 0; },
  };
  for (std::size_t i = 0; i < attempts.size(); ++i)
    EXPECT_EQ(hidden([&] { return attempts[i]() ? 1 : 0; }), 0) << "attempt " << i;
  EXPECT_EQ(fs::file_size(secret), 6U);
}

TEST_F(VisibleFiles, AreTheSameForEveryProcessWhateverOneWrites) {
  EXPECT_EQ(hidden([&] {
              const int file = open(path("include/a.h").c_str(), O_RDWR);
              if (write(file, "other", 5) != 5) return 1;  // into its copy
              if (contents(path("include/a.h")) != "the first") return 2;
              const int made = open("new.h", O_RDWR | O_CREAT, 0600);
              if (write(made, "x", 1) != 1 || unlink("new.h") != 0) return 3;
              return open("new.h", O_RDONLY) < 0 ? 0 : 4;
            }),
            0);
  EXPECT_FALSE(fs::exists(folder_ / "work/new.h"));
  EXPECT_EQ(testing_support::read_file(folder_ / "include/a.h"), "the first");
}

TEST_F(VisibleFiles, AreRefusedIfTheyAreTooLarge) {
  visible_files files;
  EXPECT_THROW(files.read({folder_ / "include"}, 1000), std::runtime_error);
}

}  // namespace
}  // namespace hone
