#include "process/process_facts.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/child_process.hpp"
#include "tests/support/eventually.hpp"

namespace hone {
namespace {

TEST(ProcessFacts, AreThoseOfTheKernel) {
  child_options options;
  options.arguments = {"/bin/sleep", "60"};
  child_process child(options);
  const process_facts facts = facts_of(child.pid());
  EXPECT_EQ(facts.parent, getpid());
  EXPECT_GE(facts.start, facts_of(getpid()).start);
  kill(child.pid(), SIGSTOP);
  EXPECT_TRUE(testing_support::eventually([&] { return facts_of(child.pid()).state == 'T'; }));
  const pid_t gone = child.pid();
  child.kill();
  EXPECT_EQ(facts_of(gone).state, 'X');
}

}  // namespace
}  // namespace hone
