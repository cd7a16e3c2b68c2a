#include "evaluation/variant_compiler.hpp"

#include <gtest/gtest.h>

#include "tasks/variant_document.hpp"
#include "tests/support/evaluator.hpp"
#include "tests/support/exploit_documents.hpp"

namespace hone {
namespace {

const task& halve() {
  static const task t = parse_task(
      "name = \"halve\"\nsummary = \"x / 2\"\nreference = '''\ndef forward(x: Tensor) -> Tensor:\n "
      "   return x * 0.5\n'''\n"
      "[[input]]\nname = \"x\"\nshape = [\"N\"]\n[[case]]\nsizes = { N = 1000 }\ntimed = true\n",
      "halve");
  return t;
}

std::string document(const std::string& settings, const std::string& factor,
                     const std::string& host_comment = "") {
  return "## Code Implementation\n" + (settings.empty() ? "" : "```toml\n" + settings + "\n```\n") +
         "```cuda\nextern \"C\" __global__ void k(const float* x, float* y, int n) {\n    int i = "
         "blockIdx.x * 256 + threadIdx.x;\n    if (i < n) y[i] = x[i] * " +
         factor + ";\n}\n```\n```python\ndef forward(x: Tensor) -> Tensor:\n    " + host_comment +
         "\n    y = torch.empty_like(x)\n    launch(\"k\", [(x.size(0) + 255) // 256], [256], x, "
         "y, x.size(0))\n    return y\n```\n";
}

// Returns a device type. The machine need not have such a device.
record<schema::DeviceType> gpu_type(const std::string& architecture) {
  record_builder<schema::DeviceType> type;
  type->setName("gpu-" + architecture);
  type->setKind(schema::DeviceType::Kind::CUDA);
  type->setTarget(architecture);
  return type.finish();
}

class VariantCompiler : public testing::Test {
 protected:
  std::string compile(const std::string& text, const std::string& architecture = "sm_90a") {
    const auto type = gpu_type(architecture);
    const auto made = compiler_.compile(
        *make_compile_job(*make_variant(halve().id, text), view(type->getName())), halve(), *type);
    if (!made) return made.error().message;
    const auto code = (*made)->getCode();
    return {reinterpret_cast<const char*>(code.begin()), code.size()};
  }

