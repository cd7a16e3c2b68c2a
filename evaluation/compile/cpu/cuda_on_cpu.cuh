// CUDA C++ for g++: what a cuda block may use on the CPU device, in front of the block itself.
// Nothing is included, so the preprocessor needs no file at all; the text must compile with
// -nostdinc.
//
// A launch runs block after block, thread after thread, on one operating-system thread. Threads of
// a block that meet at a barrier or in a warp operation become fibers of the sandbox's block
// runtime (hone::runtime below, evaluation/sandbox/ block_runtime.hpp is its other side); kernels
// that never meet stay a plain loop that the compiler may inline and vectorise.

// __global__ and __shared__ survive the preprocessor: the compiler reads kernels off the first and
// rewrites the second.
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) alignas(n)
#define __cdecl
#define __CUDACC__ 1
#define __NVCC__ 1
#define __HONE_CPU__ 1

typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __SIZE_TYPE__ size_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define INT8_MAX __INT8_MAX__
#define INT16_MAX __INT16_MAX__
#define INT32_MAX __INT32_MAX__
#define INT64_MAX __INT64_MAX__
#define INT8_MIN (-INT8_MAX - 1)
#define INT16_MIN (-INT16_MAX - 1)
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
#define UINT8_MAX __UINT8_MAX__
#define UINT16_MAX __UINT16_MAX__
#define UINT32_MAX __UINT32_MAX__
#define UINT64_MAX __UINT64_MAX__
#define INT_MAX __INT_MAX__
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX (INT_MAX * 2U + 1U)
#define LLONG_MAX __LONG_LONG_MAX__
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define SIZE_MAX __SIZE_MAX__
#define CHAR_BIT __CHAR_BIT__
#define NULL nullptr

#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define CUDART_MAX_NORMAL_F __FLT_MAX__
#define CUDART_ZERO_F 0.0f
#define CUDART_ONE_F 1.0f
#define CUDART_NEG_ZERO_F (-0.0f)
#define CUDART_PI_F 3.141592654f
#define CUDART_PIO2_F 1.570796327f
#define CUDART_PIO4_F 0.785398163f
#define CUDART_LN2_F 0.693147181f
#define CUDART_L2E_F 1.442695041f
#define CUDART_LG2E_F 1.442695041f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_SQRT_HALF_F 0.707106781f
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_LN2 6.9314718055994529e-1
#define CUDART_SQRT_TWO 1.4142135623730951e+0

// ---- vector types

#define HONE_VECTORS(type, name, a2, a4)                                             \
  struct name##1 {                                                                   \
    type x;                                                                          \
  };                                                                                 \
  struct alignas(a2) name##2 {                                                       \
    type x, y;                                                                       \
  };                                                                                 \
  struct name##3 {                                                                   \
    type x, y, z;                                                                    \
  };                                                                                 \
  struct alignas(a4) name##4 {                                                       \
    type x, y, z, w;                                                                 \
  };                                                                                 \
  static inline name##1 make_##name##1(type x) { return {x}; }                       \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
HONE_VECTORS(signed char, char, 2, 4)
HONE_VECTORS(unsigned char, uchar, 2, 4)
HONE_VECTORS(short, short, 4, 8)
HONE_VECTORS(unsigned short, ushort, 4, 8)
HONE_VECTORS(int, int, 8, 16)
HONE_VECTORS(unsigned int, uint, 8, 16)
HONE_VECTORS(long, long, 16, 16)
HONE_VECTORS(unsigned long, ulong, 16, 16)
HONE_VECTORS(long long, longlong, 16, 16)
HONE_VECTORS(unsigned long long, ulonglong, 16, 16)
HONE_VECTORS(float, float, 8, 16)
HONE_VECTORS(double, double, 16, 16)
#undef HONE_VECTORS

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
      : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

// ---- where a thread is

