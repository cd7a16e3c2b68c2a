// Definitions that the policy's kernels share. ELEMENT is the type of its weights: __nv_bfloat16,
// __half or float.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using element = ELEMENT;

#define infinity __int_as_float(0x7f800000)

__device__ inline float widen(element x) { return static_cast<float>(x); }
__device__ inline element narrow(float x) { return static_cast<element>(x); }

// Eight elements, which are loaded and stored at once.
struct alignas(16) eight {
  element at[8];
};

__device__ inline eight load(const element* from) { return *reinterpret_cast<const eight*>(from); }
__device__ inline void store(element* to, const eight& x) { *reinterpret_cast<eight*>(to) = x; }

// silu(gate) up, where silu is rounded as if it were stored.
__device__ inline element gated_element(element gate, element up) {
  const float x = widen(gate);
  return narrow(widen(narrow(x / (1 + __expf(-x)))) * widen(up));
}

template <class Combine>
__device__ float over_warp(float x, Combine combine) {
  for (int mask = 16; mask > 0; mask /= 2) x = combine(x, __shfl_xor_sync(~0U, x, mask));
  return x;
}

__device__ inline float add(float a, float b) { return a + b; }
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }

// Combines a value of every thread of a block of `threads`.
template <int threads, class Combine>
__device__ float over_block(float x, Combine combine) {
  __shared__ float of_warp[threads / 32];
  x = over_warp(x, combine);
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = of_warp[0];
  for (int i = 1; i < threads / 32; ++i) x = combine(x, of_warp[i]);
  return x;
}
