// Tests of `hone export` through the program. What the exported modules do on a GPU is measured in
// benchmarks/results.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tasks/task_file.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/program.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::filesystem::path source_folder = HONE_SOURCE_DIR;
const std::string corpus_folder = (source_folder / "configs/corpus").string();

class Export : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Exports without judging, which would take long.
  outcome_of_program export_document(const std::string& document, const std::string& task,
                                     const std::string& file) const {
    return run_hone({"export", document, file, "--task", task, "--as", "torch", "--unverified"});
  }

  // Returns the facts that check_export.py finds out about each file.
  static std::vector<json> check(std::vector<std::string> files) {
    files.insert(files.begin(), (source_folder / "tests/launch/check_export.py").string());
    files.insert(files.begin(), std::string(HONE_TORCH) + "/../../../../bin/python3");
    program checks(files);
    EXPECT_EQ(checks.wait(std::chrono::seconds(100)), 0) << checks.err();
    return json_lines(checks.out());
  }

  static void expect_to_work(const json& facts) {
    for (const char* fact : {"program", "again", "gradients", "changed", "modes", "shapes",
                             "autocast", "numerics", "bounded", "freed", "copied"})
      EXPECT_EQ(facts[fact], true) << fact << ": " << facts;
    for (const char* fact : {"parameters", "parts"})  // null without any
      EXPECT_NE(facts[fact], false) << fact << ": " << facts;
  }

  static std::ptrdiff_t count_true(const std::vector<json>& facts, const char* fact) {
    return std::count_if(facts.begin(), facts.end(),
                         [fact](const json& one) { return one.value(fact, json()) == true; });
  }

  temporary_folder folder_;
};

TEST_F(Export, TakesThePlaceOfATasksModule) {
  const std::vector<std::pair<std::string, std::string>> documents = {
      {"diag_matmul", "broadcast"},
      {"gru_step", "joined_addmm"},
      {"matmul_row_sum", "prepared_mv"},
      {"layer_norm", "warp"},
      {"bias_relu_scale", "tail"}};
  std::vector<std::string> files;
  for (const auto& [task, name] : documents) {
    files.push_back(path(task + ".py"));
    const auto ended =
        export_document(corpus_folder + "/" + task + "/" + name + ".md", task, files.back());
    ASSERT_EQ(ended.code, 0) << task << ": " << ended.err;
  }
  const auto facts = check(files);
  ASSERT_THAT(facts, SizeIs(documents.size()));
  std::size_t with_kernels = 0;
  for (const json& one : facts) {
    EXPECT_EQ(one["broken"], "") << one;
    EXPECT_TRUE(one["same"]) << one;
    EXPECT_TRUE(one["verified"]) << one;
    EXPECT_THAT(one["said"], ElementsAre(HasSubstr("it runs on one GPU"))) << one;
    EXPECT_EQ(one["arguments"], true) << one;
    with_kernels += one["kernels"].empty() ? 0 : 1;
    if (one["kernels"].empty()) expect_to_work(one);
  }
  EXPECT_EQ(with_kernels, 2U);
  EXPECT_EQ(count_true(facts, "parameters"), 2);  // gru_step and matmul_row_sum have matrices
}

TEST_F(Export, KeepsTheModuleThatATaskWasImportedFrom) {
  std::vector<std::string> import = {"task", "import", "--out", path("tasks")};
  std::vector<std::string> files;
  const std::vector<std::string> names = {"encoder_layer", "label_loss", "conv_block",
                                          "gru_encoder"};
  for (const std::string& name : names)
    import.push_back((source_folder / "tests/importing/modules" / (name + ".py")).string());
  ASSERT_EQ(run_hone(import).code, 0);
  for (const std::string& name : names) {
    const std::string task = path("tasks/" + name + ".toml");
    const std::string document = path(name + ".md");
    write_file(document,
               "## Code Implementation\n```python\n" + load_task(task).reference + "```\n");
    files.push_back(path(name + ".py"));
    ASSERT_EQ(export_document(document, task, files.back()).code, 0);
    EXPECT_THAT(read_file(files.back()), HasSubstr("def get_init_inputs():"));
  }
  const auto facts = check(files);
  ASSERT_THAT(facts, SizeIs(names.size()));
  for (const json& one : facts) {
    EXPECT_EQ(one["broken"], "") << one;
    EXPECT_TRUE(one["same"]) << one;
    expect_to_work(one);
  }
  EXPECT_EQ(count_true(facts, "parts"), 3);  // label_loss has no parts
}