namespace hone {

// Signed, unlike CUDA's: indices computed from them cannot wrap, which lets g++ vectorise across
// the threads of a block (doc/decisions/001-kernels-on-the-cpu.md).
struct index3 {
  int x, y, z;
  constexpr operator uint3() const { return {(unsigned)x, (unsigned)y, (unsigned)z}; }
  constexpr operator dim3() const { return dim3((unsigned)x, (unsigned)y, (unsigned)z); }
};

}  // namespace hone

static hone::index3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

namespace hone {

struct runtime {
  void (*block_barrier)(unsigned self);
  unsigned (*block_count)(unsigned self,
                          unsigned predicate);  // barrier; how many threads came with a true one
  const uint64_t* (*warp_gather)(unsigned self, unsigned mask,
                                 uint64_t value);  // the 32 lanes' values
  void (*finish_block)(
      unsigned self);  // the launching thread is done with its own: runs all others to their ends
  void (*fail)(const char* message);  // does not return
};

static const runtime* host;
static bool diverted;  // threads of the current block live in fibers

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

// While a thread waits, others run on the same variables: its own place is put back afterwards.
static inline const uint64_t* gather(unsigned mask, uint64_t value) {
  const hone::index3 here = threadIdx;
  diverted = true;
  const uint64_t* lanes = host->warp_gather(self(), mask, value);
  threadIdx = here;
  return lanes;
}
static inline unsigned lane() { return self() % 32; }

}  // namespace hone

// ---- synchronisation

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
static inline void __syncwarp(unsigned mask = 0xffffffffu) { hone::gather(mask, 0); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline unsigned __activemask() { return 0xffffffffu; }

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned lane = hone::lane();
  const uint64_t* lanes = hone::gather(mask, hone::to_bits(value));
  return hone::from_bits<T>(
      lanes[(lane & ~(unsigned)(width - 1)) + ((unsigned)source & (unsigned)(width - 1))]);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = hone::lane(), first = lane & ~(unsigned)(width - 1);
  const uint64_t* lanes = hone::gather(mask, hone::to_bits(value));
  return lane - first >= delta ? hone::from_bits<T>(lanes[lane - delta]) : value;
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = hone::lane(), first = lane & ~(unsigned)(width - 1);
  const uint64_t* lanes = hone::gather(mask, hone::to_bits(value));
  return lane - first + delta < (unsigned)width ? hone::from_bits<T>(lanes[lane + delta]) : value;
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const unsigned lane = hone::lane(), other = lane ^ (unsigned)lane_mask;
  const uint64_t* lanes = hone::gather(mask, hone::to_bits(value));
  return other < (lane & ~(unsigned)(width - 1)) + (unsigned)width
             ? hone::from_bits<T>(lanes[other & 31u])
             : value;
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const uint64_t* lanes = hone::gather(mask, predicate != 0);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i) bits |= (mask >> i & 1u) && lanes[i] ? 1u << i : 0u;
  return bits;
}
static inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate == 0) == 0;
}
template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value) {
  const uint64_t bits = hone::to_bits(value);
  const uint64_t* lanes = hone::gather(mask, bits);
  unsigned same = 0;
  for (unsigned i = 0; i < 32; ++i) same |= (mask >> i & 1u) && lanes[i] == bits ? 1u << i : 0u;
  return same;
}
namespace hone {
template <class T, class Combine>
static inline T reduce(unsigned mask, T value, Combine combine) {
  const uint64_t* lanes = gather(mask, to_bits(value));
  bool any = false;
  T total{};
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1u)) continue;
    total = any ? combine(total, from_bits<T>(lanes[i])) : from_bits<T>(lanes[i]);
    any = true;
  }
  return total;
}
}  // namespace hone
#define HONE_REDUCE(name, type, expression)                                              \
  static inline type __reduce_##name##_sync(unsigned mask, type value) {                 \
    return hone::reduce(mask, value, [](type a, type b) -> type { return expression; }); \
  }
