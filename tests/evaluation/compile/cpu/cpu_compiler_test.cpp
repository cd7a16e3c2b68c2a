#include "evaluation/compile/cpu/cpu_compiler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluation/compile/cpu/host_toolchain.hpp"
#include "evaluation/compile/cpu/shared_object.hpp"

namespace hone {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

program_result<compiled_block> compile(std::string_view block,
                                       const std::vector<std::string>& launched = {"k"},
                                       milliseconds limit = milliseconds(20000)) {
  static const cpu_compiler compiler(native_target());
  return compiler.compile(block, launched, false, limit);
}

std::string message_of(const program_result<compiled_block>& result) {
  return result ? "compiled" : result.error().message;
}

TEST(CpuCompiler, CompilesTheConstructsOfTheCorpus) {
  const auto result = compile(R"(
#include <cuda_runtime.h>
#include <math.h>
#define TILE 16
template <int N> __device__ __forceinline__ float total(const float (&x)[N]) { float s = 0; for (int i = 0; i < N; ++i) s += x[i]; return s; }
extern "C" __global__ void __launch_bounds__(256) k(const float* __restrict__ a, float* __restrict__ b, int n, float scale, bool negate) {
  __shared__ float tile[TILE][TILE + 1];
  extern __shared__ __align__(16) unsigned char raw[];
  __shared__ __align__(16) float aligned_behind[8];
  __align__(16) __shared__ float aligned_before[8];
  aligned_behind[threadIdx.x % 8] = aligned_before[threadIdx.x % 8] = 0.f;
  float4 v = make_float4(1.f, 2.f, 3.f, INFINITY);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.y][threadIdx.x % TILE] = i < n ? __ldg(&a[i]) : -FLT_MAX;
  reinterpret_cast<float*>(raw)[threadIdx.x] = v.x;
  __syncthreads();
  float s = tile[0][threadIdx.x % TILE];
  #pragma unroll
  for (int d = 16; d > 0; d >>= 1) s = fmaxf(s, __shfl_xor_sync(0xffffffff, s, d));
  float parts[4] = {s, expf(s), rsqrtf(fabsf(s) + 1.f), __expf(-s)};
  if (i < n) b[i] = (negate ? -1.f : 1.f) * scale * total(parts) + max(0, (int)threadIdx.x) + std::min(1.0f, s);
  atomicAdd(&b[0], 1.0f);
}
template <int N> __global__ void t(float* x) { x[threadIdx.x] = N; }
)",
                              {"k", "t<4>", "absent"});
  ASSERT_TRUE(result) << message_of(result);
  ASSERT_EQ(result->kernels.size(), 2U) << "the launch of an absent kernel fails at run time";
  EXPECT_FALSE(find_loading_problem(result->code));
}

TEST(CpuCompiler, NamesLinesOfTheBlockInDiagnostics) {
  EXPECT_THAT(message_of(compile("\n\n__global__ void k(float* a) { a[0] = nope; }\n")),
              HasSubstr("cuda:3:"));
  EXPECT_THAT(message_of(compile("\n#define X nope\n__global__ void k(float* a) { a[0] = X; }\n")),
              HasSubstr("cuda:3:"));
}

TEST(CpuCompiler, ReportsWhatTheCpuCannotExpress) {
  EXPECT_THAT(message_of(compile("#include <cuda_fp16.h>\n__global__ void k(__half* a) {}")),
              HasSubstr("cuda:1: <cuda_fp16.h> cannot be included on the CPU device"));
  EXPECT_THAT(message_of(compile("__global__ void k(float* a) { asm volatile(\"nop;\"); }")),
              HasSubstr("cuda:1: inline assembler"));
}

