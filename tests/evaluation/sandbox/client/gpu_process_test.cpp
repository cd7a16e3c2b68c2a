// Tests the judge's side of a GPU's process, with a program instead of hone-gpu-sandbox that sends
// what the test has written and then reads nothing.

#include "evaluation/sandbox/client/gpu_process.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "process/framing.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class GpuProcess : public testing::Test {
 protected:
  GpuProcess() {
    std::ofstream(program_) << "#!/bin/sh\ncat \"$0.sent\" >&3\nexec sleep 60\n";
    chmod(program_.c_str(), 0700);
    setenv("HONE_GPU_SANDBOX", program_.c_str(), 1);
  }
  ~GpuProcess() override { unsetenv("HONE_GPU_SANDBOX"); }

  // Makes the program send a reply.
  void let_it_send(const record<schema::Reply>& reply) {
    const auto length = static_cast<std::uint32_t>(reply.bytes().size());
    std::ofstream file(program_.string() + ".sent", std::ios::app);
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file.write(reply.bytes().data(), static_cast<std::streamsize>(reply.bytes().size()));
  }
  void let_it_be_ready() {
    record_builder<schema::Reply> ready;
    ready->setStaged();
    let_it_send(ready.finish());
  }

  testing_support::temporary_folder folder_;
  std::filesystem::path program_ = folder_ / "sandbox";
};

TEST_F(GpuProcess, IsKilledAtTheDeadlineIfItStopsReading) {
  let_it_be_ready();
  gpu_process process("0");
  process.await_ready();
  const std::string long_program(2U << 20U, '#');  // more than a socket's buffer
  const auto begin = clock::now();
  const auto opened = process.open({{long_program, 1, 0}}, nullptr, {}, begin + milliseconds(100));
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().outcome, Outcome::TIMEOUT) << opened.error().message;
  EXPECT_LT(clock::now() - begin, milliseconds(5000));
  EXPECT_FALSE(process.alive());
}

// By this number the judge decides whether a program may autotune.
TEST_F(GpuProcess, ReportsTheConvolutionsOfItsProgram) {
  let_it_be_ready();
  record_builder<schema::Reply> reply;
  auto opened = reply->initOpened();
  opened.initLaunches(0);
  opened.setConvolutions(3);
  opened.initNormalForm();
  let_it_send(reply.finish());
  gpu_process process("0");
  process.await_ready();
  const auto programs = process.open({{"", 1, 0}}, nullptr, {}, clock::now() + milliseconds(10000));
  ASSERT_TRUE(programs.has_value()) << programs.error().message;
  EXPECT_EQ(programs->convolutions, 3U);
}

}  // namespace
}  // namespace hone