HONE_REDUCE(add, unsigned, a + b)
HONE_REDUCE(min, unsigned, a < b ? a : b)
HONE_REDUCE(max, unsigned, a > b ? a : b)
HONE_REDUCE(and, unsigned, a& b)
HONE_REDUCE(or, unsigned, a | b)
HONE_REDUCE(xor, unsigned, a ^ b)
HONE_REDUCE(add, int, a + b)
HONE_REDUCE(min, int, a < b ? a : b)
HONE_REDUCE(max, int, a > b ? a : b)
#undef HONE_REDUCE

// ---- atomics: one operating-system thread, so nothing can come between

#define HONE_ATOMIC(name, expression)                            \
  template <class T, class U>                                    \
  static inline T atomic##name(T* address, U operand) {          \
    const T old = *address, value = (T)operand;                  \
    *address = expression;                                       \
    return old;                                                  \
  }                                                              \
  template <class T, class U>                                    \
  static inline T atomic##name##_block(T* address, U operand) {  \
    return atomic##name(address, operand);                       \
  }                                                              \
  template <class T, class U>                                    \
  static inline T atomic##name##_system(T* address, U operand) { \
    return atomic##name(address, operand);                       \
  }
HONE_ATOMIC(Add, old + value)
HONE_ATOMIC(Sub, old - value)
HONE_ATOMIC(Exch, value)
HONE_ATOMIC(Min, value < old ? value : old)
HONE_ATOMIC(Max, value > old ? value : old)
HONE_ATOMIC(And, old& value)
HONE_ATOMIC(Or, old | value)
HONE_ATOMIC(Xor, old ^ value)
HONE_ATOMIC(Inc, old >= value ? 0 : old + 1)
HONE_ATOMIC(Dec, old == 0 || old > value ? value : old - 1)
#undef HONE_ATOMIC
template <class T, class U, class V>
static inline T atomicCAS(T* address, U compare, V value) {
  const T old = *address;
  if (old == (T)compare) *address = (T)value;
  return old;
}

// ---- mathematics

