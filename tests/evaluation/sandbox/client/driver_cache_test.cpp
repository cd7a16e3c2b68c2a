// Tests which folder the driver gets for what it compiles in a GPU's process, with a program in the
// place of hone-gpu-sandbox that leaves a file there and says where.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "evaluation/sandbox/client/gpu_process.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing_support::eventually;
using testing_support::read_file;
using testing_support::temporary_folder;

class DriverCache : public testing::Test {
 protected:
  DriverCache() {
    std::ofstream(program_)
        << "#!/bin/sh\n"
           "touch \"$CUDA_CACHE_PATH/compiled\"\n"
           "echo \"$CUDA_CACHE_PATH\" > \"$0.new\" && mv \"$0.new\" \"$0.said\"\n"
           "sleep 60\n";
    chmod(program_.c_str(), 0700);
    setenv("HONE_GPU_SANDBOX", program_.c_str(), 1);
  }
  ~DriverCache() override { unsetenv("HONE_GPU_SANDBOX"); }

  // Returns the folder that a process which was given `driver_cache` has used. The process has
  // ended.
  fs::path used_by_process(const fs::path& driver_cache) {
    const fs::path said = program_.string() + ".said";
    fs::remove(said);
    const gpu_process process("0", driver_cache);
    EXPECT_TRUE(eventually([&] { return fs::exists(said); }));
    const std::string line = read_file(said);
    return line.substr(0, line.find('\n'));
  }

  temporary_folder folder_;
  fs::path program_ = folder_ / "sandbox";
};

TEST_F(DriverCache, StaysWhereItIsKept) {
  const fs::path kept = folder_ / "driver/GPU-0";
  EXPECT_EQ(used_by_process(kept), kept);
  EXPECT_TRUE(fs::exists(kept / "compiled"));
}

TEST_F(DriverCache, GoesWithTheProcessIfItIsNotKept) {
  const fs::path used = used_by_process({});
  EXPECT_FALSE(used.empty());
  EXPECT_FALSE(fs::exists(used));
}

TEST_F(DriverCache, GoesWithTheProcessIfItCannotBeKept) {
  std::ofstream(folder_ / "file") << "not a folder";
  const fs::path used = used_by_process(folder_ / "file/driver");
  EXPECT_FALSE(used.empty());
  EXPECT_NE(used, folder_ / "file/driver");
  EXPECT_FALSE(fs::exists(used));
}

}  // namespace
}  // namespace hone
