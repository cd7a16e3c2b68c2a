// Kernels that compare an output with the expected ones (evaluation.md section 2, point 5). They
// must be launched with 256 threads per block.

// The sums and extremes that one block has found; gpu_context::measures has the same layout.
struct measures {
  double squares, sum;      // sum of squares and sum of the expected, finite elements
  double roots;             // sum of the square roots of their magnitudes
  double error, norm;       // sums of squares, for the relative L2 error
  double own_error;         // sum of squares of the reference's own errors
  double worst, own_worst;  // largest |a - b| over the error allowed for that element
  u64 worst_at;             // index of the worst element
  u64 finite;               // number of finite expected elements
  u64 missed, own_missed;   // numbers of elements, by miss_limits in judge/comparison.hpp
  u64 first_bad;  // the first element whose NaN or infinity, or exact value, is wrong; ~0: none
  int varies, expected_varies;  // whether the output and the expected output are not constant
};

// Adds the measures `b` to `a`.
__device__ void merge(measures& a, const measures& b) {
  a.squares += b.squares;
  a.sum += b.sum;
  a.roots += b.roots;
  a.error += b.error;
  a.norm += b.norm;
  a.own_error += b.own_error;
  if (b.worst > a.worst || (b.worst == a.worst && b.worst_at < a.worst_at)) {
    a.worst = b.worst;
    a.worst_at = b.worst_at;
  }
  a.own_worst = b.own_worst > a.own_worst ? b.own_worst : a.own_worst;
  a.finite += b.finite;
  a.missed += b.missed;
  a.own_missed += b.own_missed;
  a.first_bad = b.first_bad < a.first_bad ? b.first_bad : a.first_bad;
  a.varies |= b.varies;
  a.expected_varies |= b.expected_varies;
}

// Writes the measures of all threads of a block, merged, to out[blockIdx.x].
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

// Returns the measures of no elements.
__device__ measures nothing() {
  measures m;
  m.squares = m.sum = m.roots = m.error = m.norm = m.own_error = m.worst = m.own_worst = 0;
  m.worst_at = m.first_bad = ~0ull;
  m.finite = m.missed = m.own_missed = 0;
  m.varies = m.expected_varies = 0;
  return m;
}

// An output and the expected ones; gpu_context::comparison has the same layout.
struct compared {
  const void* actual;
  const void* own;   // of the reference in its own types
  const void* wide;  // of the float64 run, or null
  u64 n;             // number of elements
  int type;          // of `actual` and `own`
  double rms;        // of the expected elements, for the second pass
  double rtol, atol;
  double noise, missed_share;  // of miss_limits
};

// Returns the expected element: the float64 run's, cast to the output's type, if there is such a
// run.
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

// First pass: measures the size of expected elements, and whether either output varies.
extern "C" __global__ void measure_expected(compared c, measures* out) {
  measures m = nothing();
  const double a0 = load(c.actual, c.type, 0), b0 = expected_at(c, 0);
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < c.n; i += step) {
    const double b = expected_at(c, i);
    if (isfinite(b)) {
      m.squares += b * b;
      m.sum += b;
      m.roots += sqrt(fabs(b));
      ++m.finite;
    }
    m.varies |= !same(load(c.actual, c.type, i), a0);
    m.expected_varies |= !same(b, b0);
  }
  reduce(m, out);
}

// Second pass: measures the errors of the candidate and of the reference in its own type, by the
// rules of compare_floating() in judge/comparison.cpp.
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
    const double miss = fmax(c.noise, c.missed_share * fabs(b));
    if (isfinite(a)) {
      const double e = fabs(a - b), ratio = limit > 0 ? e / limit : e > 0 ? 1e300 : 0;
      if (ratio > m.worst) {
        m.worst = ratio;
        m.worst_at = i;
      }
      m.error += e * e;
      m.norm += b * b;
      m.missed += e > miss;
    }
    if (isfinite(own)) {
      const double e = fabs(own - b), ratio = limit > 0 ? e / limit : e > 0 ? 1e300 : 0;
      m.own_worst = ratio > m.own_worst ? ratio : m.own_worst;
      m.own_error += e * e;
      m.own_missed += e > miss;
    }
  }
  reduce(m, out);
}

// Compares integers and booleans. An element that agrees with either of the reference's runs is
// right. `wide` has the type of `own` here.
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
