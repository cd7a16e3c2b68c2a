// Tests kernels on the CPU: the real compiler compiles them, the sandbox's loader loads them, and
// they run in this process.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluation/compile/cpu/cpu_compiler.hpp"
#include "evaluation/compile/cpu/host_toolchain.hpp"
#include "evaluation/program/arena_layout.hpp"
#include "evaluation/sandbox/child/cpu/kernel_table.hpp"
#include "evaluation/sandbox/child/cpu/kernels.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using list = std::vector<std::int64_t>;

// A compiled and loaded cuda block, of which one kernel can be launched.
class block {
 public:
  explicit block(const std::string& source, const std::string& kernel = "k") : kernel_(kernel) {
    static const cpu_compiler compiler(native_target());
    const auto result = compiler.compile(source, {kernel}, false, std::chrono::milliseconds(30000));
    if (!result) throw std::runtime_error(result.error().message);
    testing_support::write_file(folder_ / "block.so", result.value().code);
    kernels_.emplace((folder_ / "block.so").string());
    table_ = kernel_table(*kernels_->facts());
    kernels_->poison_shared(poison_byte);
  }

  void launch(const list& grid, const list& threads, const std::vector<c10::IValue>& arguments,
              std::int64_t shared = 0) {
    auto launch = table_.check(kernel_, grid, threads, shared, arguments);
    if (launch) kernels_->run(launch->what, launch->arguments.data());
  }
  // Returns the reason for which a launch is refused, or "launched".
  std::string refusal(const list& grid, const list& threads,
                      const std::vector<c10::IValue>& arguments, std::int64_t shared = 0) {
    try {
      launch(grid, threads, arguments, shared);
    } catch (const program_error& e) {
      EXPECT_EQ(e.outcome, Outcome::LAUNCH_ERROR);
      return e.what();
    }
    return "launched";
  }
  cpu_kernels& kernels() { return *kernels_; }

 private:
  testing_support::temporary_folder folder_;
  std::string kernel_;
  std::optional<cpu_kernels> kernels_;
  kernel_table table_;
};

at::Tensor ints(std::int64_t n) { return at::zeros({n}, at::kInt); }

TEST(Kernels, EveryThreadOfEveryBlockRunsOnce) {
  block b(
      "extern \"C\" __global__ void k(int* a) { atomicAdd(&a[threadIdx.x + blockDim.x * "
      "(threadIdx.y + blockDim.y * (threadIdx.z + blockDim.z * (blockIdx.x + gridDim.x * "
      "(blockIdx.y + gridDim.y * blockIdx.z))))], 1); }");
  const at::Tensor a = ints(24L * 30);
  b.launch({2, 3, 5}, {2, 3, 4}, {a});
  EXPECT_TRUE(at::equal(a, at::ones_like(a)));
}

TEST(Kernels, AnEmptyGridLaunchesNothing) {
  block b("extern \"C\" __global__ void k(int* a) { a[0] = 1; }");
  const at::Tensor a = ints(1);
  b.launch({0}, {32}, {a});
  b.launch({5, 0, 3}, {32}, {a});
  EXPECT_EQ(a[0].item<int>(), 0);
}

TEST(Kernels, GetArgumentsOfTheTypesOfTheirParameters) {
  block b(
      "extern \"C\" __global__ void k(double* a, int i, long long l, unsigned u, float f, double "
      "d, bool t, const float* none) { a[0] = i; a[1] = l; a[2] = u; a[3] = f; a[4] = d; a[5] = t; "
      "a[6] = none == nullptr; }");
  const at::Tensor a = at::zeros({7}, at::kDouble);
  b.launch({1}, {1},
           {a, std::int64_t{-5}, std::int64_t{1} << 40, std::int64_t{4000000000}, 0.1, 0.1, true,
            at::Tensor()});
  EXPECT_EQ(a[0].item<double>(), -5);
  EXPECT_EQ(a[1].item<double>(), 0x1p40);
  EXPECT_EQ(a[2].item<double>(), 4e9);
  EXPECT_EQ(a[3].item<double>(), static_cast<double>(0.1F));
  EXPECT_EQ(a[4].item<double>(), 0.1);
  EXPECT_EQ(a[5].item<double>(), 1);
  EXPECT_EQ(a[6].item<double>(), 1);
}