// The author of a block decides how long its lines are, and how long macros make them.
TEST(CpuCompiler, SurvivesLongLines) {
  const std::string letters(200'000, 'a');
  EXPECT_NE(message_of(compile("extern __shared__ " + letters +
                               "\n__global__ void k(float* a) { a[0] = 1; }\n")),
            "compiled");
  EXPECT_EQ(message_of(compile(std::string(200'000, ' ') +
                               "\n__global__ void k(float* a) { a[0] = 1; }\n")),
            "compiled");
  std::string megabytes = "#define A0 a b c d e f g h i j\n";
  for (int i = 1; i <= 17; ++i)
    megabytes += "#define A" + std::to_string(i) + " A" + std::to_string(i - 1) + " A" +
                 std::to_string(i - 1) + "\n";
  EXPECT_THAT(
      message_of(compile(megabytes +
                         "extern __shared__ A17\n__global__ void k(float* a) { a[0] = 1; }\n")),
      HasSubstr("more than a MiB"));
  EXPECT_THAT(message_of(compile("extern \"C\" float _ZGVbN" + std::string(200'000, '1') +
                                 "v_expf(float);\n__global__ void k(float* a) { a[0] = _ZGVbN" +
                                 std::string(200'000, '1') + "v_expf(a[1]); }\n")),
              HasSubstr("which does not exist on this device"));
}

TEST(CpuCompiler, OpensNoFileThatTheBlockNames) {
  for (const char* source : {
           "#include \"/etc/hostname\"\n__global__ void k() {}",
           "#define F </etc/hostname>\n#include F\n__global__ void k() {}",
           "#in\\\nclude \"/etc/hostname\"\n__global__ void k() {}",
           "%:include \"/etc/hostname\"\n__global__ void k() {}",
           "/**/ #include \"/etc/hostname\"\n__global__ void k() {}",
           "#include_next <stdio.h>\n__global__ void k() {}",
           "#import <stdio.h>\n__global__ void k() {}",
           "#line 1 \"/etc/hostname\"\n#error here\n__global__ void k() {}",
           "#define H #\nH include \"/etc/hostname\"\n__global__ void k() {}",
           R"(_Pragma("GCC pch_preprocess \"/etc/hostname\"") int x = ;
              __global__ void k() {})",
       }) {
    const std::string message = message_of(compile(source));
    EXPECT_NE(message, "compiled") << source;
    EXPECT_THAT(message, testing::Not(HasSubstr("localhost"))) << source;
  }
  EXPECT_EQ(
      message_of(compile(
          "#if __has_include(\"/etc/hostname\")\n#error found\n#endif\n__global__ void k() {}")),
      "compiled");
}

TEST(CpuCompiler, RefusesCodeThatWouldRunWhenLoaded) {
  EXPECT_THAT(
      message_of(compile("__device__ float f(float x) { return expf(x); }\nfloat table = f(3.f) * "
                         "threadIdx.x;\n__global__ void k(float* a) { a[0] = table; }")),
      HasSubstr("initialized at run time"));
  EXPECT_THAT(
      message_of(compile(
          "extern \"C\" int system(const char*);\n__global__ void k() { system(\"true\"); }")),
      HasSubstr("uses 'system'"));
  EXPECT_THAT(
      message_of(compile("__attribute__((constructor)) void f() {}\n__global__ void k() {}")),
      HasSubstr("attribute 'constructor'"));
}

TEST(CpuCompiler, AcceptsConstantTablesAndDeviceVariables) {
  EXPECT_EQ(
      message_of(compile("__constant__ float w[3] = {1.f, 2.f, 3.f};\n__device__ int "
                         "counter;\n__global__ void k(float* a) { a[0] = w[counter++ % 3]; }")),
      "compiled");
}

TEST(CpuCompiler, StopsCompilationBombsAtTheDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string message = message_of(compile(R"(
template <int N, int M> struct ack { static constexpr int v = ack<N - 1, ack<N, M - 1>::v>::v; };
template <int N> struct f { typedef typename f<N + 1>::t a; typedef typename f<N + 2>::t b; };
constexpr unsigned long long burn() { unsigned long long s = 0; for (unsigned long long i = 0; i < 2000000000ull; ++i) s += i * i; return s; }
#define A(x) x x x x x x x x x x
#define B(x) A(A(A(A(A(A(A(A(x))))))))
__global__ void k(int* a) { B(a[0]++;) }
)",
                                                 {"k"}, milliseconds(1500)));
  EXPECT_NE(message, "compiled");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(CpuCompiler, ReportsDeepNestingAsAnError) {
  EXPECT_NE(message_of(compile("__global__ void k(int* a) { a[0] = " + std::string(100000, '(') +
                                   "1" + std::string(100000, ')') + "; }",
                               {"k"}, milliseconds(2000))),
            "compiled");
}

TEST(SharedObject, DamagedBytesAreCheckedWithoutReadingOutside) {
  const auto result = compile("__global__ void k(float* a) { a[0] = 1.f; }");
  const std::string code = result.value().code;
  for (std::size_t size = 0; size < code.size(); size += 97)
    (void)find_loading_problem(std::string_view(code).substr(0, size));
  for (std::size_t i = 0; i < code.size(); i += 13) {
    std::string damaged = code;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    (void)find_loading_problem(damaged);
  }
  EXPECT_TRUE(find_loading_problem(""));
  EXPECT_TRUE(
      find_loading_problem("\x7f"
                           "ELF"));
}

}  // namespace
}  // namespace hone
