// Tests what the pool's actor does while its disk is slow or fails, with a disk that waits for the
// test: RocksDB syncs its log by this program's fdatasync().

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <caf/all.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "actors/pool.hpp"
#include "tests/support/actor_system.hpp"
#include "tests/support/pool_records.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;
using testing::HasSubstr;
using testing::Not;

// Holds back or fails every fdatasync() of this process. Safe on any thread.
class test_disk {
 public:
  enum class mode { works, waits, fails };
  void become(mode how) {
    const std::lock_guard lock(mutex_);
    how_ = how;
    changed_.notify_all();
  }
  int sync(int file) {
    niceness = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
    std::unique_lock lock(mutex_);
    waiting_ += how_ == mode::waits ? 1 : 0;
    changed_.notify_all();
    changed_.wait(lock, [&] { return how_ != mode::waits; });
    if (how_ == mode::fails) {
      errno = EIO;
      return -1;
    }
    lock.unlock();
    return static_cast<int>(syscall(SYS_fdatasync, file));
  }
  std::atomic<int> niceness = 0;  // of the thread that has made the last one

  // Returns true once a sync waits, or false if none does within 20 s.
  bool await_sync() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  mode how_ = mode::works;
  int waiting_ = 0;
};

test_disk& disk() {
  static auto* const one = new test_disk;
  return *one;
}

// The test takes the place of the learner, the compile queue and the supervisor.
class PoolOnASlowDisk : public testing::Test {
 protected:
  template <class... Words>
  auto request(const Words&... words) {
    return self_->request(pool_, 20s, words...);
  }
  PoolOnASlowDisk() {
    pool_actor_options options;
    options.storage.folder = folder_ / "pool";
    options.storage.judge_version = 1;
    options.draws = {.max_groups = 4, .samples = 2};
    options.acknowledgments = folder_ / "acknowledged";
    const auto me = caf::actor_cast<caf::actor>(self_);
    pool_ = system_.spawn<caf::detached>(
        pool_behavior, options, std::make_shared<const task_table>(table_of_softmax(the_task())),
        me);
    self_->send(pool_, connect_atom_v, caf::actor_cast<compile_queue_actor>(me),
                caf::actor_cast<verify_queue_actor>(me));
    self_->send(pool_, device_atom_v, make_device_type(the_device()), std::int32_t{1});
    EXPECT_TRUE(is_answered(request(commit_atom_v, make_version(0, 0, 0), make_step(0, 0, {}))));
  }
  ~PoolOnASlowDisk() override {
    disk().become(test_disk::mode::works);
    caf::anon_send_exit(pool_, caf::exit_reason::kill);
  }
  template <class Reply>
  bool is_answered(Reply reply) {
    bool is_done = false;
    reply.receive([&](done_atom) { is_done = true; },
                  [&](const caf::error& e) { ADD_FAILURE() << system_.render(e); });
    return is_done;
  }
  bool has_job(caf::duration within) {
    bool is_there = true;
    self_->receive([](put_atom, const compile_job&) {},
                   caf::after(within) >> [&] { is_there = false; });
    return is_there;
  }

  temporary_folder folder_;
  caf::actor_system system_{actor_settings()};
  caf::scoped_actor self_{system_};
  pool_actor pool_;
};

TEST_F(PoolOnASlowDisk, WorksWhileItsLogIsSyncedAndSendsJobsOnlyAfterwards) {
  disk().become(test_disk::mode::waits);
  auto first = request(submit_atom_v, make_group({"a"}));
  ASSERT_TRUE(disk().await_sync());
  auto second = request(submit_atom_v, make_group({"b"}));
  std::uint64_t in_flight = 0;
  request(status_atom_v)
      .receive([&](const actor_status_record& status) { in_flight = status->getInFlight(); },
               [&](const caf::error& e) { ADD_FAILURE() << system_.render(e); });
  EXPECT_EQ(in_flight, 2U) << "both groups are recorded";
  EXPECT_FALSE(has_job(caf::duration(100ms))) << "a job was sent for what may be lost";
  disk().become(test_disk::mode::works);
  EXPECT_TRUE(is_answered(std::move(first)));
  EXPECT_TRUE(is_answered(std::move(second)));
  EXPECT_TRUE(has_job(caf::duration(20s)) && has_job(caf::duration(20s)));
}

TEST_F(PoolOnASlowDisk, SyncsItsLogOnAThreadThatLetsMessagesPass) {
  const int of_messages = getpriority(PRIO_PROCESS, static_cast<id_t>(getpid()));
  if (of_messages > 9) GTEST_SKIP() << "there is no room for a lower priority";
  EXPECT_TRUE(is_answered(request(submit_atom_v, make_group({"a"}))));
  EXPECT_GT(disk().niceness, of_messages);
}

TEST_F(PoolOnASlowDisk, StopsTheRunWhenItsLogCannotBeSynced) {
  disk().become(test_disk::mode::fails);
  self_->send(pool_, submit_atom_v, make_group({"a"}));
  std::string reason;
  self_->receive([&](fatal_atom, const std::string& why) { reason = why; },
                 caf::after(20s) >> [] { ADD_FAILURE() << "the run goes on"; });
  EXPECT_THAT(reason, HasSubstr((folder_ / "pool").string() + ": cannot be synced"));
  EXPECT_THAT(read_file(folder_ / "acknowledged"), Not(HasSubstr("group ")))
      << "a group that is not on disk was acknowledged";
}

}  // namespace
}  // namespace hone

extern "C" int fdatasync(int file) { return hone::disk().sync(file); }
