// The judge's own device code: contents of inputs, and comparison of outputs, where they lie.
// Compiled with NVRTC when a CUDA device starts; started by evaluation/judge/gpu/gpu_context.cpp,
// whose enumerations these numbers are.

typedef unsigned long long u64;

enum dtypes { float32, float16, bfloat16, float64, int32, int64, boolean };
enum numbers { normal, uniform, integers, constant, permutation, coin };
enum distributions { declared, shifted, small, outliers };

// What a tensor is filled with. Contents belong to (seed, tensor): the same every time, wherever
// they are written.
struct drawing {
  u64 seed;
  u64 n;
  double a, b;  // of the distribution: mean and deviation, low and high, value
  u64 row;      // permutation: elements in each
  int tensor;
  int type;
  int of;
  int how;
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

__device__ float unit(unsigned bits) { return (bits >> 8) * 5.9604644775390625e-8f; }  // [0, 1)
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

__device__ float changed(float x, int how) {
  return how == shifted ? 10.0f * x + 25.0f : how == small ? x / 1000.0f : x;
}

// Four neighbours of the tensor as they are drawn, before the cast.
__device__ void four_floats(const drawing& d, u64 quad, unsigned stream, float* x) {
  if (d.of == constant) {
    x[0] = x[1] = x[2] = x[3] = (float)d.a;
    return;
  }
  const uint4 r = philox(quad, d.seed, (unsigned)d.tensor * 16u + stream);
  if (d.of == normal) {
    const float2 p = normals(r.x, r.y), q = normals(r.z, r.w);
    x[0] = p.x;
    x[1] = p.y;
    x[2] = q.x;
    x[3] = q.y;
    for (int j = 0; j < 4; ++j) x[j] = changed((float)d.a + (float)d.b * x[j], d.how);
  } else if (d.of == uniform) {
    x[0] = unit(r.x);
    x[1] = unit(r.y);
    x[2] = unit(r.z);
    x[3] = unit(r.w);
    for (int j = 0; j < 4; ++j) x[j] = changed((float)d.a + (float)(d.b - d.a) * x[j], d.how);
  } else {
    x[0] = r.x & 1;
    x[1] = r.y & 1;
    x[2] = r.z & 1;
    x[3] = r.w & 1;
  }
}

__device__ long long one_integer(const drawing& d, u64 i, unsigned stream) {
  const uint4 r = philox(i, d.seed, (unsigned)d.tensor * 16u + stream);
  const u64 span = (u64)((long long)d.b - (long long)d.a);
  return (long long)d.a + (long long)(((u64)r.y << 32 | r.x) % span);
}

// Where `x` of a row goes: a Feistel network over the next power of four, walked until it lands
// inside.
__device__ u64 permuted(u64 x, u64 row_number, const drawing& d) {
  int half = 1;
  while (half < 31 && (1ull << (2 * half)) < d.row) ++half;
  const u64 mask = (1ull << half) - 1;
  do {
    u64 left = x >> half, right = x & mask;
    for (unsigned round = 0; round < 6; ++round) {
      const uint4 r = philox(right | (u64)round << 40, d.seed + row_number * 0x9E3779B97F4A7C15ull,
                             (unsigned)d.tensor * 16u);
      const u64 next = left ^ (r.x & mask);
      left = right;
      right = next;
    }
    x = left << half | right;
  } while (x >= d.row);
  return x;
}

extern "C" __global__ void draw(void* to, drawing d) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 quad = (u64)blockIdx.x * blockDim.x + threadIdx.x; quad * 4 < d.n; quad += step) {
    const u64 first = quad * 4;
    const int count = d.n - first < 4 ? (int)(d.n - first) : 4;
    if (d.of == integers) {
      for (int j = 0; j < count; ++j)
        store_integer(to, d.type, first + j, one_integer(d, first + j, 0));
    } else if (d.of == permutation) {
      for (int j = 0; j < count; ++j)
        store_integer(to, d.type, first + j,
                      (long long)permuted((first + j) % d.row, (first + j) / d.row, d));
    } else {
      float x[4];
      four_floats(d, quad, 0, x);
      if (count == 4 && d.type == float32) {
        ((float4*)to)[quad] = make_float4(x[0], x[1], x[2], x[3]);
      } else if (count == 4 && (d.type == float16 || d.type == bfloat16)) {
        ushort4 h;
        h.x = d.type == float16 ? to_half(x[0]) : to_bfloat16(x[0]);
        h.y = d.type == float16 ? to_half(x[1]) : to_bfloat16(x[1]);
        h.z = d.type == float16 ? to_half(x[2]) : to_bfloat16(x[2]);
        h.w = d.type == float16 ? to_half(x[3]) : to_bfloat16(x[3]);
        ((ushort4*)to)[quad] = h;
      } else {
        for (int j = 0; j < count; ++j) store(to, d.type, first + j, x[j]);
      }
    }
  }
}

