#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/cuda_driver.hpp"
#include "cuda/gpus.hpp"
#include "evaluation/compile/compiled_block.hpp"
#include "evaluation/judge/comparison.hpp"
#include "evaluation/judge/variation.hpp"
#include "evaluation/program/arena_layout.hpp"
#include "evaluation/program/tensors.hpp"

namespace hone {

// GPU memory with one owner, which frees it.
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

// An event that other processes' work may wait for. It holds no time.
class gpu_event {
 public:
  explicit gpu_event(const cuda_driver& driver);  // throws cuda_error
  ~gpu_event();
  gpu_event(const gpu_event&) = delete;
  gpu_event& operator=(const gpu_event&) = delete;

  CUevent at() const { return event_; }
  // Returns the CUipcEventHandle, as bytes.
  const std::string& handle() const { return handle_; }

 private:
  const cuda_driver* driver_;
  CUevent event_ = nullptr;
  std::string handle_;
};

// The contents that a tensor is filled with. Must have the layout of `drawing` in
// judge_kernels/elements.cuh.
struct gpu_drawing {
  std::uint64_t seed = 0;
  std::uint64_t n = 0;      // number of elements
  double a = 0;             // first argument of the initializer
  double b = 1;             // second argument of the initializer
  std::uint64_t row = 1;    // elements of the last dimension
  std::int32_t tensor = 0;  // number of the tensor: inputs first, then parameters
  std::int32_t type = 0;    // dtype
  std::int32_t of = 0;      // initializer::kind
  std::int32_t reserved = 0;
};

// A drawing and the memory that it fills. Must have the layout of `placed` in
// judge_kernels/drawing.cuh.
struct gpu_placed_drawing {
  CUdeviceptr to = 0;
  gpu_drawing what;
};

// The runs of a reference for one output, in GPU memory (evidence.hpp); 0: there is no such run.
struct gpu_runs {
  CUdeviceptr own = 0;
  CUdeviceptr wide = 0;
  CUdeviceptr settled = 0;
  std::vector<CUdeviceptr> noisy{};
  std::vector<CUdeviceptr> alternatives{};
};

// A range of memory in bytes from a base, and the byte that it should hold everywhere. Must have
// the layout of `range` in judge_kernels/memory.cuh.
struct gpu_range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t expected = poison_byte;
};

// The judge's own context, stream and kernels on a GPU. They work in memory that only the judge
// maps and in memory that it shares with programs' processes. All work is ordered on one stream,
// and functions that return a value wait for it. Sizes are in bytes. Functions throw cuda_error.
// Confined to one thread.
class gpu_context {
 public:
  explicit gpu_context(const gpu_facts& facts);
  ~gpu_context();
  gpu_context(const gpu_context&) = delete;
  gpu_context& operator=(const gpu_context&) = delete;

  // Loads the judge's own kernels. Must be called once, before any function that runs a kernel: all
  // but those that allocate, fill, copy and wait. Returns this context.
  gpu_context& load(const std::vector<compiled_block>& kernels);

  gpu_memory allocate(std::uint64_t bytes) const { return gpu_memory(*driver_, bytes); }
  // Replaces a buffer that is too small by an uninitialized one.
  void grow(gpu_memory& memory, std::uint64_t bytes) const;
  // Returns the bytes of the CUipcMemHandle with which another process can map the memory.
  std::string export_handle(const gpu_memory& memory) const;

  void fill(CUdeviceptr at, unsigned char value, std::uint64_t bytes) const;
  void copy(CUdeviceptr to, CUdeviceptr from, std::uint64_t bytes) const;
  // Copy between host and GPU memory, and wait until that is done.
  void upload(CUdeviceptr to, const void* from, std::uint64_t bytes) const;
  void download(void* to, CUdeviceptr from, std::uint64_t bytes) const;
  // Waits until all work on the stream is done.
  void finish() const;
  // Returns an event of this context. It must not outlive the context.
  std::unique_ptr<gpu_event> make_event() const { return std::make_unique<gpu_event>(*driver_); }
  // Records an event after the stream's work so far.
  void record(const gpu_event& event) const;

