#include "evaluation/compile/variant_compiler.hpp"

#include <gtest/gtest.h>

#include "evaluation/evaluator.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

const task& halve() {
  static const task t = parse_task(
      "name = \"halve\"\nsummary = \"x / 2\"\nreference = '''\ndef forward(x: Tensor) -> Tensor:\n    return x * 0.5\n'''\n"
      "[[input]]\nname = \"x\"\nshape = [\"N\"]\n[[case]]\nsizes = { N = 1000 }\ntimed = true\n",
      "halve");
  return t;
}

std::string document(const std::string& settings, const std::string& factor, const std::string& host_comment = "") {
  return "## Code Implementation\n" + (settings.empty() ? "" : "```toml\n" + settings + "\n```\n") + "```cuda\nextern \"C\" __global__ void k(const float* x, float* y, int n) {\n    int i = blockIdx.x * 256 + threadIdx.x;\n    if (i < n) y[i] = x[i] * " +
         factor + ";\n}\n```\n```python\ndef forward(x: Tensor) -> Tensor:\n    " + host_comment + "\n    y = torch.empty_like(x)\n    launch(\"k\", [(x.size(0) + 255) // 256], [256], x, y, x.size(0))\n    return y\n```\n";
}

// Device types that need not be here.
class VariantCompiler : public testing::Test {
 protected:
  std::string compile(const std::string& text, const std::string& architecture = "sm_90a") {
    record_builder<schema::DeviceType> type;
    type->setName("gpu-" + architecture);
    type->setKind(schema::DeviceType::Kind::CUDA);
    type->setTarget(architecture);
    const auto made = compiler_.compile(*make_compile_job(*make_variant(halve().id, text), "gpu-" + architecture), halve(), *type.finish());
    if (const auto* failed = std::get_if<program_failure>(&made)) return failed->message;
    const auto code = (*std::get<record<schema::Artifact>>(made)).getCode();
    return {reinterpret_cast<const char*>(code.begin()), code.size()};
  }

  variant_compiler compiler_;
};

TEST_F(VariantCompiler, ABlockIsCompiledOnceForEverythingThatItIsMadeFrom) {
  const std::string code = compile(document("", "0.5f"));
  EXPECT_EQ(code.substr(1, 3), "ELF") << code;
  EXPECT_EQ(compiler_.blocks_compiled(), 1U);
  EXPECT_EQ(compile(document("", "0.5f")), code);
  EXPECT_EQ(compile(document("", "0.5f", "n = x.size(0)")), code) << "another variant with the same block";
  EXPECT_EQ(compile(document("cuda_graph = true", "0.5f")), code) << "a setting that is none of the compiler's";
  EXPECT_EQ(compiler_.blocks_compiled(), 1U);
  EXPECT_NE(compile(document("", "0.25f")), code);
  EXPECT_EQ(compiler_.blocks_compiled(), 2U);
  (void)compile(document("fast_math = true", "0.5f"));
  (void)compile(document("max_registers = 32", "0.5f"));
  (void)compile(document("", "0.5f"), "sm_80");
  EXPECT_EQ(compiler_.blocks_compiled(), 5U);
}

TEST_F(VariantCompiler, ARefusedBlockIsNotCompiledAgainEither) {
  const std::string refusal = compile(document("", "undeclared"));
  EXPECT_NE(refusal.find("cuda:3:"), std::string::npos) << refusal;
  EXPECT_EQ(compile(document("", "undeclared", "n = 1")), refusal);
  EXPECT_EQ(compiler_.blocks_compiled(), 1U);
}

}  // namespace
}  // namespace hone
