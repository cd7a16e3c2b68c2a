#include "launch/slow_notice.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace hone {
namespace {

TEST(SlowNotice, SaysWhatIsBeingDoneAfterTwoSeconds) {
  testing::internal::CaptureStderr();
  {
    const slow_notice notice([] { return "verifying row.md"; });
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hone: verifying row.md, 2 s so far\n");
}

TEST(SlowNotice, IsSilentAboutQuickWork) {
  testing::internal::CaptureStderr();
  {
    const slow_notice notice([] { return "something"; });
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace hone
