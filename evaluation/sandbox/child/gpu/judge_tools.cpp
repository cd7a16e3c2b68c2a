#include "evaluation/sandbox/child/gpu/judge_tools.hpp"

#include <algorithm>
#include <array>

namespace hone {
namespace {

constexpr unsigned spoil_threads = 1024;
constexpr unsigned scramble_threads = 256;
constexpr unsigned blocks_per_multiprocessor = 8;

}  // namespace

void judge_tools::load(const cuda_driver& driver, schema::Attach::Reader request) {
  driver_ = &driver;
  CUmodule module = nullptr;
  driver.check(driver.cuModuleLoadData(&module, request.getTools().begin()),
               "loading the judge's kernels");
  driver.check(driver.cuModuleGetFunction(&spoil_, module, request.getSpoilSymbol().cStr()),
               "finding the judge's kernels");
  driver.check(driver.cuModuleGetFunction(&scramble_, module, request.getScrambleSymbol().cStr()),
               "finding the judge's kernels");
  CUdevice device = 0;
  driver.check(driver.cuDeviceGet(&device, 0), "finding the GPU");
  shared_bytes_ = static_cast<unsigned>(
      driver.attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  multiprocessors_ =
      static_cast<unsigned>(driver.attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  driver.check(driver.cuFuncSetAttribute(spoil_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         static_cast<int>(shared_bytes_)),
               "asking for shared memory");
}

void judge_tools::spoil_shared_memory(CUstream stream) const {
  driver_->check(driver_->cuLaunchKernel(spoil_, 2 * multiprocessors_, 1, 1, spoil_threads, 1, 1,
                                         shared_bytes_, stream, nullptr, nullptr),
                 "spoiling shared memory");
}

void judge_tools::make_readable(CUdeviceptr at, std::uint64_t bytes, std::uint64_t key,
                                CUstream stream) const {
  if (bytes == 0) return;
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::uint64_t>(bytes / (16UL * scramble_threads), 1,
                                std::uint64_t{blocks_per_multiprocessor} * multiprocessors_));
  std::array<void*, 3> arguments = {&at, &bytes, &key};
  driver_->check(driver_->cuLaunchKernel(scramble_, blocks, 1, 1, scramble_threads, 1, 1, 0, stream,
                                         arguments.data(), nullptr),
                 "making inputs readable");
}

}  // namespace hone
