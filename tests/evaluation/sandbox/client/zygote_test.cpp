#include "evaluation/sandbox/client/zygote.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <set>

#include "evaluation/backends/cpu/cpu_session.hpp"
#include "tests/support/processes.hpp"

namespace hone {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::uint64_t private_bytes = 1ULL << 30U;
constexpr std::uint64_t arena_bytes = 64U << 20U;

time_point in(milliseconds limit) { return std::chrono::steady_clock::now() + limit; }

sandbox_zygote& zygote() {
  static const auto warm = sandbox_zygote::start();
  return *warm;
}

program_result<opened_programs> open(sandbox_session& session, const std::string& python,
                                     std::size_t inputs = 1) {
  return session.open({{python, inputs, 0}}, "", true, in(milliseconds(10000)));
}

// Runs a program on x = 0, 1, 2, 3. Owns the session and its arena.
class call_of {
 public:
  explicit call_of(const std::string& python) {
    auto process = zygote().fork_session(&memory_, private_bytes);
    opened_ = open(*process, python);
    if (!opened_) throw std::runtime_error(opened_.error().message);
    session_.emplace(std::move(process), memory_);
    session_->arrange(0, {layout_}, {}, 2);
    for (const std::size_t set : {0U, 1U})
      session_->write_inputs(set, {from_doubles({0, 1, 2, 3}, layout_)});
  }
  program_result<batch_clock> run(std::vector<std::size_t> sets = {0},
                                  milliseconds limit = milliseconds(5000)) {
    return session_->run(sets, in(limit));
  }
  program_failure failure(milliseconds limit = milliseconds(5000)) {
    const auto ran = run({0}, limit);
    return ran ? program_failure{Outcome::OK, "", ""} : ran.error();
  }
  cpu_session& session() { return *session_; }
  const tensor_layout& layout() const { return layout_; }

 private:
  arena memory_{arena_bytes};
  tensor_layout layout_{dtype::float32, {4}};
  program_result<opened_programs> opened_;
  std::optional<cpu_session> session_;
};

TEST(Session, RunsAProgramAndItsOutputsLieInTheArena) {
  call_of call(
      "def forward(x: Tensor) -> Tuple[Tensor, Tensor]:\n    return x * 2.0, (x + 1.0)[1:3]\n");
  const auto ran = call.run({0, 1, 0});
  ASSERT_TRUE(ran.has_value()) << ran.error().message;
  EXPECT_GT(ran.value().device_ns, 0);
  for (const std::size_t which : {0U, 1U, 2U}) {
    const auto outputs = call.session().outputs(which);
    ASSERT_TRUE(outputs.has_value());
    EXPECT_EQ(to_doubles(outputs.value()[0]), (std::vector<double>{0, 2, 4, 6}));
    EXPECT_EQ(to_doubles(outputs.value()[1]), (std::vector<double>{2, 3}));
    EXPECT_TRUE(call.session().aliases(which).empty());
  }
  EXPECT_FALSE(call.session().memory_damage());
}

TEST(Session, ReportsTheMemoryThatOutputsShare) {
  using with = output_alias::with;
  call_of call(
      "def forward(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:\n    y = x + 1.0\n    return "
      "x[1:], y, y.view(2, 2)\n");
  ASSERT_TRUE(call.run().has_value());
  EXPECT_EQ(call.session().aliases(0),
            (std::set<output_alias>{{0, with::input, 0}, {2, with::output, 1}}));
}

TEST(Session, FreshMemoryHoldsThePoisonOfItsParameters) {
  call_of call(
      "def forward(x: Tensor) -> Tensor:\n    return torch.empty([1000], dtype=torch.int32)\n");
  std::set<double> seen;
  for (std::size_t i = 0; i < 2 * poison_bytes.size(); ++i) {
    if (i % 2 == 0) call.session().write_parameters({}, 0);
    ASSERT_TRUE(call.run().has_value());
    const std::vector<double> words = to_doubles(call.session().outputs(0).value()[0]);
    EXPECT_EQ(std::count(words.begin(), words.end(), words.front()), 1000);
    seen.insert(words.front());
    EXPECT_EQ(seen.size(), i / 2 + 1) << "poison changes with the parameters, not with the run";
    EXPECT_EQ(call.session().memory_damage(), std::nullopt);
  }
  std::set<double> expected;
  for (const unsigned char byte : poison_bytes)
    expected.insert(static_cast<std::int32_t>(byte * 0x01010101U));
  EXPECT_EQ(seen, expected);
}

TEST(Session, ReusingFreedMemoryForAnotherSizeIsNoDamage) {
  // The block of 64 bytes that held a bool is reused for seven floats.
  call_of call(
      "def forward(x: Tensor) -> Tensor:\n    if bool(x.sum() == 5.0):\n        return x\n    y = "
      "torch.ones([7])\n    return x + y[:4]\n");
  ASSERT_TRUE(call.run().has_value());
  EXPECT_EQ(call.session().memory_damage(), std::nullopt);
}

TEST(Session, DetectsChangedInputs) {
  call_of call("def forward(x: Tensor) -> Tensor:\n    x.add_(1.0)\n    return x * 2.0\n");
  ASSERT_TRUE(call.run().has_value());
  EXPECT_FALSE(call.session().inputs_hold(0, {from_doubles({0, 1, 2, 3}, call.layout())}));
  EXPECT_TRUE(call.session().inputs_hold(1, {from_doubles({0, 1, 2, 3}, call.layout())}));
}

TEST(Session, ReportsARaisedErrorAsACrashWithItsMessage) {
  call_of call(
      "def forward(x: Tensor) -> Tensor:\n    if x.size(0) == 4:\n        raise "
      "RuntimeError(\"four is too many\")\n    return x\n");
  const auto failure = call.failure();
  EXPECT_EQ(failure.outcome, Outcome::CRASH);
  EXPECT_THAT(failure.message, HasSubstr("four is too many"));
  EXPECT_EQ(call.failure().outcome, Outcome::CRASH) << "the process still runs";
}

TEST(Session, IsKilledAtItsDeadline) {
  call_of call(
      "def forward(x: Tensor) -> Tensor:\n    i = 1\n    while i > 0:\n        i = 3 - i\n    "
      "return x\n");
  EXPECT_EQ(call.failure(milliseconds(100)).outcome, Outcome::TIMEOUT);
}

// The session is stopped, so that it takes no more of a command than its socket holds.
TEST(Session, IsKilledAtTheDeadlineIfItStopsReading) {
  arena memory(arena_bytes);
  const auto session = zygote().fork_session(&memory, private_bytes);
  session->freeze();
  const std::string long_program(2U << 20U, '#');
  const auto begin = std::chrono::steady_clock::now();
  const auto opened = session->open({{long_program, 1, 0}}, "", true, in(milliseconds(100)));
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().outcome, Outcome::TIMEOUT) << opened.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(5000));
  EXPECT_FALSE(session->alive());
}

