#include "evaluation/compile/cuda/cuda_compiler.hpp"
#include "evaluation/backends/cuda/own_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "evaluation/compile/cuda/cubin.hpp"
#include "tasks/variant_document.hpp"
#include "tests/support/honest_set.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using kind = schema::Kernel::Parameter::Kind;

constexpr milliseconds limit{60000};

cuda_compiler& compiler() {
  static cuda_compiler one;
  return one;
}

program_result<compiled_block> compile(const std::string& block,
                                       const std::vector<std::string>& launched,
                                       const std::string& architecture = "sm_90a",
                                       const settings& asked = {}, milliseconds time = limit) {
  return compiler().compile(block, launched, asked, architecture, time);
}

compiled_block compiled(const program_result<compiled_block>& result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *result;
}

program_failure failure(const program_result<compiled_block>& result) {
  if (result.has_value()) throw std::runtime_error("it compiled");
  return result.error();
}

const char* const scale = R"(
extern "C" __global__ void scale(const float* x, float* y, int n, double by, bool more, long long far) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * (float)by + (more ? 1.0f : 0.0f) + (float)far;
}
)";

TEST(CudaCompiler, CompilesForBothArchitecturesAndReportsParameters) {
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    const compiled_block block = compiled(compile(scale, {"scale"}, architecture));
    EXPECT_TRUE(block.code.starts_with("\177ELF"));
    ASSERT_EQ(block.kernels.size(), 1U);
    const kernel_facts& kernel = block.kernels[0];
    EXPECT_EQ(kernel.name, "scale");
    EXPECT_EQ(kernel.symbol, "scale");
    EXPECT_GT(kernel.registers, 4U);
    EXPECT_THAT(
        kernel.parameters,
        ElementsAre(kernel_parameter{kind::POINTER, 8}, kernel_parameter{kind::POINTER, 8},
                    kernel_parameter{kind::INTEGER, 4}, kernel_parameter{kind::FLOATING, 8},
                    kernel_parameter{kind::BOOLEAN, 1}, kernel_parameter{kind::INTEGER, 8}));
  }
}

TEST(CudaCompiler, FindsKernelsByTheirTemplateAndNamespaceNames) {
  const compiled_block block =
      compiled(compile("namespace inner { template <int N, class T> __global__ void tiled(const T* "
                       "x, T* y) { __shared__ T tile[N]; tile[threadIdx.x] = x[threadIdx.x]; "
                       "__syncthreads(); y[threadIdx.x] = tile[N - 1 - threadIdx.x]; } }\n",
                       {"inner::tiled<32, float>", "inner::tiled<64, double>", "unknown"}));
  ASSERT_EQ(block.kernels.size(), 2U);
  EXPECT_NE(block.kernels[0].symbol, block.kernels[1].symbol);
  EXPECT_EQ(block.kernels[0].static_shared_bytes, 128U);
  EXPECT_EQ(block.kernels[1].static_shared_bytes, 512U);
}

TEST(CudaCompiler, AcceptsKernelsWithoutParameters) {
  const compiled_block block = compiled(
      compile("__device__ float y[32];\nextern \"C\" __global__ void k() { y[threadIdx.x] = 1; }\n",
              {"k"}));
  EXPECT_TRUE(block.kernels.at(0).parameters.empty());
}

TEST(CudaCompiler, ReportsWhichKernelsSynchroniseTheirGrid) {
  const compiled_block block =
      compiled(compile("#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
                       "extern \"C\" __global__ void alone(float* y) { "
                       "cg::this_thread_block().sync(); y[threadIdx.x] = 1; }\n"
                       "extern \"C\" __global__ void together(float* y) { y[0] = 1; "
                       "cg::this_grid().sync(); y[1] = y[0]; }\n",
                       {"alone", "together"}));
  ASSERT_EQ(block.kernels.size(), 2U);
  EXPECT_FALSE(block.kernels[0].cooperative);
  EXPECT_TRUE(block.kernels[1].cooperative);
}

