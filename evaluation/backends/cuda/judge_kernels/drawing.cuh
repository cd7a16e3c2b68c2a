// Kernels that draw the contents of tensors. judge/varied_element.cuh precedes this text. Each use
// of random bits has a separate Philox stream: 16 times the tensor's number plus 0 for contents, 3
// for the places and 4 for the contents of perturbed elements.

using namespace judging;

// Draws elements 4 quad ... 4 quad + 3 as floats, before the cast to the tensor's type.
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
    for (int j = 0; j < 4; ++j) x[j] = (float)d.a + (float)d.b * x[j];
  } else if (d.of == uniform) {
    x[0] = unit(r.x);
    x[1] = unit(r.y);
    x[2] = unit(r.z);
    x[3] = unit(r.w);
    for (int j = 0; j < 4; ++j) x[j] = (float)d.a + (float)(d.b - d.a) * x[j];
  } else {
    x[0] = r.x & 1;
    x[1] = r.y & 1;
    x[2] = r.z & 1;
    x[3] = r.w & 1;
  }
}

// Draws element `i` of a tensor of integers.
__device__ long long one_integer(const drawing& d, u64 i, unsigned stream) {
  const uint4 r = philox(i, d.seed, (unsigned)d.tensor * 16u + stream);
  const u64 span = (u64)((long long)d.b - (long long)d.a);
  return (long long)d.a + (long long)(((u64)r.y << 32 | r.x) % span);
}

// Returns the place of element `x` in a permutation of d.row elements: a Feistel network over the
// next power of four, applied repeatedly until the result is less than d.row.
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

// Drawings and the memory that they fill. `placed` and `placements` have the layouts of
// gpu_placed_drawing in gpu_context.hpp and of drawing_list in gpu_context.cpp.
struct placed {
  void* to;
  drawing what;
};
struct placements {
  placed of[48];
};

// Fills tensors, of which each row of the grid takes one. Each thread draws groups of four
// elements.
extern "C" __global__ void draw(const placements list) {
  void* const to = list.of[blockIdx.y].to;
  const drawing d = list.of[blockIdx.y].what;
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

// Changes drawn elements to another distribution.
extern "C" __global__ void vary(void* at, int type, variation v) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < v.n; i += step) {
    if (v.of == integers)
      store_integer(at, type, i,
                    varied_integer(type == int64   ? ((const long long*)at)[i]
                                   : type == int32 ? ((const int*)at)[i]
                                                   : (long long)load(at, type, i),
                                   i, v));
    else
      store(at, type, i, varied_number(load(at, type, i), i, v));
  }
}

// Copies the rows of a data file of `n` elements to other places. Real numbers are scaled by rows.
extern "C" __global__ void vary_data(void* to, const void* from, int type, u64 n, variation v) {
  const u64 step = (u64)gridDim.x * blockDim.x, row = n / v.extent;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    const u64 r = i / row, source = source_row(v, r) * row + i % row;
    if (type == int64)
      ((long long*)to)[i] = ((const long long*)from)[source];
    else if (type == int32 || type == boolean)
      store(to, type, i, load(from, type, source));
    else
      store(to, type, i, load(from, type, source) * row_factor(v, r));
  }
}

// Draws `count` elements anew from another seed, or swaps two elements of a permutation. Must be
// launched with one thread, so that the order of writes is fixed.
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
