#include "actors/telemetry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "tests/support/actor_system.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using namespace std::chrono_literals;

struct counts {
  std::string name = "compiler 0";
  std::uint64_t started_us = 1;
  std::uint64_t processed = 0;
  double alive_seconds = 0;
  double busy_seconds = 0;
};

actor_status_record status_of(const counts& c) {
  record_builder<schema::ActorStatus> status;
  status->setName(c.name);
  status->setStartedUs(c.started_us);
  status->setProcessed(c.processed);
  status->setAliveSeconds(c.alive_seconds);
  status->setBusySeconds(c.busy_seconds);
  auto spans = status->initSpans(1);
  spans[0].setName("compile");
  spans[0].setStartUs(7);
  spans[0].setDurationUs(3);
  return status.finish();
}

node_status_record report_of(const std::string& node, const counts& c) {
  record_builder<schema::NodeStatus> status;
  status->setNode(node);
  status->initActors(1).setWithCaveats(0, *status_of(c));
  return status.finish();
}

// The report of a watched actor, which a test changes. After each answer it has lived a second
// longer and processed `per_second` more.
struct said {
  std::mutex lock;
  counts now;
  std::uint64_t per_second = 0;
  void become(const counts& c) {
    const std::lock_guard hold(lock);
    now = c;
  }
};

caf::behavior speaker(caf::event_based_actor* /*self*/, std::shared_ptr<said> what) {
  return {[what](status_atom) {
    const std::lock_guard hold(what->lock);
    const auto status = status_of(what->now);
    what->now.alive_seconds += 1;
    what->now.processed += what->per_second;
    return status;
  }};
}

// Hears every request and answers none.
caf::behavior silent(caf::event_based_actor* self) {
  return {[self](status_atom) { return self->make_response_promise<actor_status_record>(); }};
}

class Telemetry : public testing::Test {
 protected:
  Telemetry() : system_(actor_settings()), me_(system_), says_(std::make_shared<said>()) {}
  ~Telemetry() override {
    for (const caf::actor& one : spawned_) caf::anon_send_exit(one, caf::exit_reason::kill);
    caf::anon_send_exit(telemetry_, caf::exit_reason::kill);
  }

  void start(const std::filesystem::path& trace = {}) {
    telemetry_options options;
    options.node = "head";
    options.interval = 5ms;
    options.trace = trace;
    options.show = [this](const node_snapshot& all) {
      const std::lock_guard hold(lock_);
      shown_ = all;
      for (const auto& [name, rate] : all.rates) lowest_rate_ = std::min(lowest_rate_, rate);
      ++rounds_;
    };
    telemetry_ = system_.spawn(telemetry_behavior, options, pool_actor(), node_actor());
  }
  caf::actor watch(caf::actor one) {
    spawned_.push_back(one);
    caf::anon_send(telemetry_, watch_atom_v, caf::actor_cast<caf::strong_actor_ptr>(one));
    return one;
  }
  caf::actor watch_speaker(const std::shared_ptr<said>& who) {
    return watch(system_.spawn(speaker, who));
  }

  node_snapshot shown() {
    const std::lock_guard hold(lock_);
    return shown_;
  }
  bool shows(const std::string& actor) { return shown().actors.contains(actor); }
  bool shows_further_rounds() {
    const int before = rounds_;
    return eventually([&] { return rounds_ > before + 3; });
  }

  std::mutex lock_;  // outlives telemetry, as does what it protects
  node_snapshot shown_;
  double lowest_rate_ = 0;
  std::atomic<int> rounds_ = 0;  // that were shown
  caf::actor_system system_;
  caf::scoped_actor me_;
  std::shared_ptr<said> says_;
  telemetry_actor telemetry_;
  std::vector<caf::actor> spawned_;
};

TEST_F(Telemetry, RatesAreItemsPerSecondOfTheActorsOwnTime) {
  start();
  says_->become({.processed = 100, .alive_seconds = 10});
  says_->per_second = 20;
  watch_speaker(says_);
  ASSERT_TRUE(eventually([&] { return shown().rates.contains("compiler 0"); }));
  EXPECT_EQ(shown().rates.at("compiler 0"), 20);
  EXPECT_EQ(shown().restarts.count("compiler 0"), 0U);
}

TEST_F(Telemetry, AnActorWithAnEarliersNameIsARestart) {
  start();
  says_->become({.started_us = 1, .processed = 9, .alive_seconds = 10, .busy_seconds = 4});
  const caf::actor first = watch_speaker(says_);
  ASSERT_TRUE(eventually([&] { return shows("compiler 0"); }));
  caf::anon_send_exit(first, caf::exit_reason::kill);
  me_->wait_for(first);
  const auto later = std::make_shared<said>();
  later->become({.started_us = 2, .processed = 1, .alive_seconds = 100, .busy_seconds = 0.5});
  watch_speaker(later);
  ASSERT_TRUE(eventually([&] { return shown().restarts.contains("compiler 0"); }));
  ASSERT_TRUE(shows_further_rounds());
  const node_snapshot now = shown();
  EXPECT_EQ(now.restarts.at("compiler 0"), 1U) << "once, however often it is asked";
  EXPECT_EQ(now.earlier.at("compiler 0").busy_seconds, 4);
  EXPECT_GE(now.earlier.at("compiler 0").alive_seconds, 10);
  EXPECT_EQ(lowest_rate_, 0) << "fewer items than before are no rate";
}