TEST(CudaCompiler, CompilesTheJudgesOwnKernels) {
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    own_kernels kernels(architecture);
    const auto& blocks = kernels.blocks();
    ASSERT_EQ(blocks.size(), own_kernels::parts().size());
    for (std::size_t i = 0; i < blocks.size(); ++i)
      EXPECT_EQ(blocks[i].kernels.size(), own_kernels::parts()[i].kernels.size());
    EXPECT_TRUE(kernels.toolchain().starts_with("nvrtc"));
  }
}

TEST(CudaCompiler, FindsKernelsThatMacrosDeclare) {
  const compiled_block block =
      compiled(compile("#define KERNEL(n) extern \"C\" __global__ void add_##n(float* y) { y[0] += "
                       "n; }\nKERNEL(1) KERNEL(2)\n",
                       {"add_1", "add_2"}));
  EXPECT_EQ(block.kernels.size(), 2U);
}

TEST(CudaCompiler, PrecompilesTheHeadersOfCuda) {
  const std::string block =
      "#include <cuda_fp16.h>\n#include <cuda_bf16.h>  // both\n#include "
      "<cooperative_groups.h>\n#include <stdint.h>\nnamespace cg = cooperative_groups;\n"
      "extern \"C\" __global__ void k(__half* x, __nv_bfloat16* y, uint32_t n) { cg::thread_block "
      "b = cg::this_thread_block(); b.sync(); if (b.thread_rank() < n) { x[0] = __hadd(x[0], "
      "x[1]); y[0] = y[1]; } }\n";
  const compiled_block first = compiled(compile(block, {"k"}));
  const auto begin = std::chrono::steady_clock::now();
  const compiled_block second = compiled(compile(block + "// again\n", {"k"}));
  const auto again = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(second.kernels[0].parameters.size(), 3U);
  // Without the precompiled header it takes three to four seconds on a slow machine, with it a
  // tenth of that.
  EXPECT_LT(again, milliseconds(2500));
}

TEST(CudaCompiler, ProvidesTheDeclarationsOfAcceptedHeaders) {
  compiled(
      compile("#include <cuda_runtime.h>\n#include <cmath>\nextern \"C\" __global__ void k(float* "
              "y, int64_t n) { y[0] = INFINITY; y[1] = NAN; y[2] = FLT_MAX; y[3] = (float)M_PI; "
              "y[4] = CUDART_INF_F; y[5] = fminf(max(1, 2), (float)min(3ll, 4ll)); uint8_t b = "
              "UINT8_MAX; y[6] = b; }\n",
              {"k"}));
}

// The first block is compiled without libcu++. The second names a part of it and is compiled with
// it.
TEST(CudaCompiler, ProvidesAllOfCooperativeGroups) {
  const std::string head =
      "#include <cuda_fp16.h>\n#include <cooperative_groups.h>\n#include "
      "<cooperative_groups/reduce.h>\n#include <cooperative_groups/scan.h>\n#include "
      "<cooperative_groups/memcpy_async.h>\n"
      "namespace cg = cooperative_groups;\n";
  EXPECT_NO_THROW(compiled(compile(head + R"(
extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ float s[256];
  cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, s, x + blockIdx.x * 256, sizeof(float) * 256);
  cg::wait(block);
  auto warp = cg::tiled_partition<32>(block);
  float sum = cg::reduce(warp, s[threadIdx.x], cg::plus<float>());
  float largest = cg::reduce(warp, s[threadIdx.x], [](float a, float b) { return a > b ? a : b; });
  float before = cg::exclusive_scan(warp, s[threadIdx.x]);
  auto some = cg::coalesced_threads();
  auto halves = cg::labeled_partition(warp, threadIdx.x & 1);
  cg::invoke_one(halves, [&] { y[n] = 0; });
  cg::this_cluster().sync();
  cg::this_grid().sync();
  if (warp.thread_rank() == 0) y[blockIdx.x] = sum + largest + before + some.size();
}
)",
                                   {"k"})));
  EXPECT_NO_THROW(compiled(
      compile("#include <cooperative_groups.h>\n#include <cooperative_groups/scan.h>\n#include "
              "<cuda/atomic>\nnamespace cg = cooperative_groups;\n"
              R"(
extern "C" __global__ void k(int* y) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> count;
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) new (&count) cuda::atomic<int, cuda::thread_scope_block>(0);
  block.sync();
  auto warp = cg::tiled_partition<32>(block);
  y[threadIdx.x] = cg::exclusive_scan_update(warp, count, 1);
}
)",
              {"k"})));
}