// The host's compiler reads the file of a variant without kernels, from which nvcc would make a
// program.
TEST_F(Export, WritesACudaFileThatCompilesWithLibTorch) {
  const std::string file = path("gru.cu");
  const auto ended = run_hone({"export", corpus_folder + "/gru_step/joined_addmm.md", file,
                               "--task", "gru_step", "--as", "onefile.cu", "--unverified"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string torch = HONE_TORCH;
  for (const char* given : {"-DHONE_MAIN", "-DHONE_DECLARATION_ONLY"}) {
    program compiler({HONE_CXX_COMPILER, "-std=c++20", "-fsyntax-only", "-w", given,
                      "-I" + torch + "/include", "-I" + torch + "/include/torch/csrc/api/include",
                      "-I" HONE_CUDA_ROOT "/include", "-x", "c++", file});
    EXPECT_EQ(compiler.wait(std::chrono::seconds(100)), 0) << given << "\n" << compiler.err();
  }
}

TEST_F(Export, LeavesIncludesOutsideOfTheNamespaceOfACudaFile) {
  const std::string document = path("half.md");
  write_file(document,
             "## Code Implementation\n```cuda\n#include <cuda_fp16.h>\n"
             "// An extern \"C\" name would be shared by all exported files.\n"
             "extern \"C\" __global__ void twice(const float* x, float* y, int n) {\n"
             "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
             "  if (i < n) y[i] = x[i] + x[i];\n}\n```\n```python\n"
             "def forward(x: Tensor) -> Tensor:\n    y = torch.empty_like(x)\n"
             "    launch(\"twice\", [1], [64], x, y, x.numel())\n    return y\n```\n");
  ASSERT_EQ(run_hone({"export", document, path("x.cu"), "--task", "softmax", "--as", "onefile.cu",
                      "--unverified"})
                .code,
            0);
  const std::string file = read_file(path("x.cu"));
  EXPECT_LT(file.find("#include <cuda_fp16.h>"), file.find("namespace device {"));
  EXPECT_THAT(file, HasSubstr("\n__global__ void twice("));
  EXPECT_THAT(file, HasSubstr("{\"twice\", launcher_of(\"twice\", &twice, false)}"));
}

TEST_F(Export, HasTheDeviceFunctionsOfDocumentsThatUseThem) {
  const auto exported = [&](const std::string& cuda) {
    const std::string document = path("warp.md");
    write_file(document, "## Code Implementation\n```cuda\n" + cuda +
                             "```\n```python\ndef forward(x: Tensor) -> Tensor:\n"
                             "    y = torch.empty_like(x)\n"
                             "    launch(\"twice\", [1], [32], x, y)\n    return y\n```\n");
    EXPECT_EQ(export_document(document, "softmax", path("warp.py")).code, 0);
    return read_file(path("warp.py"));
  };
  const std::string begin = "extern \"C\" __global__ void twice(const float* x, float* y) {\n  ";
  EXPECT_THAT(exported(begin + "device::sum s;\n}\n"), HasSubstr("struct sum"));
  EXPECT_THAT(exported("using namespace device;\n" + begin + "sum s;\n}\n"),
              HasSubstr("struct sum"));
  EXPECT_THAT(exported("__device__ int n;\n" + begin + "y[0] = n;\n}\n"),
              testing::Not(HasSubstr("struct sum")));
}

TEST_F(Export, WritesOnlyWhatIsKnownToBeCorrect) {
  const auto judged = [&](const std::string& document, const std::string& task) {
    return run_hone(
        {"export", document, path("x.py"), "--task", task, "--as", "torch", "--share-cores"});
  };
  const auto softmax = [&](const std::string& result) {
    write_file(path("x.md"),
               "## Code Implementation\n```python\ndef forward(x: Tensor) -> Tensor:\n    return " +
                   result + "\n```\n");
    return path("x.md");
  };
  const auto wrong = judged(softmax("torch.softmax(x, dim=1)"), "softmax");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("is not known to be correct: judged wrong_result on cpu-"),
                               HasSubstr("--unverified")));
  const auto broken = judged(softmax("torch.softmaxx(x, dim=1)"), "softmax");
  EXPECT_THAT(broken.err, HasSubstr("judged compile_error"));
  const auto other = judged(corpus_folder + "/gru_step/joined_addmm.md", "softmax");
  EXPECT_EQ(other.code, 1) << "a document of another task";
  EXPECT_FALSE(std::filesystem::exists(path("x.py")));

  const auto ok = judged(softmax("torch.softmax(x * 0.125, dim=1)"), "softmax");
  EXPECT_EQ(ok.code, 0) << ok.err;
  EXPECT_THAT(ok.out, HasSubstr("times as fast as the original on cpu-"));
  EXPECT_THAT(read_file(path("x.py")).substr(0, 400), HasSubstr("times as fast as the original"));
  const auto slow =
      judged(softmax("torch.softmax(x * 0.125 + 0.0 * torch.sin(torch.cos(x)), dim=1)"), "softmax");
  EXPECT_EQ(slow.code, 0) << slow.err;
  EXPECT_THAT(slow.err, HasSubstr("this variant is slower than the original"));
  EXPECT_EQ(export_document(softmax("torch.softmax(x, dim=1)"), "softmax", path("y.py")).code, 0);
  EXPECT_THAT(read_file(path("y.py")).substr(0, 400), HasSubstr("exported with --unverified"));
}

TEST_F(Export, SaysWhatIsMissing) {
  write_file(folder_ / "prose.md", "no code\n");
  EXPECT_THAT(export_document(path("prose.md"), "softmax", path("x.py")).err,
              AllOf(HasSubstr("prose.md"), HasSubstr("Code Implementation")));
  EXPECT_THAT(run_hone({"export", path("prose.md"), path("x.py"), "--as", "torch"}).err,
              AllOf(HasSubstr("--task"), HasSubstr("--pool")));
  EXPECT_THAT(
      export_document(corpus_folder + "/layer_norm/row_one.md", "layer_norm", path("x.py")).err,
      HasSubstr("hone corpus expand"));
  EXPECT_NE(run_hone({"export", path("prose.md"), path("x.py"), "--as", "html"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("x.py")));
}

}  // namespace
}  // namespace hone