  variant_compiler compiler_;
};

TEST_F(VariantCompiler, CompilesABlockOncePerTextSettingsAndArchitecture) {
  const std::string code = compile(document("", "0.5f"));
  EXPECT_EQ(code.substr(1, 3), "ELF") << code;
  EXPECT_EQ(compiler_.blocks_compiled(), 1U);
  EXPECT_EQ(compile(document("", "0.5f")), code);
  EXPECT_EQ(compile(document("", "0.5f", "n = x.size(0)")), code)
      << "another variant with the same block";
  EXPECT_EQ(compile(document("cuda_graph = true", "0.5f")), code)
      << "a setting that does not affect the compiler";
  EXPECT_EQ(compiler_.blocks_compiled(), 1U);
  EXPECT_NE(compile(document("", "0.25f")), code);
  EXPECT_EQ(compiler_.blocks_compiled(), 2U);
  (void)compile(document("fast_math = true", "0.5f"));
  (void)compile(document("max_registers = 32", "0.5f"));
  (void)compile(document("", "0.5f"), "sm_80");
  EXPECT_EQ(compiler_.blocks_compiled(), 5U);
}

TEST_F(VariantCompiler, DoesNotCompileARefusedBlockAgain) {
  const std::string refusal = compile(document("", "undeclared"));
  EXPECT_NE(refusal.find("cuda:3:"), std::string::npos) << refusal;
  EXPECT_EQ(compile(document("", "undeclared", "n = 1")), refusal);
  EXPECT_EQ(compiler_.blocks_compiled(), 1U);
}

// The block has a helper and an unused kernel in some order; the host program names its results.
std::string copied(const std::string& kernel, const std::string& helper, const std::string& result,
                   bool reversed, const std::string& factor = "0.5f",
                   const std::string& threads = "256") {
  const std::string unused = "__global__ void " + helper + "_unused(float* y) { y[0] = 3; }\n";
  const std::string function =
      "__device__ float " + helper + "(float v) { return v * " + factor + "; }\n";
  const std::string entry = "__global__ void " + kernel +
                            "(const float* x, float* to, int n) {\n  __shared__ float " + result +
                            "[256];\n  int i = blockIdx.x * " + threads +
                            " + threadIdx.x;  // the element\n  " + result +
                            "[threadIdx.x] = i < n ? x[i] : 0;\n  __syncthreads();\n  if (i < n) "
                            "to[i] = " +
                            helper + "(" + result + "[threadIdx.x]);\n}\n";
  return "## Code Implementation\n```cuda\n" +
         (reversed ? function + entry + unused : unused + function + entry) +
         "```\n```python\ndef forward(x: Tensor) -> Tensor:\n    " + result +
         " = torch.empty_like(x)\n    launch(\"" + kernel + "\", [(x.size(0) + " + threads +
         " - 1) // " + threads + "], [" + threads + "], x, " + result +
         ", x.size(0))\n    return " + result + "\n```\n";
}

TEST_F(VariantCompiler, CopiesHaveTheSameProgramWhateverTheirNames) {
  record_builder<schema::DeviceType> cpu;
  cpu->setName("cpu");
  cpu->setKind(schema::DeviceType::Kind::CPU);
  cpu->setTarget("-march=x86-64-v3");
  for (const auto& type : {gpu_type("sm_90a"), cpu.finish()}) {
    const auto program_of = [&](const std::string& text) {
      const auto made = compiler_.compile(
          *make_compile_job(*make_variant(halve().id, text), view(type->getName())), halve(),
          *type);
      if (!made) throw std::runtime_error(made.error().message);
      return program_id((*made)->getProgramId());
    };
    const program_id known = program_of(copied("halve", "half", "y", false));
    EXPECT_TRUE(known);
    EXPECT_EQ(program_of(copied("a_kernel", "zz", "out", true)), known) << type->getName().cStr();
    EXPECT_EQ(program_of(copied("zz", "aa", "longer_result", false, "(0.25f + 0.25f)")), known);
    EXPECT_NE(program_of(copied("halve", "half", "y", false, "0.25f")), known);
    EXPECT_NE(program_of(copied("halve", "half", "y", false, "0.5f", "128")), known);
    EXPECT_EQ(program_of(document("", "0.5f")), program_of(document("", "0.5f", "n = x.size(0)")));
    EXPECT_NE(program_of(document("", "0.5f")), program_of(document("cuda_graph = true", "0.5f")));
  }
}

// Every name costs the compiler's node time beyond the limits of the processes that compile.
TEST_F(VariantCompiler, RefusesToLaunchTooManyNames) {
  const auto launching = [](int names) {
    std::string text = document("", "0.5f");
    std::string launches;
    for (int i = 0; i < names; ++i)
      launches += "    launch(\"k<" + std::to_string(i) + ">\", [1], [32], x, y, 1)\n";
    return text.insert(text.find("    return y"), launches);
  };
  EXPECT_EQ(compile(launching(255)).substr(1, 3), "ELF");
  EXPECT_EQ(compile(launching(256)),
            "the host program launches 257 kernels by name, the limit is 256");
}

// Exploits for GPUs that are refused before a GPU is needed. The limits are those of a run, except
// for the time that the blocks have which take all of it.
class RefusedExploit : public testing::TestWithParam<testing_support::exploit> {};

const std::filesystem::path exploits =
    std::filesystem::path(HONE_SOURCE_DIR) / "tests/evaluation/exploits/gpu";

Outcome outcome_of(const testing_support::exploit& e) {
  if (e.kind == "persisting_cache" || e.trick == "device_heap") return Outcome::REJECTED;
  return e.trick == "big_stacks" || e.trick == "huge_array" ? Outcome::LAUNCH_ERROR
                                                            : Outcome::COMPILE_ERROR;
}

TEST_P(RefusedExploit, IsRefusedAndTheNextBlockCompiles) {
  variant_compiler::limits limits;
  if (GetParam().kind == "exhaustion") limits.block = std::chrono::seconds(5);
  variant_compiler compiler(limits);
  const auto type = gpu_type("sm_90a");
  const auto [of, text] = testing_support::load_exploit(exploits, GetParam());
  const auto made = compiler.compile(
      *make_compile_job(*make_variant(of.id, text), view(type->getName())), of, *type);
  ASSERT_TRUE(!made);
  EXPECT_EQ(made.error().outcome, outcome_of(GetParam())) << made.error().message;
  const auto next = compiler.compile(
      *make_compile_job(*make_variant(halve().id, document("", "0.5f")), view(type->getName())),
      halve(), *type);
  EXPECT_TRUE(next.has_value());
}

std::vector<testing_support::exploit> refused_exploits() {
  std::vector<testing_support::exploit> all;
  for (const std::string& trick : testing_support::tricks_of(exploits, "persisting_cache"))
    all.push_back({"persisting_cache", trick});
  for (const char* bomb :
       {"big_stacks", "constexpr_bomb", "device_heap", "huge_array", "macro_bomb", "template_bomb"})
    all.push_back({"exhaustion", bomb});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, RefusedExploit, testing::ValuesIn(refused_exploits()),
                         [](const auto& each) { return each.param.kind + "_" + each.param.trick; });

}  // namespace
}  // namespace hone
