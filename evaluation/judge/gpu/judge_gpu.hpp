#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/compile/compile_result.hpp"
#include "evaluation/cuda/driver.hpp"
#include "evaluation/cuda/gpus.hpp"
#include "evaluation/devices/values.hpp"
#include "evaluation/judge/comparison.hpp"

namespace hone {

// Device memory with one owner.
class gpu_memory {
 public:
  gpu_memory() = default;
  gpu_memory(const cuda_driver& driver, std::uint64_t bytes);  // throws cuda_error
  gpu_memory(gpu_memory&& other) noexcept
      : driver_(other.driver_),
        at_(std::exchange(other.at_, 0)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  gpu_memory& operator=(gpu_memory&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~gpu_memory();

  CUdeviceptr at() const { return at_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const cuda_driver* driver_ = nullptr;
  CUdeviceptr at_ = 0;
  std::uint64_t bytes_ = 0;
};

// As judge_kernels.cuh has them.
struct gpu_drawing {
  std::uint64_t seed = 0;
  std::uint64_t n = 0;
  double a = 0;
  double b = 1;
  std::uint64_t row = 1;
  std::int32_t tensor = 0;
  std::int32_t type = 0;  // dtype
  std::int32_t of = 0;    // initializer::kind
  std::int32_t how = 0;   // distribution
};

struct gpu_stretch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The judge's own context, stream and kernels on a GPU: what it does with memory that no
// candidate's process can map, or that it shares with one. Everything is ordered on one stream;
// what returns a value waits. Throws cuda_error. One thread.
class judge_gpu {
 public:
  // `kernels`: judge_kernels.cuh, compiled for this GPU.
  judge_gpu(const gpu_facts& facts, const compiled_block& kernels);
  ~judge_gpu();
  judge_gpu(const judge_gpu&) = delete;
  judge_gpu& operator=(const judge_gpu&) = delete;

  static std::string kernel_source();
  static const std::vector<std::string>& kernel_names();

  gpu_memory allocate(std::uint64_t bytes) const { return gpu_memory(*driver_, bytes); }
  // Grows a buffer where it is too small; contents are lost then.
  void grow(gpu_memory& memory, std::uint64_t bytes) const;
  std::string export_handle(const gpu_memory& memory) const;  // for other processes

  void fill(CUdeviceptr at, unsigned char value, std::uint64_t bytes) const;
  void copy(CUdeviceptr to, CUdeviceptr from, std::uint64_t bytes) const;
  void upload(CUdeviceptr to, const void* from, std::uint64_t bytes) const;
  void download(void* to, CUdeviceptr from, std::uint64_t bytes) const;
  void finish() const;

  void draw(CUdeviceptr to, const gpu_drawing& drawing) const;
  // 500 with a random sign, or mirrored with the other one, to so many elements that `drawing` has
  // drawn.
  void add_outliers(CUdeviceptr to, const gpu_drawing& drawing, std::uint64_t count,
                    bool mirrored) const;
  void twist(CUdeviceptr to, const gpu_drawing& drawing, std::uint64_t seed, int count) const;
  // Unreadable without the key, or readable again.
  void scramble(CUdeviceptr at, std::uint64_t bytes, std::uint64_t key) const;
  void convert(CUdeviceptr to, dtype to_type, CUdeviceptr from, dtype from_type,
               std::uint64_t n) const;
  // A strided tensor row-major.
  void gather(CUdeviceptr to, CUdeviceptr from, const tensor_layout& layout,
              const std::vector<std::int64_t>& strides) const;
  bool equal(CUdeviceptr a, CUdeviceptr b, std::uint64_t bytes) const;
  // The first stretch that no longer holds poison, in offsets from `base`.
  std::optional<std::size_t> find_damage(CUdeviceptr base,
                                         const std::vector<gpu_stretch>& stretches);
  // Against the reference's own run and, where `wide` is not 0, its float64 run (of the output's
  // type where that is exact): the first wrong element, or all that the rule asks for.
  std::optional<std::size_t> find_wrong_element(CUdeviceptr actual, CUdeviceptr own,
                                                CUdeviceptr wide, dtype type, std::uint64_t n);
  output_errors measure_floating(CUdeviceptr actual, CUdeviceptr own, CUdeviceptr wide, dtype type,
                                 std::uint64_t n, tolerance allowed);
  // One element, as a number.
  double element(CUdeviceptr from, dtype type, std::uint64_t index) const;

 private:
  struct comparison;
  struct measures;
  CUfunction kernel(const char* name) const { return kernels_.at(name); }
  void launch(const char* name, std::uint64_t threads, void** arguments) const;
  measures reduced(const char* kernel_name, comparison& with);

  const cuda_driver* driver_;
  CUdevice device_ = 0;
  CUstream stream_ = nullptr;
  CUmodule module_ = nullptr;
  unsigned blocks_ = 0;  // a full GPU
  std::map<std::string, CUfunction, std::less<>> kernels_;
  gpu_memory flag_;
  gpu_memory partial_;
  gpu_memory stretches_;
};

}  // namespace hone