TEST(Session, ReportsRunningOutOfMemoryAsACrash) {
  call_of call("def forward(x: Tensor) -> Tensor:\n    return torch.zeros([1000000000])\n");
  EXPECT_THAT(call.failure().message, HasSubstr("out of memory"));
}

TEST(Session, RefusesAForbiddenProgramWhenItIsOpened) {
  const auto session = zygote().fork_session(nullptr, private_bytes);
  const auto opened =
      open(*session, "def forward(x: Tensor) -> Tensor:\n    return torch.rand([3])\n");
  EXPECT_EQ(opened.error().outcome, Outcome::REJECTED);
  EXPECT_TRUE(session->alive());
}

TEST(Session, ReportsLaunchedKernelsAndWhetherThereIsAPrepare) {
  const auto session = zygote().fork_session(nullptr, private_bytes);
  const auto opened =
      session->open({{"def prepare(w: Tensor) -> Tensor:\n    return w\n\ndef forward(x: Tensor, "
                      "w: Tensor) -> Tensor:\n    launch(\"b\", [1], [1], x)\n    launch(\"a\", "
                      "[1], [1], x)\n    launch(\"a\", [1], [1], x)\n    return x\n",
                      1, 1}},
                    "", true, in(milliseconds(10000)));
  const auto& programs = opened.value();
  EXPECT_TRUE(programs.has_prepare);
  EXPECT_EQ(programs.launches, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(programs.convolutions, 0U);
}

TEST(Session, ReportsTheConvolutionsOfItsProgram) {
  const auto session = zygote().fork_session(nullptr, private_bytes);
  const auto opened = session->open(
      {{"def forward(x: Tensor, w: Tensor) -> Tensor:\n    return F.conv2d(F.conv2d(x, "
        "w), w)\n",
        1, 1}},
      "", true, in(milliseconds(10000)));
  EXPECT_EQ(opened.value().convolutions, 2U);
}

TEST(Zygote, SurvivesItsSessionsAndEndsWithItsOwner) {
  pid_t pid = 0;
  {
    const auto own = sandbox_zygote::start();
    pid = own->pid();
    for (int i = 0; i < 5; ++i) {
      const auto session = own->fork_session(nullptr, private_bytes);
      const auto children = testing_support::descendants_of(pid);
      ASSERT_EQ(children.size(), 1U);
      if (i % 2 == 0) kill(*children.begin(), SIGKILL);
      const auto opened = open(*session, "def forward(x: Tensor) -> Tensor:\n    return x\n");
      EXPECT_EQ(opened.has_value(), i % 2 == 1);
      if (i % 2 == 1) continue;
      EXPECT_FALSE(session->alive());
    }
    EXPECT_TRUE(testing_support::descendants_of(pid).empty()) << "sessions end with their owners";
  }
  EXPECT_FALSE(testing_support::is_alive(pid));
}

TEST(Zygote, ForkingFromADeadZygoteThrows) {
  const auto own = sandbox_zygote::start();
  kill(own->pid(), SIGKILL);
  EXPECT_THROW(own->fork_session(nullptr, private_bytes), std::runtime_error);
}

}  // namespace
}  // namespace hone