TEST_F(Telemetry, AnActorThatWasStoppedAndStartedAgainIsNoRestart) {
  start();
  says_->become({.started_us = 1, .processed = 9, .alive_seconds = 10, .busy_seconds = 4});
  const caf::actor first = watch_speaker(says_);
  ASSERT_TRUE(eventually([&] { return shows("compiler 0"); }));
  caf::anon_send_exit(first, caf::exit_reason::user_shutdown);  // as `hone scale` does
  me_->wait_for(first);
  const auto later = std::make_shared<said>();
  later->become({.started_us = 2, .processed = 1, .alive_seconds = 100, .busy_seconds = 0.5});
  const caf::actor second = watch_speaker(later);
  ASSERT_TRUE(eventually([&] { return shown().earlier.contains("compiler 0"); }));
  EXPECT_EQ(shown().restarts.count("compiler 0"), 0U);
  caf::anon_send_exit(second, caf::exit_reason::kill);
  me_->wait_for(second);
  const auto last = std::make_shared<said>();
  last->become({.started_us = 3, .processed = 1, .alive_seconds = 1, .busy_seconds = 0.5});
  watch_speaker(last);
  EXPECT_TRUE(eventually([&] { return shown().restarts.contains("compiler 0"); }));
}

TEST_F(Telemetry, AnActorThatHasEndedHasNoRate) {
  start();
  says_->become({.processed = 100, .alive_seconds = 10});
  says_->per_second = 20;
  const caf::actor one = watch_speaker(says_);
  ASSERT_TRUE(eventually([&] { return shown().rates.contains("compiler 0"); }));
  caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  EXPECT_TRUE(eventually([&] { return shown().rates.at("compiler 0") == 0; }));
}

TEST_F(Telemetry, ShowsTheActorsOfJoinedNodesUntilTheyLeave) {
  start();
  caf::anon_send(telemetry_, report_of("gpus-1", {.name = "compiler gpus-1 0", .processed = 5}));
  ASSERT_TRUE(eventually([&] { return shows("compiler gpus-1 0"); }));
  EXPECT_EQ(shown().actors.at("compiler gpus-1 0")->getProcessed(), 5U);
  std::vector<std::string> nodes;
  me_->request(telemetry_, 10s, status_atom_v)
      .receive(
          [&](const std::vector<node_status_record>& all) {
            for (const auto& one : all) nodes.emplace_back(view(one->getNode()));
          },
          [&](const caf::error& e) { ADD_FAILURE() << system_.render(e); });
  EXPECT_EQ(nodes, (std::vector<std::string>{"head", "gpus-1"}));
  caf::anon_send(telemetry_, leave_atom_v, std::string("gpus-1"));
  EXPECT_TRUE(eventually([&] { return !shows("compiler gpus-1 0"); }));
}

TEST_F(Telemetry, TheLastRoundDoesNotWaitForAnActorThatHasEnded) {
  start();
  says_->become({.processed = 1});
  watch_speaker(says_);
  const caf::actor ended = watch(system_.spawn(silent));
  caf::anon_send_exit(ended, caf::exit_reason::kill);
  ASSERT_TRUE(eventually([&] { return shows("compiler 0"); }));
  says_->become({.processed = 2});
  me_->request(telemetry_, timeouts::last_status_request - 1s, finish_atom_v)
      .receive([](done_atom) {}, [&](const caf::error& e) { ADD_FAILURE() << system_.render(e); });
  EXPECT_EQ(shown().actors.at("compiler 0")->getProcessed(), 2U);
}

TEST_F(Telemetry, WritesOneRowOfTheTraceForEachActor) {
  const temporary_folder folder;
  const std::filesystem::path file = folder / "trace.json";
  start(file);
  says_->become({.processed = 1});
  watch_speaker(says_);
  std::string text;
  ASSERT_TRUE(eventually([&] {
    text = read_file(file);
    return text.find("compile\"") != text.rfind("compile\"");
  })) << "spans of two rounds";
  EXPECT_TRUE(text.starts_with("[\n{\"name\":\"thread_name\"")) << text.substr(0, 80);
  EXPECT_EQ(text.find("thread_name"), text.rfind("thread_name")) << "one row";
  EXPECT_THAT(text, HasSubstr(R"("name":"compile","ph":"X")"));
  EXPECT_THAT(text, HasSubstr(R"("ts":7,"dur":3},)"));
}

}  // namespace
}  // namespace hone
