// Kernels that compare an output with the expected ones, by the rule of judge/element_rule.cuh,
// which precedes this text. They must be launched with 256 threads per block.

using namespace judging;

// Writes the measures of all threads of a block, merged, to out[blockIdx.x].
__device__ void reduce(const measures& mine, measures* out) {
  __shared__ alignas(measures) unsigned char memory[256 * sizeof(measures)];
  measures* const all = (measures*)memory;
  all[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) add(all[threadIdx.x], all[threadIdx.x + s]);
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = all[0];
}

// An output and the runs of the reference; gpu_context::comparison has the same layout.
struct compared {
  const void* actual;
  const void* own;      // of the reference in its own types
  const void* wide;     // of the float64 run, or null
  const void* settled;  // of the float64 run with the decisions of `own`, or null: as `wide`
  const void* noisy[JUDGE_MOST_NOISY];
  const void* alternatives[JUDGE_MOST_ALTERNATIVES];
  int noisy_count, alternative_count;
  u64 n;               // number of elements
  int type;            // of `actual`, `own`, `noisy` and `alternatives`
  double unit, least;  // of the type, as type_limits in judge/comparison.hpp
  output_scale scale;  // for the second pass
};

// Returns an element of a float64 run, rounded to the output's type.
__device__ double rounded(const void* wide, int type, u64 i) {
  const double x = ((const double*)wide)[i];
  switch (type) {
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

// One element in the runs that every comparison has.
struct expected_element {
  double own, wide, error;  // `error`: that rounding explains
};

__device__ expected_element expected_at(const compared& c, u64 i) {
  expected_element e;
  e.own = load(c.own, c.type, i);
  e.wide = c.wide == 0 ? e.own : rounded(c.wide, c.type, i);
  const double settled = c.settled == 0 ? e.wide : rounded(c.settled, c.type, i);
  double spread = 0;
  for (int k = 0; k < c.noisy_count; ++k)
    spread = wider_spread(spread, e.own, load(c.noisy[k], c.type, i));
  e.error = rounding_error(spread, e.own, settled, c.unit, c.least);
  return e;
}

__device__ double error_around(const compared& c, u64 i) {
  double errors[JUDGE_NEIGHBORS];
  int count = 0;
  for (u64 j = first_neighbor(i, c.n); j < c.n && count < JUDGE_NEIGHBORS; ++j)
    errors[count++] = expected_at(c, j).error;
  return median_of(errors, count);
}

__device__ double distance_at(const compared& c, double x, const expected_element& e, double limit,
                              u64 i) {
  if (c.alternative_count == 0) return fabs(x - e.wide);
  double results[JUDGE_MOST_ALTERNATIVES + 2];
  int count = 0;
  results[count++] = e.wide;
  if (is_number(e.own)) results[count++] = e.own;
  for (int k = 0; k < c.alternative_count; ++k) {
    const double other = load(c.alternatives[k], c.type, i);
    if (is_number(other)) results[count++] = other;
  }
  return distance_from_results(x, results, count, limit);
}

__device__ bool is_right_at(const compared& c, double x, const expected_element& e, double limit,
                            u64 i) {
  if (is_right_special(x, e.own, e.wide, limit)) return true;
  for (int k = 0; k < c.noisy_count; ++k) {
    if (same_number(x, load(c.noisy[k], c.type, i))) return true;
  }
  for (int k = 0; k < c.alternative_count; ++k) {
    if (same_number(x, load(c.alternatives[k], c.type, i))) return true;
  }
  return false;
}

// First pass: measures the sizes of expected elements and of the errors that rounding explains.
extern "C" __global__ void measure_expected(compared c, measures* out) {
  measures m;
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < c.n; i += step) {
    const expected_element e = expected_at(c, i);
    if (!is_number(e.wide)) continue;
    m.sum += e.wide;
    m.squares += e.wide * e.wide;
    ++m.finite;
    if (e.error > c.least) {
      m.errors += log(e.error);
      ++m.error_count;
    }
    if (e.wide != 0) {
      m.values += log(fabs(e.wide));
      ++m.value_count;
    }
  }
  reduce(m, out);
}

// Second pass: measures the errors of the candidate, as compare_floating() in judge/comparison.cpp.
extern "C" __global__ void measure_errors(compared c, measures* out) {
  measures m;
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < c.n; i += step) {
    const expected_element e = expected_at(c, i);
    const double x = load(c.actual, c.type, i);
    const element_limit limit = limit_of(e.error, e.wide, c.scale);
    if (!is_number(x) || !is_number(e.wide)) {
      if (i < m.first_bad && !is_right_at(c, x, e, allowed_by(limit), i)) m.first_bad = i;
      continue;
    }
    double ratio = ratio_of(distance_at(c, x, e, allowed_by(limit), i), limit);
    if (may_be_chance(ratio)) {
      const element_limit wider = limit_of(error_around(c, i), e.wide, c.scale);
      if (wider.rounding > limit.rounding)
        ratio = ratio_of(distance_at(c, x, e, allowed_by(wider), i), wider);
    }
    if (ratio > m.worst) {
      m.worst = ratio;
      m.worst_at = i;
    }
    m.ratios += ratio * ratio;
    ++m.count;
  }
  reduce(m, out);
}

// Compares integers and booleans. An element that agrees with any run of the reference is right.
// `wide` has the type of `own` here.
extern "C" __global__ void measure_exact(compared c, measures* out) {
  measures m;
  const int bytes = bytes_of(c.type);
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < c.n; i += step) {
    const unsigned char* const actual = (const unsigned char*)c.actual + i * bytes;
    const auto is_same = [&](const void* run) {
      if (run == 0) return false;
      for (int j = 0; j < bytes; ++j) {
        if (actual[j] != ((const unsigned char*)run)[i * bytes + j]) return false;
      }
      return true;
    };
    bool is_right = is_same(c.own) || is_same(c.wide);
    for (int k = 0; k < c.noisy_count && !is_right; ++k) is_right = is_same(c.noisy[k]);
    for (int k = 0; k < c.alternative_count && !is_right; ++k)
      is_right = is_same(c.alternatives[k]);
    if (!is_right && i < m.first_bad) m.first_bad = i;
  }
  reduce(m, out);
}