// With fast_math g++ may call glibc's vector versions (libmvec) in loops.
#ifdef __FAST_MATH__
#define HONE_VECTOR_MATH __attribute__((simd("notinbranch")))
#else
#define HONE_VECTOR_MATH
#endif
extern "C" HONE_VECTOR_MATH float expf(float) noexcept;
extern "C" HONE_VECTOR_MATH float logf(float) noexcept;
extern "C" HONE_VECTOR_MATH float sinf(float) noexcept;
extern "C" HONE_VECTOR_MATH float cosf(float) noexcept;
extern "C" HONE_VECTOR_MATH float tanhf(float) noexcept;
extern "C" HONE_VECTOR_MATH float erff(float) noexcept;
extern "C" HONE_VECTOR_MATH float powf(float, float) noexcept;
#define HONE_MATH1(name)                    \
  extern "C" float name##f(float) noexcept; \
  extern "C" double name(double) noexcept;  \
  static inline float name(float x) { return name##f(x); }
#define HONE_MATH2(name)                           \
  extern "C" float name##f(float, float) noexcept; \
  extern "C" double name(double, double) noexcept; \
  static inline float name(float x, float y) { return name##f(x, y); }
HONE_MATH1(exp)
HONE_MATH1(exp2)
HONE_MATH1(exp10) HONE_MATH1(expm1) HONE_MATH1(log) HONE_MATH1(log2) HONE_MATH1(log10)
    HONE_MATH1(log1p) HONE_MATH1(sin) HONE_MATH1(cos) HONE_MATH1(tan) HONE_MATH1(asin)
        HONE_MATH1(acos) HONE_MATH1(atan) HONE_MATH1(sinh) HONE_MATH1(cosh) HONE_MATH1(tanh)
            HONE_MATH1(asinh) HONE_MATH1(acosh) HONE_MATH1(atanh) HONE_MATH1(erf) HONE_MATH1(erfc)
                HONE_MATH1(tgamma) HONE_MATH1(lgamma) HONE_MATH1(cbrt) HONE_MATH1(logb)
                    HONE_MATH2(pow) HONE_MATH2(atan2) HONE_MATH2(fmod) HONE_MATH2(hypot)
                        HONE_MATH2(remainder) HONE_MATH2(nextafter)
#undef HONE_MATH1
#undef HONE_MATH2
#define HONE_BUILTIN1(name)                                               \
  static inline float name##f(float x) { return __builtin_##name##f(x); } \
  static inline double name(double x) { return __builtin_##name(x); }     \
  static inline float name(float x) { return __builtin_##name##f(x); }
#define HONE_BUILTIN2(name)                                                           \
  static inline float name##f(float x, float y) { return __builtin_##name##f(x, y); } \
  static inline double name(double x, double y) { return __builtin_##name(x, y); }    \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); }
                            HONE_BUILTIN1(sqrt) HONE_BUILTIN1(fabs) HONE_BUILTIN1(floor)
                                HONE_BUILTIN1(ceil) HONE_BUILTIN1(trunc) HONE_BUILTIN1(rint)
                                    HONE_BUILTIN1(nearbyint) HONE_BUILTIN1(round)
                                        HONE_BUILTIN2(fmin) HONE_BUILTIN2(fmax)
                                            HONE_BUILTIN2(copysign) HONE_BUILTIN2(fdim)
#undef HONE_BUILTIN1
#undef HONE_BUILTIN2
                                                static inline float fmaf(float x, float y,
                                                                         float z) {
  return __builtin_fmaf(x, y, z);
}
static inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
extern "C" float ldexpf(float, int) noexcept;
extern "C" double ldexp(double, int) noexcept;
static inline float ldexp(float x, int n) { return ldexpf(x, n); }
extern "C" float frexpf(float, int*) noexcept;
extern "C" double frexp(double, int*) noexcept;
extern "C" float modff(float, float*) noexcept;
extern "C" double modf(double, double*) noexcept;
static inline float powf(float x, int n) { return powf(x, (float)n); }
static inline float pow(float x, int n) { return powf(x, (float)n); }
static inline double pow(double x, int n) { return pow(x, (double)n); }
static inline double pow(int x, int n) { return pow((double)x, (double)n); }
#define HONE_OF_INT(name) \
  static inline double name(int x) { return name((double)x); }
HONE_OF_INT(exp)
HONE_OF_INT(log)
HONE_OF_INT(sqrt) HONE_OF_INT(sin) HONE_OF_INT(cos) HONE_OF_INT(floor) HONE_OF_INT(ceil)
    HONE_OF_INT(tanh)
#undef HONE_OF_INT
        static inline float rsqrtf(float x) {
  return 1.0f / __builtin_sqrtf(x);
}
static inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
static inline float sinpif(float x) { return sinf(x * 3.14159265358979f); }
static inline float cospif(float x) { return cosf(x * 3.14159265358979f); }
static inline void sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
static inline void sincos(double x, double* s, double* c) {
  *s = sin(x);
  *c = cos(x);
}
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.707106781f); }
static inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static inline float norm3df(float x, float y, float z) {
  return __builtin_sqrtf(x * x + y * y + z * z);
}
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return __builtin_fabsf(x); }
static inline double abs(double x) { return __builtin_fabs(x); }
static inline long long llabs(long long x) { return x < 0 ? -x : x; }
static inline bool isnan(float x) { return __builtin_isnan(x); }
static inline bool isnan(double x) { return __builtin_isnan(x); }
static inline bool isinf(float x) { return __builtin_isinf(x); }
static inline bool isinf(double x) { return __builtin_isinf(x); }
static inline bool isfinite(float x) { return __builtin_isfinite(x); }
static inline bool isfinite(double x) { return __builtin_isfinite(x); }
static inline bool signbit(float x) { return __builtin_signbit(x); }
static inline bool signbit(double x) { return __builtin_signbit(x); }
static inline long lrintf(float x) { return (long)__builtin_rintf(x); }
static inline long lroundf(float x) { return (long)__builtin_roundf(x); }
static inline long long llrintf(float x) { return (long long)__builtin_rintf(x); }

#define HONE_MINMAX(type)                                                    \
  static inline constexpr type min(type a, type b) { return b < a ? b : a; } \
  static inline constexpr type max(type a, type b) { return a < b ? b : a; }
HONE_MINMAX(int)
HONE_MINMAX(unsigned)
HONE_MINMAX(long) HONE_MINMAX(unsigned long) HONE_MINMAX(long long) HONE_MINMAX(unsigned long long)
#undef HONE_MINMAX
    // As CUDA's: mixed signedness compares unsigned, a NaN loses.
    static inline constexpr unsigned min(int a, unsigned b) {
  return min((unsigned)a, b);
}
static inline constexpr unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
static inline constexpr unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
static inline constexpr unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
static inline constexpr long min(int a, long b) { return min((long)a, b); }
static inline constexpr long min(long a, int b) { return min(a, (long)b); }
static inline constexpr long max(int a, long b) { return max((long)a, b); }
static inline constexpr long max(long a, int b) { return max(a, (long)b); }
static inline constexpr long long min(int a, long long b) { return min((long long)a, b); }
static inline constexpr long long min(long long a, int b) { return min(a, (long long)b); }
static inline constexpr long long max(int a, long long b) { return max((long long)a, b); }
static inline constexpr long long max(long long a, int b) { return max(a, (long long)b); }
static inline float min(float a, float b) { return __builtin_fminf(a, b); }
static inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
static inline double min(double a, double b) { return __builtin_fmin(a, b); }
static inline double max(double a, double b) { return __builtin_fmax(a, b); }
static inline double min(float a, double b) { return __builtin_fmin(a, b); }
static inline double min(double a, float b) { return __builtin_fmin(a, b); }
static inline double max(float a, double b) { return __builtin_fmax(a, b); }
static inline double max(double a, float b) { return __builtin_fmax(a, b); }
static inline int umin(int a, int b) { return (int)min((unsigned)a, (unsigned)b); }
static inline int umax(int a, int b) { return (int)max((unsigned)a, (unsigned)b); }

// ---- intrinsics

static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
#define HONE_ROUNDED(suffix)                                                   \
  static inline float __fadd_##suffix(float x, float y) { return x + y; }      \
  static inline float __fsub_##suffix(float x, float y) { return x - y; }      \
  static inline float __fmul_##suffix(float x, float y) { return x * y; }      \
  static inline float __fdiv_##suffix(float x, float y) { return x / y; }      \
  static inline float __frcp_##suffix(float x) { return 1.0f / x; }            \
  static inline float __fsqrt_##suffix(float x) { return __builtin_sqrtf(x); } \
  static inline float __fmaf_##suffix(float x, float y, float z) {             \
    return __builtin_fmaf(x, y, z);                                            \
  }                                                                            \
  static inline double __dadd_##suffix(double x, double y) { return x + y; }   \
  static inline double __dmul_##suffix(double x, double y) { return x * y; }   \
  static inline double __fma_##suffix(double x, double y, double z) {          \
    return __builtin_fma(x, y, z);                                             \
  }
