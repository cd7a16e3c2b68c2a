// The judge's own device code. It draws the contents of inputs and compares outputs in the GPU
// memory that they lie in. own_kernels.cpp joins the files of this folder to two texts that begin
// with this file, and NVRTC compiles them when a CUDA device starts. gpu_context.cpp launches the
// kernels.
//
// This file: element types, random bits, and access to elements of any type.

typedef unsigned long long u64;

// The values of hone::dtype and initializer::kind.
enum dtypes { float32, float16, bfloat16, float64, int32, int64, boolean };
enum numbers { normal, uniform, integers, constant, permutation, coin };

// The contents that a tensor is filled with; gpu_drawing in gpu_context.hpp has the same layout.
// Equal (seed, tensor) give equal contents at any address.
struct drawing {
  u64 seed;
  u64 n;        // number of elements
  double a, b;  // of the initializer: mean and standard deviation, low and high, or value
  u64 row;      // elements of a row, each of which is a permutation
  int tensor;   // number of the tensor
  int type;     // dtypes
  int of;       // numbers
  int reserved;
};

// Philox 4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
__device__ uint4 philox(u64 counter, u64 seed, unsigned stream) {
  uint4 c = make_uint4((unsigned)counter, (unsigned)(counter >> 32), stream, 0u);
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
    const unsigned h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
    c = make_uint4(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// Returns a number uniform over [0, 1), of 24 bits.
__device__ float unit(unsigned bits) { return (bits >> 8) * 5.9604644775390625e-8f; }
// Returns two normal numbers, by the Box-Muller transform.
__device__ float2 normals(unsigned x, unsigned y) {
  const float radius = sqrtf(-2.0f * logf(((x >> 8) + 1) * 5.9604644775390625e-8f));  // (0, 1]
  float s, c;
  sincospif(2.0f * unit(y), &s, &c);
  return make_float2(radius * c, radius * s);
}

__device__ unsigned short to_half(float x) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
__device__ unsigned short to_bfloat16(float x) {
  unsigned short h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
__device__ float from_half(unsigned short h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
__device__ float from_bfloat16(unsigned short h) { return __uint_as_float((unsigned)h << 16); }

__device__ void store(void* to, int type, u64 i, double x) {
  switch (type) {
    case float32:
      ((float*)to)[i] = (float)x;
      break;
    case float16:
      ((unsigned short*)to)[i] = to_half((float)x);
      break;
    case bfloat16:
      ((unsigned short*)to)[i] = to_bfloat16((float)x);
      break;
    case float64:
      ((double*)to)[i] = x;
      break;
    case int32:
      ((int*)to)[i] = (int)x;
      break;
    case int64:
      ((long long*)to)[i] = (long long)x;
      break;
    default:
      ((unsigned char*)to)[i] = x != 0;
      break;
  }
}
__device__ void store_integer(void* to, int type, u64 i, long long x) {
  if (type == int64)
    ((long long*)to)[i] = x;
  else if (type == int32)
    ((int*)to)[i] = (int)x;
  else
    store(to, type, i, (double)x);
}
__device__ double load(const void* from, int type, u64 i) {
  switch (type) {
    case float32:
      return ((const float*)from)[i];
    case float16:
      return from_half(((const unsigned short*)from)[i]);
    case bfloat16:
      return from_bfloat16(((const unsigned short*)from)[i]);
    case float64:
      return ((const double*)from)[i];
    case int32:
      return ((const int*)from)[i];
    case int64:
      return (double)((const long long*)from)[i];
    default:
      return ((const unsigned char*)from)[i];
  }
}
__device__ int bytes_of(int type) {
  return type == float64 || type == int64   ? 8
         : type == float32 || type == int32 ? 4
         : type == boolean                  ? 1
                                            : 2;
}
