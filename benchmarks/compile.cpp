// How long a cuda block takes from source text to a loaded kernel, for sm_90a: bare, and with CUDA's headers for half types and
// cooperative groups, each block different from all others. Without a GPU, the loading is left out and the numbers say so. And how long NVRTC alone
// takes for the bare ones, over and over in one process: what no care around it could get below.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include "benchmarks/report.hpp"
#include "evaluation/compile/cuda_compiler.hpp"
#include "evaluation/compile/nvrtc/library.hpp"
#include "evaluation/cuda/driver.hpp"

namespace hone::benchmark {
namespace {

constexpr auto compile_limit = std::chrono::seconds(60);

std::string bare_block(int i) {
  return "extern \"C\" __global__ void k(const float* x, const float* w, float* y, int n, int m) {\n  __shared__ float partial[256];\n  const int row = blockIdx.x;\n  float sum = 0.0f;\n"
         "  for (int j = threadIdx.x; j < m; j += blockDim.x) sum += x[row * m + j] * w[j] * " + std::to_string(i) + ".5f;\n  partial[threadIdx.x] = sum;\n  __syncthreads();\n"
         "  for (int s = blockDim.x / 2; s > 0; s /= 2) {\n    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];\n    __syncthreads();\n  }\n  if (threadIdx.x == 0 && row < n) y[row] = partial[0];\n}\n";
}

std::string block_with_headers(int i) {
  return "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
         "extern \"C\" __global__ void k(const __half2* x, const __nv_bfloat16* w, float* y, int n) {\n  const auto block = cg::this_thread_block();\n  const auto warp = cg::tiled_partition<32>(block);\n"
         "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  float v = 0.0f;\n  if (i < n) {\n    const float2 pair = __half22float2(x[i]);\n    v = (pair.x + pair.y) * __bfloat162float(w[i]) + " + std::to_string(i) + ".25f;\n  }\n"
         "  for (int s = warp.size() / 2; s > 0; s /= 2) v += warp.shfl_down(v, s);\n  if (warp.thread_rank() == 0 && i < n) y[i / 32] = v;\n}\n";
}

// The first GPU with a context on this thread, or nothing.
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
  void load(const compiled_block& block) const {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    driver_->check(driver_->cuModuleLoadData(&module, block.code.data()), "loading a module");
    driver_->check(driver_->cuModuleGetFunction(&function, module, block.kernels.at(0).symbol.c_str()), "finding a kernel");
    driver_->check(driver_->cuModuleUnload(module), "unloading a module");
  }

 private:
  const cuda_driver* driver_ = nullptr;
};

void measure(const char* name, std::string (*block)(int), int count, cuda_compiler& compiler, const gpu& on) {
  std::vector<double> whole;
  std::vector<double> loading;
  for (int i = -1; i < count; ++i) {
    const stopwatch watch;
    const auto result = compiler.compile(block(i + 2), {"k"}, {}, "sm_90a", compile_limit);
    if (const auto* failed = std::get_if<compile_failure>(&result)) throw std::runtime_error(failed->message);
    const double compiled = watch.seconds();
    if (on.is_there()) on.load(std::get<compiled_block>(result));
    if (i < 0) {
      report(std::string("compile.") + name + "_first", watch.seconds() * 1e3, "ms");  // headers are precompiled with it
      continue;
    }
    whole.push_back(watch.seconds() * 1e3);
    loading.push_back((watch.seconds() - compiled) * 1e3);
  }
  report(std::string("compile.") + name + (on.is_there() ? "_loaded_p50" : "_p50_without_loading"), median(whole), "ms");
  report(std::string("compile.") + name + (on.is_there() ? "_loaded_p95" : "_p95_without_loading"), quantile(whole, 0.95), "ms");
  if (on.is_there()) report(std::string("compile.") + name + "_loading_p50", median(loading), "ms");
}

void measure_alone(int count) {
  const nvrtc_library nvrtc;
  std::vector<double> ms;
  for (int i = -1; i < count; ++i) {
    const stopwatch watch;
    if (const auto made = nvrtc.compile(bare_block(i + 2), {"-arch=sm_90a", "--minimal"}, {"k"}); !made.compiled) throw std::runtime_error(made.log);
    if (i >= 0) ms.push_back(watch.seconds() * 1e3);
  }
  report("compile.bare_nvrtc_alone_p50", median(ms), "ms");
}

int run(int count) {
  const stopwatch watch;
  cuda_compiler compiler;
  report("compile.start", watch.seconds() * 1e3, "ms");
  const gpu on;
  measure("bare", bare_block, count, compiler, on);
  measure("headers", block_with_headers, count, compiler, on);
  measure_alone(count);
  return 0;
}

}  // namespace
}  // namespace hone::benchmark

int main(int argc, char** argv) {
  try {
    return hone::benchmark::run(argc > 1 ? std::atoi(argv[1]) : 60);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "compile_benchmark: %s\n", e.what());
    return 1;
  }
}