HONE_ROUNDED(rn)
HONE_ROUNDED(rz)
HONE_ROUNDED(ru) HONE_ROUNDED(rd)
#undef HONE_ROUNDED
    static inline float __frsqrt_rn(float x) {
  return rsqrtf(x);
}
template <class T>
static inline T __ldg(const T* p) {
  return *p;
}
template <class T>
static inline T __ldca(const T* p) {
  return *p;
}
template <class T>
static inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
static inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
static inline T __ldlu(const T* p) {
  return *p;
}
template <class T>
static inline T __ldcv(const T* p) {
  return *p;
}
template <class T>
static inline void __stcg(T* p, T v) {
  *p = v;
}
template <class T>
static inline void __stcs(T* p, T v) {
  *p = v;
}
template <class T>
static inline void __stwb(T* p, T v) {
  *p = v;
}
template <class T>
static inline void __stwt(T* p, T v) {
  *p = v;
}
static inline int __float_as_int(float x) { return hone::from_bits<int>(hone::to_bits(x)); }
static inline unsigned __float_as_uint(float x) {
  return hone::from_bits<unsigned>(hone::to_bits(x));
}
static inline float __int_as_float(int x) { return hone::from_bits<float>(hone::to_bits(x)); }
static inline float __uint_as_float(unsigned x) { return hone::from_bits<float>(hone::to_bits(x)); }
static inline long long __double_as_longlong(double x) {
  return hone::from_bits<long long>(hone::to_bits(x));
}
static inline double __longlong_as_double(long long x) {
  return hone::from_bits<double>(hone::to_bits(x));
}
static inline int __float2int_rn(float x) { return (int)__builtin_rintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline int __float2int_rd(float x) { return (int)__builtin_floorf(x); }
static inline int __float2int_ru(float x) { return (int)__builtin_ceilf(x); }
static inline unsigned __float2uint_rn(float x) { return (unsigned)__builtin_rintf(x); }
static inline unsigned __float2uint_rz(float x) { return (unsigned)x; }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __double2float_rn(double x) { return (float)x; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll((unsigned long long)x);
}
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1u) << (31 - i);
  return r;
}
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __mul24(int a, int b) { return a * b; }
static inline unsigned __umul24(unsigned a, unsigned b) { return a * b; }
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return (unsigned)((((unsigned long long)hi << 32 | lo) << (shift & 31u)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (shift & 31u));
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= (unsigned)(both >> (8 * (selector >> (4 * i) & 7u)) & 0xffu) << (8 * i);
  return result;
}
static inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i)
    c += (int)(signed char)(a >> (8 * i)) * (int)(signed char)(b >> (8 * i));
  return c;
}
static inline void __trap() { __builtin_trap(); }
static inline void __nanosleep(unsigned) {}
static inline long long clock64() { return (long long)__builtin_ia32_rdtsc(); }
static inline int clock() { return (int)__builtin_ia32_rdtsc(); }
template <class... T>
static inline int printf(const char*, T...) {
  return 0;
}
#define assert(condition) ((condition) ? (void)0 : __trap())
extern "C" void* memcpy(void*, const void*, size_t) noexcept;
extern "C" void* memmove(void*, const void*, size_t) noexcept;
extern "C" void* memset(void*, int, size_t) noexcept;
extern "C" int memcmp(const void*, const void*, size_t) noexcept;