TEST(CudaCompiler, AppliesSettings) {
  const std::string block =
      "extern \"C\" __global__ void k(float* y) { y[threadIdx.x] = sinf(y[threadIdx.x]) / "
      "y[threadIdx.x + 1]; }\n";
  settings fast;
  fast.fast_math = true;
  EXPECT_LT(compiled(compile(block, {"k"}, "sm_90a", fast)).code.size(),
            compiled(compile(block, {"k"})).code.size());
  std::string many = "extern \"C\" __global__ void k(float* y) { float a[64];\n";
  for (int i = 0; i < 64; ++i)
    many += "a[" + std::to_string(i) + "] = y[threadIdx.x + " + std::to_string(i * 32) + "];\n";
  many += "__syncthreads();\n";
  for (int i = 0; i < 64; ++i)
    many += "y[threadIdx.x + " + std::to_string(i * 32) + "] = a[" +
            std::to_string((i * 37 + 11) % 64) + "];\n";
  settings few;
  few.max_registers = 24;
  EXPECT_LE(compiled(compile(many + "}\n", {"k"}, "sm_90a", few)).kernels[0].registers, 24U);
  EXPECT_GT(compiled(compile(many + "}\n", {"k"})).kernels[0].registers, 24U);
}

TEST(CudaCompiler, NamesLinesOfTheBlockInDiagnostics) {
  const program_failure wrong =
      failure(compile("#include <cuda_fp16.h>\n\nextern \"C\" __global__ void k(float* y) {\n  "
                      "y[0] = undeclared;\n}\n",
                      {"k"}));
  EXPECT_EQ(wrong.outcome, Outcome::COMPILE_ERROR);
  EXPECT_THAT(wrong.message, HasSubstr("cuda:4: error: identifier \"undeclared\" is undefined"));
}

TEST(CudaCompiler, NamesLinesOfTheBlockInDiagnosticsOfAssembler) {
  for (const char* head : {"", "#include <cuda_fp16.h>\n"}) {
    const program_failure wrong = failure(
        compile(std::string(head) +
                    "extern \"C\" __global__ void k(float* y) {\n  float v = y[threadIdx.x];\n\n  "
                    "asm volatile(\"add.bogus.f32 %0, %0, %0;\" : \"+f\"(v));\n  y[0] = v;\n}\n",
                {"k"}));
    EXPECT_EQ(wrong.outcome, Outcome::COMPILE_ERROR);
    EXPECT_THAT(wrong.message, testing::Eq(std::string("cuda:") + (*head == '\0' ? "4" : "5") +
                                           ": error: in assembler: Unknown modifier '.bogus'"));
  }
}

