#include "evaluation/sandbox/child/common/torchscript_program.hpp"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/host_programs.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(TorchscriptProgram, AcceptsCommonImportsAndKeepsLineNumbers) {
  const std::string imports =
      "import torch\nimport torch.nn.functional as F\nimport math\nfrom torch import Tensor\n";
  EXPECT_EQ(verdict(imports + returning("F.relu(x)")), "ok");
  EXPECT_THAT(verdict(imports + returning("torch.rand([3])")), HasSubstr("rejected: python:6:"));
}

TEST(TorchscriptProgram, ComputesTheOutputsOfItsSource) {
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  EXPECT_TRUE(at::equal(run(returning("x.t() * 2.0 + float(x.size(1))"), x), x.t() * 2 + 3));
  EXPECT_TRUE(at::equal(run(body("    y = torch.zeros_like(x)\n    for i in range(x.size(0)):\n    "
                                 "    y[i] = x[i] * float(i)\n    return y\n"),
                            x),
                        x * at::tensor({0.F, 1.F}).view({2, 1})));
  EXPECT_TRUE(at::equal(
      run("def twice(x: Tensor) -> Tensor:\n    return x * 2.0\n\n" + returning("twice(twice(x))"),
          x),
      x * 4));
}

// Records the operators that are called between its construction and its destruction.
class called_operators {
 public:
  called_operators() {
    handle_ =
        at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& fn) {
                                     seen().emplace_back(fn.name());
                                     return std::unique_ptr<at::ObserverContext>();
                                   }).scopes({at::RecordScope::FUNCTION}));
    seen().clear();
  }
  ~called_operators() { at::removeCallback(handle_); }
  called_operators(const called_operators&) = delete;
  called_operators& operator=(const called_operators&) = delete;

  static std::vector<std::string>& seen() {
    static thread_local std::vector<std::string> names;
    return names;
  }

 private:
  at::CallbackHandle handle_ = 0;
};

TEST(TorchscriptProgram, SubtractsFromANumberInOneLaunchAsPyTorchDoes) {
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  const c10::InferenceMode no_gradients;
  for (const char* number : {"1", "1.5", "x.size(0)", "float(x.size(1))"}) {
    torchscript_program program(returning(std::string(number) + " - x"), 1, 0);
    std::vector<c10::IValue> arguments = {x};
    const called_operators called;
    const at::Tensor difference = program.forward(arguments).front();
    EXPECT_THAT(called_operators::seen(), Contains("aten::rsub")) << number;
    EXPECT_THAT(called_operators::seen(), Not(Contains("aten::neg"))) << number;
    EXPECT_TRUE(at::equal(difference + x, at::full_like(x, difference[0][0].item()))) << number;
  }
  EXPECT_EQ(run(returning("1 - x"), at::ones({2}, at::kInt)).scalar_type(), at::kInt);
  EXPECT_EQ(run(returning("1.0 - x"), at::ones({2}, at::kInt)).scalar_type(), at::kFloat);
  EXPECT_EQ(run(returning("(2 - x.size(0)) - x"), at::ones({2})).sum().item<float>(), -2.F);
}

TEST(TorchscriptProgram, ConvertsTheOutputsThatItIsAskedToRowMajorOrder) {
  torchscript_program program(
      "def forward(x: Tensor) -> Tuple[Tensor, Tensor]:\n    return x.t(), x.t()\n", 1, 0);
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  std::vector<c10::IValue> arguments = {x};
  const auto outputs = program.forward(arguments, 2);
  EXPECT_FALSE(outputs[0].is_contiguous());
  EXPECT_TRUE(outputs[1].is_contiguous());
  EXPECT_TRUE(at::equal(outputs[0], outputs[1]));
}

TEST(TorchscriptProgram, ThrowsRaisedErrorsWithTheirMessage) {
  for (const char* statement : {"raise RuntimeError(\"four is too many\")",
                                "raise ValueError(\"{}: four is too many\".format(x.size(0)))",
                                "assert x.size(0) < 4, \"four is too many\""}) {
    try {
      run(body("    if x.size(0) == 4:\n        " + std::string(statement) + "\n    return x\n"),
          at::ones({4}));
      ADD_FAILURE() << statement;
    } catch (const std::exception& e) {
      EXPECT_THAT(e.what(), HasSubstr("four is too many"));
    }
  }
}