// <cmath> and a little of <type_traits>, as kernels use them.
namespace std {
using ::abs;
using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::hypot;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::pow;
using ::round;
using ::signbit;
using ::sin;
using ::sinh;
using ::size_t;
using ::sqrt;
using ::tan;
using ::tanh;
using ::trunc;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
template <class T>
static inline constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
static inline constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
}  // namespace std

// ---- what the sandbox calls

namespace hone {

enum class parameter_kind : unsigned { pointer, integer, floating, boolean, other };

template <class T>
struct traits {
  static constexpr parameter_kind kind = parameter_kind::other;
};
template <class T>
struct traits<T*> {
  static constexpr parameter_kind kind = parameter_kind::pointer;
};
#define HONE_KIND(type, name)                                    \
  template <>                                                    \
  struct traits<type> {                                          \
    static constexpr parameter_kind kind = parameter_kind::name; \
  };
HONE_KIND(bool, boolean)
HONE_KIND(float, floating)
HONE_KIND(double, floating) HONE_KIND(char, integer) HONE_KIND(signed char, integer)
    HONE_KIND(unsigned char, integer) HONE_KIND(short, integer) HONE_KIND(unsigned short, integer)
        HONE_KIND(int, integer) HONE_KIND(unsigned, integer) HONE_KIND(long, integer)
            HONE_KIND(unsigned long, integer) HONE_KIND(long long, integer)
                HONE_KIND(unsigned long long, integer)
#undef HONE_KIND