// The author of a block decides how long its lines are, and what its assembler leaves in the PTX.
TEST(CudaCompiler, SurvivesHostileBlocks) {
  const auto in_assembler = [](const std::string& text) {
    return "extern \"C\" __global__ void k(float* y) { asm volatile(\"" + text +
           "\"); y[0] = 1; }\n";
  };
  const std::string blanks(200'000, ' ');
  const std::string letters(200'000, 'a');
  std::string lines;
  for (int i = 0; i < 64; ++i) lines += "// twenty characters\\n";
  // A12 is A0 4096 times, which takes 5.5 MB: more than max_frame_bytes.
  std::string megabytes = "#define A0 \"" + lines + "\"\n";
  for (int i = 1; i <= 12; ++i)
    megabytes += "#define A" + std::to_string(i) + " A" + std::to_string(i - 1) + " A" +
                 std::to_string(i - 1) + "\n";
  megabytes +=
      "extern \"C\" __global__ void k(float* y) { asm volatile(A12 \"bogus.f32;\"); y[0] = 1; }\n";
  for (const std::string& block :
       {in_assembler(blanks + "bogus.f32;"),
        in_assembler("/* .loc 1 1 1 " + letters + "\\n*/ bogus.f32;"),
        in_assembler("/*\\n.file 99999999999 \\\"cuda\\\"\\n.loc 99999999999 1 1\\n*/ bogus.f32;"),
        "extern \"C\" __global__ void k(float* y) { y[0] = " + letters + "; }\n",
        "extern \"C\" __global__ void " + letters + "(float* y) { y[0] = undeclared; }\n",
        blanks + "# define x " + letters +
            "\nextern \"C\" __global__ void k(float* y) { y[0] = undeclared; }\n",
        megabytes}) {
    const auto begin = std::chrono::steady_clock::now();
    const program_failure refused = failure(compile(block, {"k"}));
    EXPECT_EQ(refused.outcome, Outcome::COMPILE_ERROR) << block.substr(0, 100);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
  }
  compiled(compile(
      "extern \"C\" __global__ void " + std::string(3000, 'a') + "(float* y) { y[0] = 1; }\n", {}));
  compiled(compile(scale, {"scale"}));
}

class RefusedInclude : public testing::TestWithParam<const char*> {};

TEST_P(RefusedInclude, ReadsNoFile) {
  const testing_support::temporary_folder folder;
  testing_support::write_file(folder / "secret.h", "the_secret_word is here\n");
  std::string line = GetParam();
  for (std::size_t at; (at = line.find("SECRET")) != std::string::npos;)
    line.replace(at, 6, (folder / "secret.h").string());
  const program_failure refused =
      failure(compile(line + "\nextern \"C\" __global__ void k(float* y) { y[0] = 1; }\n", {"k"}));
  EXPECT_EQ(refused.outcome, Outcome::COMPILE_ERROR);
  EXPECT_THAT(refused.message, Not(HasSubstr("the_secret_word")));
}

INSTANTIATE_TEST_SUITE_P(
    EverySpelling, RefusedInclude,
    testing::Values("#include \"SECRET\"", "#include <SECRET>",
                    "#define FILE \"SECRET\"\n#include FILE", "#inc\\\nlude \"SECRET\"",
                    "%:include \"SECRET\"", "/* a */ #include \"SECRET\"",
                    "# /* b */ include \"SECRET\"", "#include /* c */ \"SECRET\"",
                    "#include <../../../../../../../../../../SECRET>",
                    "#if __has_include(\"SECRET\")\n#include \"SECRET\"\n#endif",
                    "const char text[] = {\n#embed \"SECRET\"\n};", "%:embed \"SECRET\""));

// `named` is what a block asks about, by __has_include. The answer must be the same as for a file
// that does not exist.
class HiddenFile : public testing::TestWithParam<std::string> {};

TEST_P(HiddenFile, DoesNotExistForABlock) {
  const testing_support::temporary_folder folder;
  testing_support::write_file(folder / "secret.h", "#error it is here\n");
  std::string named = GetParam();
  if (const std::size_t at = named.find("SECRET"); at != std::string::npos)
    named.replace(at, 6, (folder / "secret.h").string());
  compiled(
      compile("#if __has_include(" + named + ")\n#error it is here\n#endif\n" + scale, {"scale"}));
}

INSTANTIATE_TEST_SUITE_P(EverySpelling, HiddenFile,
                         testing::Values("\"SECRET\"", "<SECRET>", "\"/etc/passwd\"",
                                         "\"/proc/self/maps\"", "\"/proc/1/cmdline\"",
                                         "<../../../../../../../../../../etc/passwd>", "\"../\"",
                                         "\"/dev/null\"", "<stdio.h>"));

TEST(CudaCompiler, FindsHeadersOfCudaWhereverABlockIncludesThem) {
  compiled(
      compile("#if !__has_include(<cuda/std/array>) || !__has_include(\"cuda_fp16.h\")\n"
              "#error CUDA's headers are missing\n#endif\n"
              "__device__ int before;\n#include <cuda_fp16.h>\n#include <cuda/std/array>\n"
              "#include <cub/block/block_reduce.cuh>\nextern \"C\" __global__ void k(__half* "
              "y) { cuda::std::array<__half, 2> a{y[0], y[1]}; y[2] = a[before]; }\n",
              {"k"}));
}

// Neither the assembler nor the text of assembler outside of functions reads a file.
TEST(CudaCompiler, ReadsNoFileForAssembler) {
  const testing_support::temporary_folder folder;
  testing_support::write_file(folder / "secret.h", "the_secret_word");
  const std::string named = "\\\"" + (folder / "secret.h").string() + "\\\"";
  const auto outside = compile("asm(\".incbin " + named + "\");\n" + std::string(scale), {"scale"});
  EXPECT_THAT(outside ? outside->code : outside.error().message, Not(HasSubstr("secret_word")));
  for (const char* directive : {".incbin ", ".include "}) {
    const program_failure refused =
        failure(compile("extern \"C\" __global__ void k(float* y) { asm(\"" +
                            std::string(directive) + named + "\"); y[0] = 1; }\n",
                        {"k"}));
    EXPECT_THAT(refused.message, Not(HasSubstr("secret_word")));
  }
}

// The reader of the text refuses all headers but CUDA's. An include that it misses finds no file,
// because the compiling process sees no others.
TEST(CudaCompiler, RefusesSystemHeaders) {
  EXPECT_THAT(failure(compile("#include <stdio.h>\n", {})).message,
              HasSubstr("is not one of CUDA's headers"));
}

TEST(CudaCompiler, StopsABlockAtItsDeadlineAndCompilesTheNext) {
  const std::string bomb =
      "template <int N> struct s { static constexpr int v = s<N - 1>::v + s<N - 2>::v * (N % 3); "
      "};\ntemplate <> struct s<0> { static constexpr int v = 1; };\ntemplate <> struct s<1> { "
      "static constexpr int v = 1; };\n"
      "constexpr int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nextern \"C\" __global__ "
      "void k(int* y) { constexpr int v = f(60); y[0] = v; }\n";
  const auto begin = std::chrono::steady_clock::now();
  const program_failure stopped = failure(compile(bomb, {"k"}, "sm_90a", {}, milliseconds(3000)));
  EXPECT_EQ(stopped.outcome, Outcome::COMPILE_ERROR);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  compiled(compile(scale, {"scale"}));
}

TEST(CudaCompiler, ReportsACrashOfTheCompilerAsACompileError) {
  const std::string deep =
      "extern \"C\" __global__ void k(int* y) { y[0] = " + std::string(1000000, '-') + "1; }\n";
  EXPECT_EQ(failure(compile(deep, {"k"})).outcome, Outcome::COMPILE_ERROR);
  compiled(compile(scale, {"scale"}));
}

TEST(CudaCompiler, AllowsAssemblerExceptForPersistingCache) {
  compiled(
      compile("extern \"C\" __global__ void k(unsigned* y) { unsigned lane; asm volatile(\"mov.u32 "
              "%0, %%laneid;\" : \"=r\"(lane)); y[0] = lane; }\n",
              {"k"}));
  for (const char* hint :
       {"{ .reg .b64 p; createpolicy.fractional.L2::evict_last.b64 p, 1.0; "
        "ld.global.L2::cache_hint.f32 %0, [%1], p; }",
        "applypriority.global.L2::evict_normal [%1], 128; mov.f32 %0, 0f00000000;"}) {
    const auto refused = failure(
        compile(std::string("extern \"C\" __global__ void k(float* y) { float v; asm volatile(\"") +
                    hint + "\" : \"=f\"(v) : \"l\"(y)); y[0] = v; }\n",
                {"k"}));
    EXPECT_EQ(refused.outcome, Outcome::REJECTED) << refused.message;
  }
}

std::string with_array(int floats) {
  const std::string n = std::to_string(floats);
  return "extern \"C\" __global__ void hungry(const float* x, float* y, int n) {\n  float kept[" +
         n + "];\n  for (int j = 0; j < " + n +
         "; ++j) kept[j] = x[j];\n  for (int j = 0; j < n; ++j) "
         "kept[(n + 7 * j) % " +
         n + "] += kept[(n * 3 + j) % " + n + "];\n  y[0] = kept[n % " + n +
         "];\n}\nextern \"C\" __global__ void modest(float* y) { y[0] = 1; }\n";
}

TEST(CudaCompiler, RefusesKernelsWhoseThreadsHaveLargeStacks) {
  EXPECT_EQ(read_memory_use(compiled(compile(with_array(1500), {"hungry"})).code)->stack_bytes,
            6000U);
  for (const std::vector<std::string>& launched :
       {std::vector<std::string>{"hungry"}, {"modest"}}) {
    const program_failure refused = failure(compile(with_array(3000), launched));
    EXPECT_EQ(refused.outcome, Outcome::LAUNCH_ERROR);
    EXPECT_EQ(refused.message,
              "cuda: hungry needs 12000 bytes of local memory a thread (arrays and spilled "
              "registers), the limit is 8192");
  }
}

TEST(CudaCompiler, CountsTheStacksOfCalledFunctions) {
  const std::string n = "1500";
  const std::string body = "(const float* x, int n) { volatile float kept[" + n +
                           "]; for (int i = 0; i < n; ++i) kept[(i * 7) % " + n + "] = x[i]; ";
  const program_failure refused = failure(
      compile("__device__ __noinline__ float inner" + body + "return kept[n % " + n +
                  "]; }\n__device__ __noinline__ float outer" + body +
                  "return inner(x, n) + kept[n % " + n +
                  "]; }\nextern \"C\" __global__ void k(const float* x, float* y, int n) { y[0] "
                  "= outer(x, n); }\n",
              {"k"}));
  EXPECT_EQ(refused.outcome, Outcome::LAUNCH_ERROR);
  EXPECT_THAT(refused.message, HasSubstr("cuda: k needs 12"));
}

TEST(CudaCompiler, RefusesVariablesOfMoreThanAGibibyte) {
  const auto block = [](const std::string& declared) {
    return declared +
           "extern \"C\" __global__ void k(float* y) { y[threadIdx.x] = "
           "large[threadIdx.x]; large[threadIdx.x] = 1; }\n";
  };
  const auto use =
      read_memory_use(compiled(compile(block("__device__ float large[100 << 20];\n"), {"k"})).code);
  EXPECT_GE(use->variable_bytes, 400U << 20U);
  EXPECT_LT(use->variable_bytes, 401U << 20U);
  for (const char* declared :
       {"__device__ float large[300 << 20];\n", "__managed__ float large[300 << 20];\n",
        "__device__ float large[200ull << 30];\n",
        "__device__ double other[140 << 20]; __device__ float large[20 << 20];\n__device__ double "
        "more(int i) { return other[i] = 1; } extern \"C\" __global__ void k2(double* y) { y[0] = "
        "more(0); }\n"}) {
    const program_failure refused = failure(compile(block(declared), {"k"}));
    EXPECT_EQ(refused.outcome, Outcome::LAUNCH_ERROR);
    EXPECT_THAT(refused.message, HasSubstr("bytes, the limit is 1073741824")) << declared;
  }
}

// Data that a program leaves on the context's heap stays there for later programs.
TEST(CudaCompiler, RefusesAllocationsOnTheDevicesHeap) {
  const auto allocating = [](const std::string& statement) {
    return "extern \"C\" __global__ void k(float** y, int n) { " + statement + " }\n";
  };
  // ptxas does not let a pointer to malloc() be taken.
  for (const char* statement : {"y[0] = (float*)malloc(n);", "y[0] = new float[n];"}) {
    const auto result = compile(allocating(statement), {"k"});
    ASSERT_FALSE(result.has_value()) << statement;
    EXPECT_EQ(result.error().outcome, Outcome::REJECTED) << result.error().message;
    EXPECT_THAT(result.error().message, HasSubstr("cannot allocate memory")) << statement;
  }
  compiled(compile(allocating("printf(\"%d\\n\", n);"), {"k"}));
}

// The spellings are one kernel. Each costs a table of parameters and no pass over the PTX.
TEST(CudaCompiler, CompilesManySpellingsOfOneKernel) {
  std::vector<std::string> spellings;
  for (std::size_t blanks = 0; blanks < 64; ++blanks)
    spellings.push_back("k<" + std::string(blanks, ' ') + "1>");
  const compiled_block block =
      compiled(compile("template <int N> __global__ void k(float* y) { y[0] = N; }\n", spellings));
  ASSERT_EQ(block.kernels.size(), spellings.size());
  for (const kernel_facts& kernel : block.kernels) {
    EXPECT_EQ(kernel.symbol, block.kernels[0].symbol);
    EXPECT_EQ(kernel.parameters.size(), 1U);
    EXPECT_GT(kernel.registers, 4U);
  }
}

TEST(CudaCompiler, ReservesTheNamesOfTheHarnessOutsideComments) {
  EXPECT_THAT(failure(compile("int hone_parameters_0;\n", {})).message, HasSubstr("reserved"));
  compiled(
      compile("// hone_x isn't used\n/* nor hone:: \" */\nextern \"C\" __global__ void k(float* y) "
              "{ y[0] = 1; }\n",
              {"k"}));
}

// Compiles every block of configs/gpu, with every value of its sweeps.
TEST(CudaCompiler, CompilesTheGpuCorpusForHopper) {
  const auto set = testing_support::load_honest_set(
      std::filesystem::path(HONE_SOURCE_DIR) / "configs/gpu", 100, 1);
  std::set<std::string> blocks;
  for (const corpus_document& each : set.documents) {
    const auto variant = make_variant(set.tasks.at(each.task).id, each.text);
    const std::string settings = variant->getSettings().cStr();
    if (variant->getCuda().size() == 0 ||
        !blocks.insert(settings + variant->getCuda().cStr()).second)
      continue;
    const auto result = compile(variant->getCuda().cStr(), {}, "sm_90a", parse_settings(settings));
    EXPECT_TRUE(result.has_value())
        << each.task << "/" << each.name << ": " << result.error().message;
  }
  EXPECT_GE(blocks.size(), 60U);
}

// A corpus variant for the CPU also compiles for sm_90a (design.md section 6).
TEST(CudaCompiler, CompilesTheCpuCorpusForHopper) {
  const auto set =
      testing_support::load_honest_set(std::filesystem::path(HONE_SOURCE_DIR) / "configs", 1, 3);
  std::size_t blocks = 0;
  for (const corpus_document& each : set.documents) {
    const auto variant = make_variant(set.tasks.at(each.task).id, each.text);
    if (variant->getCuda().size() == 0) continue;
    ++blocks;
    const auto result = compile(variant->getCuda().cStr(), {});
    EXPECT_TRUE(result.has_value())
        << each.task << "/" << each.name << ": " << result.error().message;
  }
  EXPECT_GE(blocks, 20U);
}

}  // namespace
}  // namespace hone