TEST(TorchscriptProgram, RefusesAttentionToValuesThatAreNotThere) {
  const at::Tensor x = at::rand({1, 2, 16, 8});
  const auto attend = [&](const std::string& values) {
    return run(returning("F.scaled_dot_product_attention(x, x, " + values + ")"), x);
  };
  EXPECT_TRUE(at::equal(attend("x"), at::scaled_dot_product_attention(x, x, x)));
  EXPECT_TRUE(at::equal(attend("x * 2.0"), at::scaled_dot_product_attention(x, x, x * 2.0)));
  EXPECT_TRUE(at::equal(attend("torch.cat([x, x + 1.0], 2)"), attend("x")))
      << "keys beyond the tensor were read";
  try {
    attend("x[:, :, :4]");
    ADD_FAILURE() << "keys without values were accepted";
  } catch (const std::exception& e) {
    EXPECT_THAT(e.what(), HasSubstr("exceeds dimension size"));
  }
}

TEST(TorchscriptProgram, PrepareReplacesTheParameters) {
  torchscript_program program(
      "def prepare(w: Tensor) -> Tuple[Tensor, int]:\n    return w.t().contiguous(), "
      "w.size(0)\n\ndef forward(x: Tensor, w: Tensor, n: int) -> Tensor:\n    return "
      "torch.matmul(x, w) * float(n)\n",
      1, 1);
  ASSERT_TRUE(program.has_prepare());
  const at::Tensor w = at::ones({2, 3});
  std::vector<c10::IValue> arguments = {at::ones({1, 3})};
  for (c10::IValue& prepared : program.prepare({w})) arguments.push_back(prepared);
  EXPECT_TRUE(at::equal(program.forward(arguments).at(0), at::full({1, 2}, 6.0)));
}

TEST(TorchscriptProgram, FindsLaunchesInHelpersAndBranches) {
  torchscript_program program(
      "def helper(x: Tensor, n: int) -> None:\n    if n > 3:\n        launch(\"c<4, float>\", [1], "
      "[1], x)\n    else:\n        launch(\"a\", (1, 2), 32, x, n, 1.5, True, shared=4 * n)\n\ndef "
      "forward(x: Tensor) -> Tensor:\n    helper(x, x.size(0))\n    return x\n",
      1, 0);
  EXPECT_EQ(program.launches(), (std::vector<std::string>{"c<4, float>", "a"}));
}

TEST(TorchscriptProgram, CountsConvolutions) {
  const torchscript_program none("def forward(x: Tensor) -> Tensor:\n    return x.contiguous()\n",
                                 1, 0);
  EXPECT_EQ(none.convolutions(), 0U);
  const torchscript_program three(
      "def block(x: Tensor, w: Tensor) -> Tensor:\n    return F.conv2d(x, w)\n"
      "def forward(x: Tensor, w: Tensor) -> Tensor:\n"
      "    return F.conv_transpose2d(block(block(x, w), w), w)\n",
      1, 1);
  EXPECT_EQ(three.convolutions(), 3U);
}

// Records the kernels that a program launches and the streams that it uses.
struct noting_launcher final : kernel_launcher {
  void launch(const std::string& kernel, const std::vector<std::int64_t>&,
              const std::vector<std::int64_t>&, std::int64_t,
              const std::vector<c10::IValue>&) override {
    asked.push_back(kernel);
  }
  void use_stream(std::int64_t k) override { asked.push_back("stream " + std::to_string(k)); }
  void join_streams() override { asked.push_back("join"); }
  void synchronize() override { asked.push_back("synchronize"); }
  std::vector<std::string> asked;
};

TEST(TorchscriptProgram, SwitchesStreamsInTheOrderOfItsSource) {
  torchscript_program program(
      "def forward(x: Tensor) -> Tensor:\n    stream(1)\n    launch(\"a\", [1], [1], x)\n    "
      "stream(0)\n    launch(\"b\", [1], [1], x)\n    join()\n    return x\n",
      1, 0);
  noting_launcher noting;
  torchscript_program::set_launcher(&noting);
  std::vector<c10::IValue> arguments = {at::ones({2})};
  program.forward(arguments);
  EXPECT_EQ(noting.asked, (std::vector<std::string>{"stream 1", "a", "stream 0", "b", "join"}));
  arguments = {at::ones({2})};
  torchscript_program wrong(
      "def forward(x: Tensor) -> Tensor:\n    stream(x.size(0) + 7)\n    return x\n", 1, 0);
  try {
    wrong.forward(arguments);
    ADD_FAILURE() << "there are eight side streams";
  } catch (const program_error& e) {
    EXPECT_EQ(e.outcome, Outcome::LAUNCH_ERROR);
    EXPECT_EQ(std::string(e.what()), "python:2: stream(9): expected 0 to 8");
  }
  torchscript_program::set_launcher(nullptr);
}

