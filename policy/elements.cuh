// What the policy's own kernels share. ELEMENT is the type of its weights: __nv_bfloat16, __half or
// float.
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
