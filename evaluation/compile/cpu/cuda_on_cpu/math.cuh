// The functions of math.h and CUDA's additions to them, in float and double.

// With fast_math, g++ may call the functions' vector versions in loops (glibc's libmvec).
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
// clang-format off
HONE_MATH1(exp)
HONE_MATH1(exp2)
HONE_MATH1(exp10)
HONE_MATH1(expm1)
HONE_MATH1(log)
HONE_MATH1(log2)
HONE_MATH1(log10)
HONE_MATH1(log1p)
HONE_MATH1(sin)
HONE_MATH1(cos)
HONE_MATH1(tan)
HONE_MATH1(asin)
HONE_MATH1(acos)
HONE_MATH1(atan)
HONE_MATH1(sinh)
HONE_MATH1(cosh)
HONE_MATH1(tanh)
HONE_MATH1(asinh)
HONE_MATH1(acosh)
HONE_MATH1(atanh)
HONE_MATH1(erf)
HONE_MATH1(erfc)
HONE_MATH1(tgamma)
HONE_MATH1(lgamma)
HONE_MATH1(cbrt)
HONE_MATH1(logb)
HONE_MATH2(pow)
HONE_MATH2(atan2)
HONE_MATH2(fmod)
HONE_MATH2(hypot)
HONE_MATH2(remainder)
HONE_MATH2(nextafter)
// clang-format on
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
// clang-format off
HONE_BUILTIN1(sqrt)
HONE_BUILTIN1(fabs)
HONE_BUILTIN1(floor)
HONE_BUILTIN1(ceil)
HONE_BUILTIN1(trunc)
HONE_BUILTIN1(rint)
HONE_BUILTIN1(nearbyint)
HONE_BUILTIN1(round)
HONE_BUILTIN2(fmin)
HONE_BUILTIN2(fmax)
HONE_BUILTIN2(copysign)
HONE_BUILTIN2(fdim)
// clang-format on
#undef HONE_BUILTIN1
#undef HONE_BUILTIN2
static inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
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
// clang-format off
HONE_OF_INT(exp)
HONE_OF_INT(log)
HONE_OF_INT(sqrt)
HONE_OF_INT(sin)
HONE_OF_INT(cos)
HONE_OF_INT(floor)
HONE_OF_INT(ceil)
HONE_OF_INT(tanh)
// clang-format on
#undef HONE_OF_INT
static inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
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
// clang-format off
HONE_MINMAX(int)
HONE_MINMAX(unsigned)
HONE_MINMAX(long)
HONE_MINMAX(unsigned long)
HONE_MINMAX(long long)
HONE_MINMAX(unsigned long long)
// clang-format on
#undef HONE_MINMAX
// As in CUDA, operands of mixed signedness are compared as unsigned, and if one operand is NaN the
// other is the result.
static inline constexpr unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
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