TEST(Launch, RefusesArgumentsThatDoNotFit) {
  block b("extern \"C\" __global__ void k(float* a, int i, float f, bool t) {}");
  const at::Tensor a = at::zeros({1});
  EXPECT_THAT(b.refusal({1}, {1}, {a, 1, 1.0}),
              HasSubstr("3 arguments, the kernel has 4 parameters"));
  EXPECT_THAT(b.refusal({1}, {1}, {1, 1, 1.0, true}),
              HasSubstr("argument 1 is an int, the kernel's parameter is a pointer of 8 bytes"));
  EXPECT_THAT(b.refusal({1}, {1}, {a, 1.0, 1.0, true}),
              HasSubstr("argument 2 is a float, the kernel's parameter is an integer of 4 bytes"));
  EXPECT_THAT(b.refusal({1}, {1}, {a, std::int64_t{1} << 32, 1.0, true}),
              HasSubstr("does not fit into 4 bytes"));
  EXPECT_THAT(b.refusal({1}, {1}, {a, 1, 1, true}), HasSubstr("argument 3 is an int"));
  EXPECT_THAT(b.refusal({1}, {1}, {a, 1, 1.0, 1}), HasSubstr("argument 4 is an int"));
  EXPECT_EQ(b.refusal({1}, {1}, {a, std::int64_t{4294967295}, 1.0, true}), "launched");
}

TEST(Launch, HasTheLimitsOfCuda) {
  block b("extern \"C\" __global__ void k() {}");
  for (const list& grid : {list{}, {1, 1, 1, 1}, {-1}, {2147483648}, {1, 65536}, {1, 1, 65536}})
    EXPECT_THAT(b.refusal(grid, {1}, {}), HasSubstr("the grid")) << grid.size();
  for (const list& threads : {list{}, {1, 1, 1, 1}, {0}, {-1}, {1025}, {1, 1, 65}, {32, 0}})
    EXPECT_THAT(b.refusal({1}, threads, {}), HasSubstr("the block"));
  EXPECT_THAT(b.refusal({1}, {32, 33}, {}), HasSubstr("more than 1024 threads"));
  EXPECT_THAT(b.refusal({1}, {1}, {}, 227L * 1024 + 1), HasSubstr("dynamic shared memory"));
  EXPECT_THAT(b.refusal({1}, {1}, {}, -1), HasSubstr("dynamic shared memory"));
  EXPECT_EQ(b.refusal({1, 65535}, {1024}, {}, 227L * 1024), "launched");
  EXPECT_EQ(b.refusal({1}, {16, 1, 64}, {}), "launched");
}

TEST(Launch, RefusesAnUnknownKernel) {
  block b("extern \"C\" __global__ void k() {}", "other");
  EXPECT_THAT(b.refusal({1}, {1}, {}), HasSubstr("no __global__ function 'other'"));
}

TEST(Launch, RunsTemplatesNamedWithTheirArguments) {
  block b("template <int N, typename T> __global__ void k(T* a) { a[0] = N; }", "k<7, float>");
  const at::Tensor a = at::zeros({1});
  b.launch({1}, {1}, {a});
  EXPECT_EQ(a[0].item<float>(), 7);
}

TEST(Barriers, MakeWritesVisibleToAllThreads) {
  block b(R"(extern "C" __global__ void k(const float* x, float* y) {
  __shared__ float part[256];
  part[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  y[blockIdx.x * 256 + threadIdx.x] = part[0];
})");
  const at::Tensor x = at::arange(1024, at::kFloat).view({4, 256});
  const at::Tensor y = at::empty_like(x);
  b.launch({4}, {256}, {x, y});
  EXPECT_TRUE(at::allclose(y, x.sum(1, true).expand_as(x)));
}

TEST(Barriers, DoNotWaitForThreadsThatHaveReturned) {
  block b(R"(extern "C" __global__ void k(int* a) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  if (threadIdx.x >= 40) return;
  __syncthreads();
  atomicAdd(&total, 1);
  __syncthreads();
  a[threadIdx.x] = total;
})");
  const at::Tensor a = ints(64);
  b.launch({1}, {64}, {a});
  EXPECT_EQ(a.sum().item<std::int64_t>(), 40 * 40);
}

