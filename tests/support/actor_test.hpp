#pragma once

#include <gtest/gtest.h>
#include <caf/all.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "messages/interfaces.hpp"

namespace hone::testing_support {

// A fixture with an actor system that runs actors and moves its clock only when the test calls one
// of its functions (CAF's test coordinator). All actors run on the test's thread, so results
// never depend on timing. Actors that are spawned detached would run on separate threads and
// must not be used here.
class actor_test : public testing::Test {
 protected:
  actor_test()
      : system_(settings_),
        scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
        me_(system_) {}
  ~actor_test() override {
    for (const caf::actor& one : owned_) caf::anon_send_exit(one, caf::exit_reason::kill);
    settle();
  }

  // Kills the actor at the end of the test. Returns it.
  template <class Handle>
  Handle own(const Handle& one) {
    owned_.push_back(caf::actor_cast<caf::actor>(one));
    return one;
  }
  template <class Handle>
  void kill(const Handle& one) {
    caf::anon_send_exit(one, caf::exit_reason::kill);
    settle();
  }

  // Runs all actors until every mailbox is empty.
  void settle() { scheduler_.run(); }
  // Moves the clock and runs all actors.
  void advance(std::chrono::milliseconds by) {
    scheduler_.advance_time(by);
    settle();
  }

  // Returns the test as an actor.
  caf::actor me() { return caf::actor_cast<caf::actor>(me_); }
  // Sends a message and runs all actors.
  template <class Handle, class... Words>
  void tell(const Handle& to, const Words&... words) {
    me_->send(to, words...);
    settle();
  }
  // Sends a request and returns its reply. An error fails the test.
  template <class Result, class Handle, class... Words>
  Result ask(const Handle& whom, const Words&... words) {
    Result result{};
    auto reply = me_->request(whom, std::chrono::seconds(20), words...);
    settle();
    reply.receive([&](const Result& r) { result = r; },
                  [&](const caf::error& e) { ADD_FAILURE() << system_.render(e); });
    return result;
  }
  // Sends a request whose reply the caller receives after settle().
  template <class Handle, class... Words>
  auto request(const Handle& whom, const Words&... words) {
    return me_->request(whom, std::chrono::seconds(20), words...);
  }
  // Runs the handler on the next message to the test that it accepts, and then all actors. Returns
  // false if there is no such message.
  template <class Handler>
  bool take(Handler handler) {
    settle();
    bool is_there = true;
    me_->receive(
        std::move(handler), caf::after(std::chrono::seconds(0)) >> [&] { is_there = false; });
    settle();
    return is_there;
  }

 private:
  class manual_settings : public caf::actor_system_config {
   public:
    manual_settings() {
      add_message_types<caf::id_block::hone>();
      set("scheduler.policy", caf::atom("testing"));
      set("logger.console-verbosity", caf::atom("quiet"));
    }
  };

  manual_settings settings_;

 protected:
  caf::actor_system system_;

 private:
  caf::scheduler::test_coordinator& scheduler_;
  caf::scoped_actor me_;
  std::vector<caf::actor> owned_;
};

}  // namespace hone::testing_support
