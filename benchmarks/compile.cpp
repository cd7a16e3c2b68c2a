// Measures how long a cuda block takes from source text to a loaded kernel, for sm_90a:
//   compile_benchmark [BLOCKS [PAUSE_MS]]
// Compiles BLOCKS blocks (default 60) of each of two kinds: bare, and with CUDA's headers for half
// types and cooperative groups. Every block differs from all others. PAUSE_MS (default 0) is a
// pause before each block. Without a GPU the blocks are not loaded, and the names of the numbers
// say so. Also compiles bare blocks by NVRTC alone, one after another in this process and in turns
// with the others, to show the cost of the isolation around NVRTC.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/report.hpp"
#include "cuda/cuda_driver.hpp"
#include "cuda/nvrtc_library.hpp"
#include "evaluation/compile/cuda/cuda_compiler.hpp"

namespace hone::benchmark {
namespace {

constexpr auto compile_limit = std::chrono::seconds(60);

std::string bare_block(int i) {
  return "extern \"C\" __global__ void k(const float* x, const float* w, float* y, int n, int m) "
         "{\n  __shared__ float partial[256];\n  const int row = blockIdx.x;\n  float sum = 0.0f;\n"
         "  for (int j = threadIdx.x; j < m; j += blockDim.x) sum += x[row * m + j] * w[j] * " +
         std::to_string(i) +
         ".5f;\n  partial[threadIdx.x] = sum;\n  __syncthreads();\n"
         "  for (int s = blockDim.x / 2; s > 0; s /= 2) {\n    if (threadIdx.x < s) "
         "partial[threadIdx.x] += partial[threadIdx.x + s];\n    __syncthreads();\n  }\n  if "
         "(threadIdx.x == 0 && row < n) y[row] = partial[0];\n}\n";
}

std::string block_with_headers(int i) {
  return "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include "
         "<cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
         "extern \"C\" __global__ void k(const __half2* x, const __nv_bfloat16* w, float* y, int "
         "n) {\n  const auto block = cg::this_thread_block();\n  const auto warp = "
         "cg::tiled_partition<32>(block);\n"
         "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  float v = 0.0f;\n  if (i < n) "
         "{\n    const float2 pair = __half22float2(x[i]);\n    v = (pair.x + pair.y) * "
         "__bfloat162float(w[i]) + " +
         std::to_string(i) +
         ".25f;\n  }\n"
         "  for (int s = warp.size() / 2; s > 0; s /= 2) v += warp.shfl_down(v, s);\n  if "
         "(warp.thread_rank() == 0 && i < n) y[i / 32] = v;\n}\n";
}

// Makes the primary context of the first GPU current on the constructing thread and loads compiled
// blocks there. Without a driver is_there() is false and load() must not be called. Throws
// cuda_error if a driver is there but gives no context.
class gpu {
 public:
  gpu() {
    const auto* found = std::get_if<cuda_driver>(&cuda_driver::load());
    if (found == nullptr) return;
    driver_ = found;
    CUdevice device = 0;
    CUcontext context = nullptr;
    found->check(found->cuDeviceGet(&device, 0), "finding a GPU");
    found->check(found->cuDevicePrimaryCtxRetain(&context, device), "making a context");
    found->check(found->cuCtxSetCurrent(context), "taking a context");
  }
  bool is_there() const { return driver_ != nullptr; }
  // Loads the block's module, finds its first kernel and unloads the module.
  void load(const compiled_block& block) const {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    driver_->check(driver_->cuModuleLoadData(&module, block.code.data()), "loading a module");
    driver_->check(
        driver_->cuModuleGetFunction(&function, module, block.kernels.at(0).symbol.c_str()),
        "finding a kernel");
    driver_->check(driver_->cuModuleUnload(module), "unloading a module");
  }