  // Fill a tensor, or each of several by few launches, with the contents that a drawing describes.
  void draw(CUdeviceptr to, const gpu_drawing& drawing) const {
    draw_all(std::array{gpu_placed_drawing{to, drawing}});
  }
  void draw_all(std::span<const gpu_placed_drawing> drawings) const;
  // Replaces `count` elements that `drawing` has drawn by elements drawn from `seed`, or swaps two
  // elements of a permutation.
  void perturb(CUdeviceptr to, const gpu_drawing& drawing, std::uint64_t seed, int count) const;
  // Changes `n` elements that have been drawn to another distribution. `type`: of the elements.
  void vary(CUdeviceptr at, dtype type, const variation& v) const;
  // Copies the rows of a data file, changed.
  void vary_data(CUdeviceptr to, CUdeviceptr from, dtype type, std::uint64_t n,
                 const variation& v) const;
  // Encrypts memory with a key, or decrypts it again.
  void scramble(CUdeviceptr at, std::uint64_t bytes, std::uint64_t key) const;
  // Copies `n` elements and converts them to another type.
  void convert(CUdeviceptr to, dtype to_type, CUdeviceptr from, dtype from_type,
               std::uint64_t n) const;
  // Copies a strided tensor row-major.
  void gather(CUdeviceptr to, CUdeviceptr from, const tensor_layout& layout,
              const std::vector<std::int64_t>& strides) const;
  // Two ranges of memory, aligned to 16 bytes. Must have the layout of `pair` in
  // judge_kernels/memory.cuh.
  struct range_pair {
    CUdeviceptr a;
    CUdeviceptr b;
    std::uint64_t bytes;
  };
  // Copies range b of each pair to range a, many of them by one launch.
  void copy_all(std::span<const range_pair> pairs) const;
  // Return true if the ranges of a pair, or of each pair, are bitwise equal.
  bool equal(CUdeviceptr a, CUdeviceptr b, std::uint64_t bytes) const {
    return all_equal(std::array{range_pair{a, b, bytes}});
  }
  bool all_equal(std::span<const range_pair> pairs) const;
  // Returns the index of the first range with a byte that is not the expected one; nullopt if there
  // is none.
  std::optional<std::size_t> find_damage(CUdeviceptr base, const std::vector<gpu_range>& ranges);
  // Compare `n` elements with the runs of the reference. Of a floating-point type, the float64 runs
  // are in float64; of an exact type, `wide` has the output's type. Return the index of the first
  // wrong element of an exact type, or the errors of a floating-point type. `known_error`: see
  // scale_of().
  std::optional<std::size_t> find_wrong_element(CUdeviceptr actual, const gpu_runs& expected,
                                                dtype type, std::uint64_t n);
  output_errors measure_floating(CUdeviceptr actual, const gpu_runs& expected, dtype type,
                                 std::uint64_t n, tolerance allowed, double known_error);
  // Returns one element.
  double element(CUdeviceptr from, dtype type, std::uint64_t index) const;

 private:
  struct comparison;
  static comparison comparison_of(CUdeviceptr actual, const gpu_runs& expected, dtype type,
                                  std::uint64_t n);
  CUfunction kernel(const char* name) const { return kernels_.at(name); }
  // Starts a kernel on a grid of that many rows, each of which has at least `threads` threads or
  // fills the GPU.
  void launch(const char* name, std::uint64_t threads, void** arguments,
              std::size_t rows = 1) const;
  // Starts a kernel over pairs of ranges. Its arguments are the pairs and, if it has a second one,
  // flag_.
  void launch_over(const char* name, std::span<const range_pair> pairs) const;
  judging::measures reduced(const char* kernel_name, comparison& with);

  const cuda_driver* driver_;
  CUdevice device_ = 0;
  CUstream stream_ = nullptr;
  std::vector<CUmodule> modules_;  // of the judge's kernels
  unsigned blocks_ = 0;            // number of blocks that fill the GPU
  std::map<std::string, CUfunction, std::less<>> kernels_;
  gpu_memory flag_;     // a result of equal() or find_damage()
  gpu_memory partial_;  // measures by block
  gpu_memory ranges_;   // arguments of find_damage()
};

}  // namespace hone
