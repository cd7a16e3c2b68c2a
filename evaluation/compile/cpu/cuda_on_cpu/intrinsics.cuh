// CUDA's intrinsics: fast and rounded arithmetic, cached loads and stores, conversions, and
// operations on bits.

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
// All four suffixes round as the processor does by default, to nearest even. As in CUDA, the sums
// and products are never fused with another operation. The compiler fuses a product that is
// added to, so each is written as one fused operation already.
#define HONE_ROUNDED(suffix)                                                                     \
  static inline float __fadd_##suffix(float x, float y) { return __builtin_fmaf(x, 1.0f, y); }   \
  static inline float __fsub_##suffix(float x, float y) { return __builtin_fmaf(x, 1.0f, -y); }  \
  static inline float __fmul_##suffix(float x, float y) { return __builtin_fmaf(x, y, -0.0f); }  \
  static inline float __fdiv_##suffix(float x, float y) { return x / y; }                        \
  static inline float __frcp_##suffix(float x) { return 1.0f / x; }                              \
  static inline float __fsqrt_##suffix(float x) { return __builtin_sqrtf(x); }                   \
  static inline float __fmaf_##suffix(float x, float y, float z) {                               \
    return __builtin_fmaf(x, y, z);                                                              \
  }                                                                                              \
  static inline double __dadd_##suffix(double x, double y) { return __builtin_fma(x, 1.0, y); }  \
  static inline double __dmul_##suffix(double x, double y) { return __builtin_fma(x, y, -0.0); } \
  static inline double __fma_##suffix(double x, double y, double z) {                            \
    return __builtin_fma(x, y, z);                                                               \
  }
// clang-format off
HONE_ROUNDED(rn)
HONE_ROUNDED(rz)
HONE_ROUNDED(ru)
HONE_ROUNDED(rd)
// clang-format on
#undef HONE_ROUNDED
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
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