 private:
  const cuda_driver* driver_ = nullptr;
};

// Durations in milliseconds.
using series_ms = std::vector<double>;

// Blocks of one kind and how long they took.
struct compiled_blocks {
  const char* name;           // of the kind, within the names of the numbers
  std::string (*block)(int);  // returns the source text of the i-th block
  int made = 0;               // count of blocks compiled so far
  series_ms whole = {};       // from source text to a loaded kernel
  series_ms loading = {};     // the part of `whole` that is loading
};

// Compiles and loads `count` more blocks and appends their times to `all`. Throws
// std::runtime_error with the compiler's message if a block does not compile.
void compile(compiled_blocks& all, int count, std::chrono::milliseconds pause,
             cuda_compiler& compiler, const gpu& on) {
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(pause);
    const stopwatch watch;
    const auto result = compiler.compile(all.block(++all.made), {"k"}, {}, "sm_90a", compile_limit);
    if (!result) throw std::runtime_error(result.error().message);
    const double compiled = watch.seconds();
    if (on.is_there()) on.load(result.value());
    all.whole.push_back(watch.seconds() * 1e3);
    all.loading.push_back((watch.seconds() - compiled) * 1e3);
  }
}

// Compiles `count` bare blocks by NVRTC in this process and appends their times to `all`. Throws
// std::runtime_error with NVRTC's log if a block does not compile.
void compile_alone(const nvrtc_library& nvrtc, series_ms& all, int count,
                   std::chrono::milliseconds pause) {
  for (int i = 0; i < count; ++i) {
    std::this_thread::sleep_for(pause);
    const stopwatch watch;
    if (const auto made = nvrtc.compile(bare_block(static_cast<int>(all.size()) + 1),
                                        {"-arch=sm_90a", "--minimal", "--no-cache"}, {"k"});
        !made.compiled)
      throw std::runtime_error(made.log);
    all.push_back(watch.seconds() * 1e3);
  }
}

void tell(const compiled_blocks& all, const gpu& on) {
  const std::string begin = std::string("compile.") + all.name;
  report(begin + (on.is_there() ? "_loaded_p50" : "_p50_without_loading"), median(all.whole), "ms");
  report(begin + (on.is_there() ? "_loaded_p95" : "_p95_without_loading"),
         quantile(all.whole, 0.95), "ms");
  if (on.is_there()) report(begin + "_loading_p50", median(all.loading), "ms");
}

// Compiles the kinds of blocks in turns, `at_a_time` of each, because the speed of a shared machine
// changes over time.
int run(int count, std::chrono::milliseconds pause) {
  constexpr int at_a_time = 25;
  const stopwatch watch;
  cuda_compiler compiler;
  const nvrtc_library nvrtc;
  report("compile.start", watch.seconds() * 1e3, "ms");
  const gpu on;
  compiled_blocks bare{"bare", bare_block};
  compiled_blocks headers{"headers", block_with_headers};
  series_ms alone;
  for (compiled_blocks* all : {&bare, &headers}) {
    // The first block of a kind includes the precompilation of its headers.
    compile(*all, 1, pause, compiler, on);
    report(std::string("compile.") + all->name + "_first", all->whole.back(), "ms");
    all->whole.clear();
    all->loading.clear();
  }
  compile_alone(nvrtc, alone, 1, pause);
  alone.clear();
  for (int made = 0; made < count; made += at_a_time) {
    const int now = std::min(at_a_time, count - made);
    compile(bare, now, pause, compiler, on);
    compile(headers, now, pause, compiler, on);
    compile_alone(nvrtc, alone, now, pause);
  }
  tell(bare, on);
  tell(headers, on);
  report("compile.bare_nvrtc_alone_p50", median(alone), "ms");
  return 0;
}

}  // namespace
}  // namespace hone::benchmark

int main(int argc, char** argv) {
  try {
    return hone::benchmark::run(argc > 1 ? std::atoi(argv[1]) : 60,
                                std::chrono::milliseconds(argc > 2 ? std::atoi(argv[2]) : 0));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "compile_benchmark: %s\n", e.what());
    return 1;
  }
}