TEST(Barriers, CountAndVote) {
  block b(
      "extern \"C\" __global__ void k(int* a) { for (int i = 0; i < 3; ++i) { const int n = "
      "__syncthreads_count(threadIdx.x % 3 == i); const int any = __syncthreads_or(threadIdx.x == "
      "999), all = __syncthreads_and(threadIdx.x < 100); a[threadIdx.x * 3 + i] = n * 100 + any * "
      "10 + all; } }");
  const at::Tensor a = ints(300);
  b.launch({1}, {100}, {a});
  for (int thread = 0; thread < 100; thread += 33) {
    EXPECT_EQ(a[thread * 3L].item<int>(), 3401);
    EXPECT_EQ(a[thread * 3 + 2].item<int>(), 3301);
  }
}

TEST(Warps, ShufflesMoveValuesBetweenLanes) {
  block b(R"(extern "C" __global__ void k(int* a) {
  const int lane = threadIdx.x % 32, at = threadIdx.x * 6;
  a[at] = __shfl_sync(0xffffffff, lane, 5);
  a[at + 1] = __shfl_up_sync(0xffffffff, lane, 2);
  a[at + 2] = __shfl_down_sync(0xffffffff, lane, 3);
  a[at + 3] = __shfl_xor_sync(0xffffffff, lane, 1);
  a[at + 4] = __shfl_sync(0xffffffff, lane, 1, 8);
  a[at + 5] = __shfl_xor_sync(0xffffffff, lane, 12, 16);
})");
  const at::Tensor a = ints(64L * 6);
  b.launch({1}, {64}, {a});
  for (int thread = 0; thread < 64; ++thread) {
    const int lane = thread % 32;
    const auto value = [&](int i) { return a[thread * 6 + i].item<int>(); };
    ASSERT_EQ(value(0), 5);
    ASSERT_EQ(value(1), lane >= 2 ? lane - 2 : lane);
    ASSERT_EQ(value(2), lane + 3 < 32 ? lane + 3 : lane);
    ASSERT_EQ(value(3), lane ^ 1);
    ASSERT_EQ(value(4), lane / 8 * 8 + 1);
    ASSERT_EQ(value(5), lane ^ 12);
  }
}

TEST(Warps, VotesAndReductionsCoverTheLanesOfTheMask) {
  block b(R"(extern "C" __global__ void k(unsigned* a) {
  const unsigned lane = threadIdx.x % 32;
  if (lane < 16) {
    a[lane * 6] = __ballot_sync(0xffff, lane % 2);
    a[lane * 6 + 1] = __any_sync(0xffff, lane == 7);
    a[lane * 6 + 2] = __all_sync(0xffff, lane < 15);
    a[lane * 6 + 3] = __reduce_add_sync(0xffffu, lane);
    a[lane * 6 + 4] = __reduce_max_sync(0xffffu, lane);
    a[lane * 6 + 5] = __match_any_sync(0xffff, lane / 4);
  }
})");
  const at::Tensor a = ints(16L * 6);
  b.launch({1}, {32}, {a});
  for (int lane = 0; lane < 16; ++lane) {
    const auto value = [&](int i) { return a[lane * 6 + i].item<int>(); };
    ASSERT_EQ(value(0), 0xaaaa);
    ASSERT_EQ(value(1), 1);
    ASSERT_EQ(value(2), 0);
    ASSERT_EQ(value(3), 120);
    ASSERT_EQ(value(4), 15);
    ASSERT_EQ(value(5), 0xf << (lane / 4 * 4));
  }
}

TEST(Warps, ShufflesInAnIncompleteWarpUseItsExistingLanes) {
  block b(
      "extern \"C\" __global__ void k(float* a) { float s = 1.0f; for (int d = 16; d > 0; d /= 2) "
      "{ const float other = __shfl_down_sync(0xffffffff, s, d); if (threadIdx.x + d < 20) s += "
      "other; } a[threadIdx.x] = s; }");
  const at::Tensor a = at::zeros({20});
  b.launch({1}, {20}, {a});
  EXPECT_EQ(a[0].item<float>(), 20);
}

