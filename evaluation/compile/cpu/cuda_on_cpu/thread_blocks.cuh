// Indices of threads, barriers and fences, and the functions of the sandbox that implement them.

namespace hone {

// Index of a thread or block. The members are signed, unlike CUDA's: indices that are computed from
// them cannot wrap around, which lets g++ vectorize across the threads of
// a block.
struct index3 {
  int x, y, z;
  constexpr operator uint3() const { return {(unsigned)x, (unsigned)y, (unsigned)z}; }
  constexpr operator dim3() const { return dim3((unsigned)x, (unsigned)y, (unsigned)z); }
};

}  // namespace hone

static hone::index3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

namespace hone {

// Functions of the sandbox. The layout must match block_abi::runtime in
// evaluation/sandbox/child/cpu/block_runtime.hpp. `self` is the number of the calling thread in its
// block.
struct runtime {
  void (*block_barrier)(unsigned self);
  // A barrier that returns the number of threads whose predicate was not zero.
  unsigned (*block_count)(unsigned self, unsigned predicate);
  // A barrier of the lanes in `mask` that returns the values of all 32 lanes.
  const uint64_t* (*warp_gather)(unsigned self, unsigned mask, uint64_t value);
  // Called when the launching thread has returned from the kernel; runs all others to their ends.
  void (*finish_block)(unsigned self);
  void (*fail)(const char* message);  // does not return
};

static const runtime* host;
static bool diverted;  // true if threads of the current block run in fibers

static inline unsigned self() {
  return (unsigned)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

template <class T>
static inline uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
static inline T from_bits(uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// While a thread waits, other threads run and write the same threadIdx. Functions that wait restore
// threadIdx afterwards.
static inline const uint64_t* gather(unsigned mask, uint64_t value) {
  const hone::index3 here = threadIdx;
  diverted = true;
  const uint64_t* lanes = host->warp_gather(self(), mask, value);
  threadIdx = here;
  return lanes;
}
static inline unsigned lane() { return self() % 32; }

}  // namespace hone

static inline void __syncthreads() {
  const hone::index3 here = threadIdx;
  hone::diverted = true;
  hone::host->block_barrier(hone::self());
  threadIdx = here;
}
static inline int __syncthreads_count(int predicate) {
  const hone::index3 here = threadIdx;
  hone::diverted = true;
  const unsigned count = hone::host->block_count(hone::self(), predicate != 0);
  threadIdx = here;
  return (int)count;
}
static inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
static inline int __syncthreads_and(int predicate) {
  return __syncthreads_count(predicate == 0) == 0;
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