// 500 with a random sign, or its opposite, added to `count` elements. An element that is drawn
// twice gets the same both times.
extern "C" __global__ void add_outliers(void* to, drawing d, u64 count, unsigned mirrored) {
  const u64 j = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= count) return;
  const uint4 r = philox(j, d.seed, (unsigned)d.tensor * 16u + 1u);
  const u64 i = ((u64)r.y << 32 | r.x) % d.n;
  float x[4];
  four_floats(d, i / 4, 0, x);
  const unsigned sign = philox(i, d.seed, (unsigned)d.tensor * 16u + 2u).x & 1 ^ mirrored;
  store(to, d.type, i, x[i % 4] + (sign ? 500.0f : -500.0f));
}

// A few elements drawn anew from another seed; of a permutation two change places. One thread, so
// that the order is fixed.
extern "C" __global__ void perturb(void* to, drawing d, u64 seed, int count) {
  if (d.of == constant) return;
  const u64 kept = d.seed;
  if (d.of == permutation) {
    const uint4 r = philox(0, seed, (unsigned)d.tensor * 16u + 3u);
    const u64 begin = r.x % (d.n / d.row) * d.row, i = begin + r.y % d.row, j = begin + r.z % d.row;
    const double x = load(to, d.type, i), y = load(to, d.type, j);
    store_integer(to, d.type, i, (long long)y);
    store_integer(to, d.type, j, (long long)x);
    return;
  }
  for (int k = 0; k < count; ++k) {
    const uint4 r = philox(k, seed, (unsigned)d.tensor * 16u + 3u);
    const u64 i = ((u64)r.y << 32 | r.x) % d.n;
    d.seed = seed;
    if (d.of == integers) {
      store_integer(to, d.type, i, one_integer(d, k, 4));
    } else {
      float x[4];
      four_floats(d, k, 4, x);
      store(to, d.type, i, x[0]);
    }
    d.seed = kept;
  }
}

// Makes contents unreadable without their key, or readable again: each 16 bytes with 16 of
// Philox's. Whoever has the memory but not the key learns nothing.
extern "C" __global__ void scramble(void* memory, u64 bytes, u64 key) {
  const u64 step = (u64)gridDim.x * blockDim.x, at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  for (u64 i = at; i < bytes / 16; i += step) {
    uint4 x = ((uint4*)memory)[i];
    const uint4 r = philox(i, key, 0x5eedu);
    x.x ^= r.x;
    x.y ^= r.y;
    x.z ^= r.z;
    x.w ^= r.w;
    ((uint4*)memory)[i] = x;
  }
  for (u64 i = bytes / 16 * 16 + at; i < bytes; i += step)
    ((unsigned char*)memory)[i] ^= (unsigned char)philox(i, key, 0x5eeeu).x;
}