TEST(Atomics, ReturnTheOldValue) {
  block b(R"(extern "C" __global__ void k(int* a, float* f) {
  a[atomicAdd(&a[100], 1)] = atomicMax(&a[101], (int)threadIdx.x);
  atomicMin(&a[102], -(int)threadIdx.x); atomicOr(&a[103], 1 << threadIdx.x % 4); atomicExch(&a[104], 9); atomicSub(&a[105], 2);
  while (atomicCAS(&a[106], threadIdx.x, threadIdx.x + 1) != threadIdx.x) {}
  atomicAdd(f, 0.5f);
})");
  const at::Tensor a = ints(107);
  const at::Tensor f = at::zeros({1});
  b.launch({1}, {100}, {a, f});
  EXPECT_EQ(a[100].item<int>(), 100);
  EXPECT_EQ(a[101].item<int>(), 99);
  EXPECT_EQ(a[102].item<int>(), -99);
  EXPECT_EQ(a[103].item<int>(), 15);
  EXPECT_EQ(a[104].item<int>(), 9);
  EXPECT_EQ(a[105].item<int>(), -200);
  EXPECT_EQ(a[106].item<int>(), 100);
  EXPECT_EQ(f[0].item<float>(), 50);
}

TEST(SharedMemory, DynamicPartHasTheSizeGivenByTheLaunch) {
  block b(
      "extern \"C\" __global__ void k(float* a, int n) { extern __shared__ float s[]; "
      "s[threadIdx.x] = threadIdx.x; __syncthreads(); a[threadIdx.x] = s[n - 1 - threadIdx.x]; }");
  const at::Tensor a = at::zeros({64});
  b.launch({1}, {64}, {a, std::int64_t{64}}, 64L * 4);
  EXPECT_EQ(a[0].item<float>(), 63);
  EXPECT_FALSE(b.kernels().shared_overrun());
  b.kernels().poison_shared(poison_byte);
}

TEST(SharedMemory, WritesBeyondTheDynamicPartAreDetected) {
  block b(
      "extern \"C\" __global__ void k() { extern __shared__ float s[]; s[threadIdx.x] = 1.0f; }");
  b.launch({1}, {64}, {}, 63L * 4);
  EXPECT_TRUE(b.kernels().shared_overrun());
}

TEST(SharedMemory, HoldsPoisonBeforeTheFirstBlock) {
  block b(
      "extern \"C\" __global__ void k(int* a) { __shared__ float s[8]; extern __shared__ float "
      "d[]; a[threadIdx.x] = isnan(s[threadIdx.x]) && isnan(d[threadIdx.x]); }");
  const at::Tensor a = ints(8);
  b.launch({1}, {8}, {a}, 32);
  EXPECT_EQ(a.sum().item<std::int64_t>(), 8);
}

TEST(Fibers, ManyBlocksOfTheLargestSizeSynchroniseWithoutInterference) {
  block b(
      "extern \"C\" __global__ void k(int* a) { __shared__ int turn; if (threadIdx.x == 0) turn = "
      "0; __syncthreads(); for (int i = 0; i < 20; ++i) { if (threadIdx.x == i * 51) turn += i; "
      "__syncthreads(); } if (threadIdx.x == 1023) a[blockIdx.x] = turn; }");
  const at::Tensor a = ints(6);
  b.launch({6}, {1024}, {a});
  EXPECT_TRUE(at::equal(a, at::full_like(a, 190)));
}

TEST(Fibers, ADeadlockIsAnErrorAndTheNextLaunchSucceeds) {
  block b(
      "extern \"C\" __global__ void k(int* a, bool wrong) { if (wrong && threadIdx.x < 16) "
      "__shfl_sync(0xffffffff, 1, 0); else if (wrong) while (a[0] == 0) __syncthreads(); "
      "__syncthreads(); a[threadIdx.x] = 7; }");
  const at::Tensor a = ints(32);
  try {
    b.launch({1}, {32}, {a, true});
    FAIL() << "the launch should have ended with an error";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("wait for each other in vain"));
  }
  b.launch({1}, {32}, {a, false});
  EXPECT_EQ(a.sum().item<std::int64_t>(), 32 * 7);
}

}  // namespace
}  // namespace hone
