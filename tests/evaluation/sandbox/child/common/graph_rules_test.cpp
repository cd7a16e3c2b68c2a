// Tests of what a host program may hold, through the programs that are accepted and refused.

#include "evaluation/sandbox/child/common/graph_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/host_programs.hpp"

namespace hone {
namespace {

using namespace testing_support;
using testing::HasSubstr;

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
                    "x.to(torch.int32).view(16) + x.flatten().to(torch.int32).view([16])",
                    "x.view(4 * 4)", "x.transpose(0, 1).contiguous().view(-1)",
                    "x.to(torch.int64).flatten()[:4].view(4) + x.view(16)[:4]",
                    "x + torch.tensor([0.5, 0.0, 1.0, 2.0], dtype=torch.float64)",
                    "x * torch.tensor(0.1)", "x + torch.tensor([1, 2, 3, 4], dtype=torch.float64)",
                    "torch.fft.fft(x).abs()", "torch.special.expit(x)", "torch.ops.aten.mul(x, x)",
                    "x.contiguous(memory_format=torch.contiguous_format)", "x[:, 1:].sum(dim=1)",
                    "x.unsqueeze(1)[..., 0]", "torch.where(x > 0, x, torch.zeros_like(x))",
                    "x @ x.T", "torch.cat([x, x], dim=0)", "torch.stack([x[i] for i in range(4)])",
                    "x if x.is_cuda else x + 1"));

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
        refusal{LINE_TWO("x.view(torch.int32)"), "a view of the bits as another type"},
        refusal{LINE_TWO("x.abs().view( torch.int16 ) + 1"), "a view of the bits as another type"},
        refusal{LINE_TWO("x.view(dtype=torch.int16)"), "python:2"},
        refusal{LINE_TWO("x * torch.tensor(0.1, dtype=torch.float64)"), "torch.full([], number"},
        refusal{LINE_TWO("x * torch.tensor([[0.1, 0.2]], dtype=torch.float64)"), "to float32"},
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
                "compile_error: forward takes 2 arguments, expected 1: the task's inputs, then "
                "its parameters"},
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
        refusal{"print(1)\n", "compile_error: python:1"},
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

TEST(GraphRules, RefuseAProgramThatGrowsWithoutBound) {
  std::string doubling = "def f0(x: Tensor) -> Tensor:\n    return x + 1\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = "f" + std::to_string(i - 1);
    doubling += "def f" + std::to_string(i) + "(x: Tensor) -> Tensor:\n    return " + before + "(" +
                before + "(x))\n";
  }
  EXPECT_THAT(verdict(doubling + returning("f40(x)")),
              HasSubstr("compile_error: the program has more than 50000 operations"));
}

}  // namespace
}  // namespace hone