// The same numbers in another type: toward zero into integers, by way of float32 into half types,
// as LibTorch casts.
extern "C" __global__ void convert(void* to, int to_type, const void* from, int from_type, u64 n) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  const bool exact =
      (from_type == int64 || from_type == int32) && (to_type == int64 || to_type == int32);
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    if (exact)
      store_integer(to, to_type, i,
                    from_type == int64 ? ((const long long*)from)[i] : ((const int*)from)[i]);
    else
      store(to, to_type, i, load(from, from_type, i));
  }
}

struct strided {
  u64 n;
  int dimensions;
  int bytes;  // of an element
  long long sizes[12];
  long long strides[12];
};

extern "C" __global__ void gather(void* to, const void* from, strided s) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < s.n; i += step) {
    u64 rest = i;
    long long at = 0;
    for (int d = s.dimensions - 1; d >= 0; --d) {
      at += (long long)(rest % s.sizes[d]) * s.strides[d];
      rest /= s.sizes[d];
    }
    switch (s.bytes) {
      case 1:
        ((unsigned char*)to)[i] = ((const unsigned char*)from)[at];
        break;
      case 2:
        ((unsigned short*)to)[i] = ((const unsigned short*)from)[at];
        break;
      case 4:
        ((unsigned*)to)[i] = ((const unsigned*)from)[at];
        break;
      default:
        ((u64*)to)[i] = ((const u64*)from)[at];
        break;
    }
  }
}

// Sets *flag where two ranges of memory differ. Both begin at multiples of 16.
extern "C" __global__ void find_difference(const void* a, const void* b, u64 bytes,
                                           unsigned* flag) {
  const u64 step = (u64)gridDim.x * blockDim.x, at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  bool differs = false;
  for (u64 i = at; i < bytes / 16; i += step) {
    const uint4 x = ((const uint4*)a)[i], y = ((const uint4*)b)[i];
    differs |= x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w;
  }
  for (u64 i = bytes / 16 * 16 + at; i < bytes; i += step)
    differs |= ((const unsigned char*)a)[i] != ((const unsigned char*)b)[i];
  if (differs) *flag = 1;
}

struct range {
  u64 begin, end;
};

// Sets *first to the smallest number of a stretch that holds anything but poison, of either kind. A
// block a stretch.
extern "C" __global__ void find_damage(const unsigned char* base, const range* ranges,
                                       unsigned count, unsigned char other, unsigned* first) {
  for (unsigned s = blockIdx.x; s < count; s += gridDim.x) {
    bool damaged = false;
    for (u64 i = ranges[s].begin + threadIdx.x; i < ranges[s].end; i += blockDim.x)
      damaged |= base[i] != 0xff && base[i] != other;
    if (damaged) atomicMin(first, s);
  }
}

// What one block has seen of an output: evaluation.md section 2, point 5.
struct measures {
  double squares, sum;  // of expected, finite elements
  double error, norm;   // sums of squares, for the relative L2 error
  double own_error;
  double worst, own_worst;  // largest |a - b| over what is allowed there
  u64 worst_at;
  u64 finite;
  u64 first_bad;  // the first element whose NaN or infinity, or exact value, is wrong; ~0: none
  int varies, expected_varies;
};

__device__ void merge(measures& a, const measures& b) {
  a.squares += b.squares;
  a.sum += b.sum;
  a.error += b.error;
  a.norm += b.norm;
  a.own_error += b.own_error;
  if (b.worst > a.worst || (b.worst == a.worst && b.worst_at < a.worst_at)) {
    a.worst = b.worst;
    a.worst_at = b.worst_at;
  }
  a.own_worst = b.own_worst > a.own_worst ? b.own_worst : a.own_worst;
  a.finite += b.finite;
  a.first_bad = b.first_bad < a.first_bad ? b.first_bad : a.first_bad;
  a.varies |= b.varies;
  a.expected_varies |= b.expected_varies;
}

__device__ void reduce(measures mine, measures* out) {
  __shared__ measures all[256];
  all[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) merge(all[threadIdx.x], all[threadIdx.x + s]);
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = all[0];
}