// Returns what a program asks of its launcher, in order.
std::vector<std::string> asked_by(const std::string& source) {
  torchscript_program program(source, 1, 0);
  noting_launcher noting;
  torchscript_program::set_launcher(&noting);
  std::vector<c10::IValue> arguments = {at::ones({2, 3})};
  program.forward(arguments);
  torchscript_program::set_launcher(nullptr);
  return noting.asked;
}

TEST(TorchscriptProgram, SynchronizesBeforeOperatorsThatTouchContents) {
  const std::string launch = "    launch(\"k\", [y.numel()], [1], y)\n";
  EXPECT_EQ(
      asked_by("def forward(x: Tensor) -> Tensor:\n    y = torch.empty([x.size(0), 4])\n" + launch +
               "    z = y.view(-1).unsqueeze(0)\n    if z.dim() > 1:\n        z = "
               "z[0]\n    return z\n"),
      (std::vector<std::string>{"k"}))
      << "allocations, views and shapes touch nothing";
  EXPECT_EQ(asked_by("def forward(x: Tensor) -> Tensor:\n    y = x * 2\n" + launch +
                     "    return torch.relu(y)\n"),
            (std::vector<std::string>{"synchronize", "k", "synchronize"}));
  EXPECT_EQ(asked_by("def forward(x: Tensor) -> Tensor:\n    y = torch.empty_like(x)\n" + launch +
                     "    return torch.zeros([2])\n"),
            (std::vector<std::string>{"k", "synchronize"}))
      << "what a constant is written to may be memory that the launch still reads";
  EXPECT_EQ(asked_by("def forward(x: Tensor) -> Tensor:\n    return x * 2\n"),
            (std::vector<std::string>{}))
      << "there are no launches to wait for";
}

TEST(TorchscriptProgram, SynchronizesBeforeOutputsAreLaidOut) {
  torchscript_program program(
      "def forward(x: Tensor) -> Tensor:\n    y = torch.empty_like(x)\n    launch(\"k\", [1], [1], "
      "y)\n    return y.t()\n",
      1, 0);
  noting_launcher noting;
  torchscript_program::set_launcher(&noting);
  std::vector<c10::IValue> arguments = {at::ones({2, 3})};
  program.forward(arguments, 1);
  torchscript_program::set_launcher(nullptr);
  EXPECT_EQ(noting.asked, (std::vector<std::string>{"k", "synchronize"}));
}

TEST(TorchscriptProgram, InlinesFunctionsThatCallFunctions) {
  const std::string helpers =
      "def half(x: Tensor) -> Tensor:\n    return F.relu(x) * 0.5\n"
      "def quarter(x: Tensor) -> Tensor:\n    return half(half(x))\n"
      "def eighth(x: Tensor) -> Tensor:\n    return half(quarter(x))\n";
  const at::Tensor x = at::full({3}, 16.0);
  EXPECT_TRUE(at::equal(run(helpers + returning("eighth(x)"), x), at::full({3}, 2.0)));
  EXPECT_THAT(verdict("def draw(x: Tensor) -> Tensor:\n    return torch.rand_like(x)\n"
                      "def twice(x: Tensor) -> Tensor:\n    return draw(x) * 2\n" +
                      returning("twice(x)")),
              HasSubstr("rejected: python:"));
}

TEST(TorchscriptProgram, RunsOnThreadsAfterEnterThread) {
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  at::Tensor made;
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      torchscript_program::enter_thread();
      const c10::InferenceMode no_gradients;
      made = run(returning("torch.softmax(x, dim=1) + F.gelu(x)"), x);
    }).join();
    EXPECT_TRUE(at::allclose(made, at::softmax(x, 1) + at::gelu(x)));
  }
}

}  // namespace
}  // namespace hone