                    struct parameter {
  unsigned kind, bytes;
};
struct kernel {
  const char* name;
  unsigned parameter_count;
  const parameter* parameters;
  void (*run)(void* const* arguments);  // the whole grid
  void (*run_thread)(void* const* arguments,
                     unsigned self);  // one thread of the current block, on a fiber
};
struct size {
  unsigned x, y, z;
};
struct module {
  unsigned version;
  unsigned kernel_count;
  const kernel* kernels;
  void (*bind)(const runtime* r);
  void (*set_launch)(size grid, size block);
  char* dynamic_shared;
  unsigned dynamic_shared_bytes;
  void* (*static_shared)();  // touches this thread's copy of the module's __shared__ variables
};

template <unsigned... I>
struct indices {};
template <unsigned N, unsigned... I>
struct make_indices : make_indices<N - 1, N - 1, I...> {};
template <unsigned... I>
struct make_indices<0, I...> {
  using type = indices<I...>;
};
template <class T>
struct plain {
  using type = T;
};
template <class T>
struct plain<const T> {
  using type = T;
};

template <auto Kernel>
struct entry;
template <class... P, void (*Kernel)(P...)>
struct entry<Kernel> {
  static constexpr parameter parameters[sizeof...(P) + 1] = {
      {(unsigned)traits<typename plain<P>::type>::kind, (unsigned)sizeof(P)}..., {0, 0}};

  // By value: nothing that the kernel writes can change its arguments, so the loops below may keep
  // them in registers.
  static void run_grid(P... arguments) {
    const index3 grid = gridDim, block = blockDim;
    for (int z = 0; z < grid.z; ++z)
      for (int y = 0; y < grid.y; ++y)
        for (int x = 0; x < grid.x; ++x) {
          blockIdx = {x, y, z};
          run_block(block, arguments...);
        }
  }
  static inline void run_block(const index3 block, P... arguments) {
    for (int z = 0; z < block.z; ++z)
      for (int y = 0; y < block.y; ++y)
        for (int x = 0; x < block.x; ++x) {
          threadIdx = {x, y, z};
          Kernel(arguments...);
          if (diverted) {
            host->finish_block(self());
            diverted = false;
            return;
          }
        }
  }
  template <unsigned... I>
  static void unpack(void* const* arguments, indices<I...>) {
    run_grid(*(typename plain<P>::type*)arguments[I]...);
  }
  template <unsigned... I>
  static void unpack_thread(void* const* arguments, indices<I...>) {
    Kernel(*(typename plain<P>::type*)arguments[I]...);
  }

  static void run(void* const* arguments) {
    unpack(arguments, typename make_indices<sizeof...(P)>::type{});
  }
  static void run_thread(void* const* arguments, unsigned self) {
    const int at = (int)self;
    threadIdx = {at % blockDim.x, at / blockDim.x % blockDim.y, at / blockDim.x / blockDim.y};
    unpack_thread(arguments, typename make_indices<sizeof...(P)>::type{});
  }
  static constexpr kernel describe(const char* name) {
    return {name, sizeof...(P), parameters, &run, &run_thread};
  }
};

static void bind(const runtime* r) { host = r; }
static void set_launch(size grid, size block) {
  gridDim = {(int)grid.x, (int)grid.y, (int)grid.z};
  blockDim = {(int)block.x, (int)block.y, (int)block.z};
  diverted = false;
}
alignas(1024) static char dynamic_shared[227 * 1024 + 1024];
static thread_local char shared_anchor;
static void* static_shared() { return &shared_anchor; }

}  // namespace hone
