#include "evaluation/sandbox/child/common/torchscript_program.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace hone {
namespace {

using testing::HasSubstr;

// Returns "ok", or the outcome and the message of the error.
std::string verdict(const std::string& source, std::size_t inputs = 1, std::size_t parameters = 0) {
  torchscript_program::enter_thread();  // as in a sandbox
  try {
    torchscript_program program(source, inputs, parameters);
    return "ok";
  } catch (const program_error& e) {
    return std::string(name_of(e.outcome)) + ": " + e.what();
  }
}

std::string body(const std::string& statements) {
  return "def forward(x: Tensor) -> Tensor:\n" + statements;
}
std::string returning(const std::string& expression) {
  return body("    return " + expression + "\n");
}

at::Tensor run(const std::string& source, const at::Tensor& x) {
  torchscript_program::enter_thread();
  torchscript_program program(source, 1, 0);
  std::vector<c10::IValue> arguments = {x};
  return program.forward(arguments).at(0);
}

class Resolves : public testing::TestWithParam<const char*> {};

TEST_P(Resolves, CommonSpellingsOfPyTorch) {
  EXPECT_EQ(verdict(returning(GetParam())), "ok");
  run(returning(GetParam()), at::ones({4, 4}));
}

INSTANTIATE_TEST_SUITE_P(
    Names, Resolves,
    testing::Values("torch.relu(x)", "torch.nn.functional.relu(x)", "F.relu(x, inplace=False)",
                    "F.softmax(x, dim=1)", "F.gelu(x)", "F.layer_norm(x, [4])", "F.mse_loss(x, x)",
                    "F.cross_entropy(x, x)", "F.pad(x, [1, 1])", "F.dropout(x, 0.5, False)",
                    "F.normalize(x)", "F.silu(x)", "F.leaky_relu(x, 0.1)", "F.linear(x, x)",
                    "F.interpolate(x.view(1, 1, 4, 4), scale_factor=[2.0, 2.0])",
                    "x * math.pi + math.sqrt(2.0)", "x + math.inf",
                    "torch.full_like(x, float(\"-inf\"))", "torch.clamp(x, max=float(\"inf\"))",
                    "x + torch.inf", "x * torch.pi", "x.to(torch.float64)",
                    "x.to(dtype=torch.half)", "x.long().to(torch.int32)",
                    "torch.zeros([4], dtype=torch.bfloat16)", "torch.zeros(4, 4, device=x.device)",
                    "torch.empty([4], device=\"cuda\")",
                    "torch.arange(4, device=x.device, dtype=torch.float32)", "x.cuda()",
                    "x.to(\"cuda\")", "x.to(x.device)", "torch.einsum(\"ij,jk->ik\", x, x)",
                    "torch.einsum(\"ij,jk->ik\", [x, x])", "torch.linalg.norm(x)",
                    "torch.fft.fft(x).abs()", "torch.special.expit(x)", "torch.ops.aten.mul(x, x)",
                    "x.contiguous(memory_format=torch.contiguous_format)", "x[:, 1:].sum(dim=1)",
                    "x.unsqueeze(1)[..., 0]", "torch.where(x > 0, x, torch.zeros_like(x))",
                    "x @ x.T", "torch.cat([x, x], dim=0)", "torch.stack([x[i] for i in range(4)])",
                    "x if x.is_cuda else x + 1"));

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

struct refusal {
  const char* source;
  const char* message;
};

// Prints the source, which becomes part of the test's name in CTest.
void PrintTo(const refusal& r, std::ostream* out) { *out << testing::PrintToString(r.source); }

class Refused : public testing::TestWithParam<refusal> {};

TEST_P(Refused, WithOutcomeAndLine) {
  EXPECT_THAT(verdict(GetParam().source), HasSubstr(GetParam().message));
}

// A program with the expression on line 2.
#define LINE_TWO(expression) "def forward(x: Tensor) -> Tensor:\n    return " expression "\n"

INSTANTIATE_TEST_SUITE_P(
    Operators, Refused,
    testing::Values(
        refusal{LINE_TWO("torch.rand([3])"),
                "rejected: python:2: the operator aten::rand is not allowed"},
        refusal{LINE_TWO("torch.randn_like(x)"), "rejected: python:2"},
        refusal{LINE_TWO("torch.bernoulli(x)"), "rejected: python:2"},
        refusal{LINE_TWO("x.normal_()"), "rejected: python:2"},
        refusal{LINE_TWO("x.uniform_(0.0, 1.0)"), "rejected: python:2"},
        refusal{LINE_TWO("torch.randperm(4)"), "rejected: python:2"},
        refusal{LINE_TWO("torch.multinomial(x, 2)"), "rejected: python:2"},
        refusal{LINE_TWO("torch.dropout(x, 0.5, True)"), "draws random numbers"},
        refusal{LINE_TWO("F.dropout(x)"), "draws random numbers"},
        refusal{LINE_TWO("F.rrelu(x, 0.1, 0.2, True)"), "draws random numbers"},
        refusal{LINE_TWO("F.scaled_dot_product_attention(x, x, x, None, 0.5)"), "dropout_p"},
        refusal{LINE_TWO("torch.from_file(\"/etc/passwd\", False, 4)"),
                "rejected: python:2: the operator aten::from_file is not allowed"},
        refusal{LINE_TWO("torch.empty([3], pin_memory=True)"), "pinned memory is not allowed"},
        refusal{LINE_TWO("x.to(\"cuda:1\")"), "rejected: python:2"},
        refusal{LINE_TWO("torch.zeros([3], device=\"cpu\")"), "rejected: python:2"},
        refusal{LINE_TWO("torch.zeros([3], device=\"meta\")"), "rejected: python:2"},
        refusal{LINE_TWO("x.set_(x)"), "rejected: python:2"},
        refusal{LINE_TWO("x.resize_([1000000])"), "rejected: python:2"},
        refusal{LINE_TWO("torch.quantize_per_tensor(x, 0.1, 0, 13)"), "rejected"},
        refusal{LINE_TWO("torch.ops.prims.mul(x, x)"), "compile_error"},
        refusal{LINE_TWO("torch.ops.mkldnn._linear_pointwise(x)"), "compile_error"},
        refusal{LINE_TWO("torch.save(x, \"f\")"), "python:2"},
        refusal{LINE_TWO("torch.load(\"f\")"), "python:2"},
        refusal{LINE_TWO("os.system(x)"), "python:2: undefined value os"},
        refusal{LINE_TWO("open(\"f\")"), "python:2: undefined value open"},
        refusal{LINE_TWO("torch.jit.load(\"f\")"), "compile_error"},
        refusal{LINE_TWO("torch.cuda.synchronize()"), "compile_error"}));

INSTANTIATE_TEST_SUITE_P(
    Constructs, Refused,
    testing::Values(
        refusal{"def forward(x: Tensor) -> Tensor:\n    print(x)\n    return x\n",
                "rejected: python:2: the operator prim::Print is not allowed"},
        refusal{"import os\ndef forward(x: Tensor) -> Tensor:\n    return x\n",
                "compile_error: python:1"},
        refusal{"class A:\n    def f(self) -> int:\n        return 1\ndef forward(x: Tensor) -> "
                "Tensor:\n    return x\n",
                "compile_error: python:1"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    torch.manual_seed(1)\n    return x\n",
                "python:2"},
        refusal{"def again(x: Tensor) -> Tensor:\n    return again(x)\ndef forward(x: Tensor) -> "
                "Tensor:\n    return again(x)\n",
                "compile_error"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    for i in range(int(x.sum())):\n        x = "
                "x + 1.0\n    return x\n",
                "rejected: python:2: a loop's bound depends on what a tensor holds"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    while bool(x.sum() > 1.0):\n        x = x "
                "* 0.5\n    return x\n",
                "a loop's bound depends on what a tensor holds"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    n = torch.nonzero(x).size(0)\n    for i in "
                "range(n):\n        x = x + 1.0\n    return x\n",
                "a loop's bound depends on what a tensor holds"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    for i in range(x[x > 0].size(0)):\n        "
                "x = x + 1.0\n    return x\n",
                "a loop's bound depends on what a tensor holds"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    n = [1]\n    n.append(int(x.max()))\n    "
                "for i in range(n[1]):\n        x = x + 1.0\n    return x\n",
                "a loop's bound depends on what a tensor holds"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    n = 0\n    for i in range(4):\n        n = "
                "n + int(x.max())\n    for i in range(n):\n        x = x + 1.0\n    return x\n",
                "python:5: a loop's bound depends"},
        refusal{"def helper(n: int, x: Tensor) -> Tensor:\n    for i in range(n):\n        x = x + "
                "1.0\n    return x\ndef forward(x: Tensor) -> Tensor:\n    return "
                "helper(int(x.max()), x)\n",
                "a loop's bound depends"}));

INSTANTIATE_TEST_SUITE_P(
    Signatures, Refused,
    testing::Values(
        refusal{"def backward(x: Tensor) -> Tensor:\n    return x\n",
                "compile_error: there is no function 'forward'"},
        refusal{"def forward(x: Tensor, y: Tensor) -> Tensor:\n    return x\n",
                "compile_error: forward takes 2 arguments, expected 1"},
        refusal{"def forward(x: int) -> Tensor:\n    return torch.zeros([x])\n",
                "argument 'x' is a int, expected Tensor"},
        refusal{"def forward(x: Tensor) -> int:\n    return 1\n", "forward returns a int"},
        refusal{"def forward(x: Tensor) -> List[Tensor]:\n    return [x]\n",
                "forward returns a List[Tensor]"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    return x +\n", "compile_error: python:3"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    y = x\n    yield x\n",
                "compile_error: python:3: TorchScript does not have this statement"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    del x[0]\n    return x\n",
                "compile_error: python:2: TorchScript does not have this statement: We don't have "
                "an op for aten::Delete"},
        refusal{"", "there is no function 'forward'"},
        refusal{"x = 1\n", "compile_error: python:1"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    launch(\"k\" + str(x.size(0)), [1], [1])\n "
                "   return x\n",
                "compile_error"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    launch(\"k\", [1])\n    return x\n",
                "launch needs a kernel's name, a grid and a block"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    stream(x)\n    return x\n",
                "stream takes one int"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    join(1)\n    return x\n",
                "join takes no arguments"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    launch(\"k\", x, [1])\n    return x\n",
                "the grid must be one to three ints"},
        refusal{
            "def forward(x: Tensor) -> Tensor:\n    launch(\"k\", [1], [1], [x])\n    return x\n",
            "argument 1 of the kernel is a List[Tensor]"},
        refusal{"def forward(x: Tensor) -> Tensor:\n    launch(\"k\", [1], [1], x, stream=1)\n    "
                "return x\n",
                "launch has no argument 'stream'"}));

TEST(Loops, MayNotDependOnWhatAMaskSelectsOrAListHolds) {
  for (const char* bound :
       {"torch.where(x > 0.0)[0].size(0)", "torch._tensor_to_list(x.to(torch.int32))[0]",
        "x[x > 0.0].size(0)", "int(x.sum())", "len(torch.nonzero(x).unbind(0))"}) {
    EXPECT_THAT(verdict(body(std::string("    for i in range(") + bound +
                             "):\n        x = x + 1\n    return x\n")),
                HasSubstr("rejected: python:2"))
        << bound;
  }
}

TEST(Loops, MayDependOnShapes) {
  EXPECT_EQ(verdict(body("    n = x.size(0)\n    while n > 1:\n        n = (n + 1) // 2\n        x "
                         "= x + float(n)\n    return x\n")),
            "ok");
  EXPECT_EQ(verdict(body("    m = float(x.max())\n    for i in range(x.size(0)):\n        if m > "
                         "1.0:\n            x = x + m\n    return x\n")),
            "ok")
      << "only the bound must not depend on the contents of a tensor";
}

TEST(TorchscriptProgram, FindsLaunchesInHelpersAndBranches) {
  torchscript_program program(
      "def helper(x: Tensor, n: int) -> None:\n    if n > 3:\n        launch(\"c<4, float>\", [1], "
      "[1], x)\n    else:\n        launch(\"a\", (1, 2), 32, x, n, 1.5, True, shared=4 * n)\n\ndef "
      "forward(x: Tensor) -> Tensor:\n    helper(x, x.size(0))\n    return x\n",
      1, 0);
  EXPECT_EQ(program.launches(), (std::vector<std::string>{"a", "c<4, float>"}));
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

TEST(TorchscriptProgram, RefusesAProgramThatGrowsWithoutBound) {
  std::string doubling = "def f0(x: Tensor) -> Tensor:\n    return x + 1\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = "f" + std::to_string(i - 1);
    doubling += "def f" + std::to_string(i) + "(x: Tensor) -> Tensor:\n    return " + before + "(" +
                before + "(x))\n";
  }
  EXPECT_THAT(verdict(doubling + returning("f40(x)")),
              HasSubstr("compile_error: the program has more than 50000 operations"));
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