__device__ measures nothing() {
  measures m;
  m.squares = m.sum = m.error = m.norm = m.own_error = m.worst = m.own_worst = 0;
  m.worst_at = m.first_bad = ~0ull;
  m.finite = 0;
  m.varies = m.expected_varies = 0;
  return m;
}

struct compared {
  const void* actual;
  const void* own;
  const void* wide;  // float64, or null
  u64 n;
  int type;
  double rms;  // of the expected elements, for the second pass
  double rtol, atol;
};

// The expected element: the float64 run's, cast to the output's type, where there is one.
__device__ double expected_at(const compared& c, u64 i) {
  if (c.wide == 0) return load(c.own, c.type, i);
  const double x = ((const double*)c.wide)[i];
  switch (c.type) {
    case float32:
      return (double)(float)x;
    case float16:
      return from_half(to_half((float)x));
    case bfloat16:
      return from_bfloat16(to_bfloat16((float)x));
    default:
      return x;
  }
}

__device__ bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

// First pass: how large expected elements are, and whether anything varies.
extern "C" __global__ void measure_expected(compared c, measures* out) {
  measures m = nothing();
  const double a0 = load(c.actual, c.type, 0), b0 = expected_at(c, 0);
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < c.n; i += step) {
    const double b = expected_at(c, i);
    if (isfinite(b)) {
      m.squares += b * b;
      m.sum += b;
      ++m.finite;
    }
    m.varies |= !same(load(c.actual, c.type, i), a0);
    m.expected_varies |= !same(b, b0);
  }
  reduce(m, out);
}

// Second pass: errors, of the candidate and of the reference in its own type.
extern "C" __global__ void measure_errors(compared c, measures* out) {
  measures m = nothing();
  const double floor = 1e-30, base = c.atol * (c.rms > floor ? c.rms : floor);
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < c.n; i += step) {
    const double a = load(c.actual, c.type, i), b = expected_at(c, i), own = load(c.own, c.type, i);
    if (!(isfinite(a) && isfinite(b))) {
      bool fine = same(a, b) || (same(a, own) && !isfinite(own));
      if (!fine && isfinite(a) && isfinite(own)) fine = fabs(a - own) <= base + c.rtol * fabs(own);
      if (!fine && i < m.first_bad) m.first_bad = i;
    }
    if (!isfinite(b)) continue;
    const double limit = base + c.rtol * fabs(b);
    if (isfinite(a)) {
      const double e = fabs(a - b), ratio = limit > 0 ? e / limit : e > 0 ? 1e300 : 0;
      if (ratio > m.worst) {
        m.worst = ratio;
        m.worst_at = i;
      }
      m.error += e * e;
      m.norm += b * b;
    }
    if (isfinite(own)) {
      const double e = fabs(own - b), ratio = limit > 0 ? e / limit : e > 0 ? 1e300 : 0;
      m.own_worst = ratio > m.own_worst ? ratio : m.own_worst;
      m.own_error += e * e;
    }
  }
  reduce(m, out);
}

// Integers and booleans: either of the reference's runs is right. `wide` is of the same type here.
extern "C" __global__ void measure_exact(compared c, measures* out) {
  measures m = nothing();
  const int bytes = bytes_of(c.type);
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < c.n; i += step) {
    bool own = true, wide = c.wide != 0;
    for (int j = 0; j < bytes; ++j) {
      const unsigned char a = ((const unsigned char*)c.actual)[i * bytes + j];
      own &= a == ((const unsigned char*)c.own)[i * bytes + j];
      if (wide) wide = a == ((const unsigned char*)c.wide)[i * bytes + j];
    }
    if (!own && !wide && i < m.first_bad) m.first_bad = i;
  }
  reduce(m, out);
}

// Leaves poison in the shared memory of the block's multiprocessor.
extern "C" __global__ void spoil_shared() {
  extern __shared__ unsigned words[];
  unsigned bytes;
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  volatile unsigned* seen = words;
  for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) seen[i] = 0xffffffffu;
}
