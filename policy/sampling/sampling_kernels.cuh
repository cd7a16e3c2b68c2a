// The kernels of paged_network: what lies between the matrix products of a decoder, attention over
// pages of keys and values, and drawing tokens. gpu_layers.cpp compiles them with these macros:
//   WIDTH, HEADS, KV_HEADS, HEAD (width of one), FEED (width of the feed-forward part), VOCABULARY
//   TABLE: pages in a row of the page table
//   EPSILON: of the norms
//   HALF_IS_BFLOAT16: 1 for bfloat16, 0 for float16
// WIDTH, FEED and VOCABULARY are multiples of 8, HEAD is a multiple of 32 and at most 128.

#if HALF_IS_BFLOAT16
#include <cuda_bf16.h>
using half_t = __nv_bfloat16;
#define MMA_TYPE "bf16"
#else
#include <cuda_fp16.h>
using half_t = __half;
#define MMA_TYPE "f16"
#endif

constexpr int page = 32;  // tokens of a page, which page_book.hpp names page_tokens
constexpr int shared_heads = HEADS / KV_HEADS;
constexpr int qkv_width = (HEADS + 2 * KV_HEADS) * HEAD;
constexpr int norm_threads = 128;
#define infinity __int_as_float(0x7f800000)

__device__ inline float widen(half_t x) { return static_cast<float>(x); }
__device__ inline half_t narrow(float x) { return static_cast<half_t>(x); }

// Eight elements, which are loaded and stored at once.
struct alignas(16) eight {
  half_t at[8];
};

__device__ inline eight load(const half_t* from) { return *reinterpret_cast<const eight*>(from); }
__device__ inline void store(half_t* to, const eight& x) { *reinterpret_cast<eight*>(to) = x; }

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

// The elements of a row that one thread of norm_threads holds: eight of every norm_threads * 8.
constexpr int norm_parts = (WIDTH / 8 + norm_threads - 1) / norm_threads;

// Writes the RMSNorm of the row that the block's threads hold: x / sqrt(mean(x^2) + EPSILON)
// weight.
__device__ void write_norm(const eight (&x)[norm_parts], const half_t* weight, half_t* to) {
  float squares = 0;
  for (int part = 0; part < norm_parts; ++part)
    for (const half_t one : x[part].at) squares += widen(one) * widen(one);
  const float scale =
      rsqrtf(over_block<norm_threads>(squares, add) / static_cast<float>(WIDTH) + EPSILON);
  for (int part = 0; part < norm_parts; ++part) {
    const int at = (part * norm_threads + threadIdx.x) * 8;
    if (at >= WIDTH) break;
    const eight w = load(weight + at);
    eight y;
    for (int i = 0; i < 8; ++i) y.at[i] = narrow(widen(x[part].at[i]) * scale * widen(w.at[i]));
    store(to + at, y);
  }
}

// Blocks of norm_threads, one for each token: x = embedding of the token, h = norm of x.
extern "C" __global__ void embed(const int* tokens, const half_t* embedding, const half_t* weight,
                                 half_t* x, half_t* h) {
  const long long row = blockIdx.x;
  const half_t* from = embedding + static_cast<long long>(tokens[row]) * WIDTH;
  eight mine[norm_parts] = {};
  for (int part = 0; part < norm_parts; ++part) {
    const int at = (part * norm_threads + threadIdx.x) * 8;
    if (at >= WIDTH) break;
    mine[part] = load(from + at);
    store(x + row * WIDTH + at, mine[part]);
  }
  write_norm(mine, weight, h + row * WIDTH);
}

// Blocks of norm_threads, one for each token: x += change + bias, h = norm of x. `bias` may be
// null.
extern "C" __global__ void add_and_norm(const half_t* change, const half_t* bias,
                                        const half_t* weight, half_t* x, half_t* h) {
  const long long row = blockIdx.x;
  eight mine[norm_parts] = {};
  for (int part = 0; part < norm_parts; ++part) {
    const int at = (part * norm_threads + threadIdx.x) * 8;
    if (at >= WIDTH) break;
    const eight by = load(change + row * WIDTH + at);
    mine[part] = load(x + row * WIDTH + at);
    for (int i = 0; i < 8; ++i) {
      const half_t d = bias == nullptr ? by.at[i] : narrow(widen(by.at[i]) + widen(bias[at + i]));
      mine[part].at[i] = narrow(widen(mine[part].at[i]) + widen(d));
    }
    store(x + row * WIDTH + at, mine[part]);
  }
  write_norm(mine, weight, h + row * WIDTH);
}

// Blocks of 128 threads, one for each token, each warp one head after another. Adds the bias (may
// be null) to q, k and v, norms q and k by head if `q_norm` is given, rotates them by the token's
// position and writes them back. Writes k and v to the token's place in the pages as well, if it
// has one: places[token] is page * 32 + token of the page, or -1. `turns` holds cosine and sine by
// position and pair of elements. `keys` is [pages, KV_HEADS, 32, HEAD], `values` is [pages,
// KV_HEADS, HEAD, 32].
extern "C" __global__ void rotate_and_keep(half_t* qkv, const half_t* bias, const half_t* q_norm,
                                           const half_t* k_norm, const float2* turns,
                                           const int* positions, const int* places, half_t* keys,
                                           half_t* values) {
  constexpr int pairs = HEAD / 2;
  constexpr int mine = (pairs + 31) / 32;
  const int lane = threadIdx.x % 32;
  const int place = places[blockIdx.x];
  const float2* turn = turns + static_cast<long long>(positions[blockIdx.x]) * pairs;
  for (int head = threadIdx.x / 32; head < HEADS + 2 * KV_HEADS; head += 4) {
    half_t* at = qkv + static_cast<long long>(blockIdx.x) * qkv_width + head * HEAD;
    float low[mine];
    float high[mine];
    float squares = 0;
    for (int m = 0; m < mine; ++m) {
      const int i = lane + 32 * m;
      if (i >= pairs) {
        low[m] = high[m] = 0;
        continue;
      }
      low[m] = widen(at[i]);
      high[m] = widen(at[i + pairs]);
      if (bias != nullptr) {
        low[m] = widen(narrow(low[m] + widen(bias[head * HEAD + i])));
        high[m] = widen(narrow(high[m] + widen(bias[head * HEAD + i + pairs])));
      }
      squares += low[m] * low[m] + high[m] * high[m];
    }
    const bool is_value = head >= HEADS + KV_HEADS;
    const half_t* norm = head < HEADS ? q_norm : k_norm;
    float scale = 1;
    if (norm != nullptr && !is_value)
      scale = rsqrtf(over_warp(squares, add) / static_cast<float>(HEAD) + EPSILON);
    const int kv = is_value ? head - HEADS - KV_HEADS : head - HEADS;
    const long long kept =
        (static_cast<long long>(place / page) * KV_HEADS + kv) * (page * HEAD);
    for (int m = 0; m < mine; ++m) {
      const int i = lane + 32 * m;
      if (i >= pairs) continue;
      float a = low[m];
      float b = high[m];
      if (!is_value) {
        if (norm != nullptr) {
          a = widen(narrow(a * scale * widen(norm[i])));
          b = widen(narrow(b * scale * widen(norm[i + pairs])));
        }
        const float2 by = turn[i];
        const float turned = a * by.x - b * by.y;
        b = b * by.x + a * by.y;
        a = turned;
      }
      at[i] = narrow(a);
      at[i + pairs] = narrow(b);
      if (place < 0 || head < HEADS) continue;
      if (is_value) {
        values[kept + i * page + place % page] = narrow(a);
        values[kept + (i + pairs) * page + place % page] = narrow(b);
      } else {
        keys[kept + place % page * HEAD + i] = narrow(a);
        keys[kept + place % page * HEAD + i + pairs] = narrow(b);
      }
    }
  }
}

// Blocks of 128 threads, in y one for each token: product = silu(gate) up, of eight elements by
// thread. A row of `gate_up` holds the gates and then the ups; `bias` may be null.
extern "C" __global__ void gate(const half_t* gate_up, const half_t* bias, half_t* product) {
  const int at = (blockIdx.x * 128 + threadIdx.x) * 8;
  if (at >= FEED) return;
  const long long row = blockIdx.y;
  eight g = load(gate_up + row * 2 * FEED + at);
  eight u = load(gate_up + row * 2 * FEED + FEED + at);
  eight y;
  for (int i = 0; i < 8; ++i) {
    if (bias != nullptr) {
      g.at[i] = narrow(widen(g.at[i]) + widen(bias[at + i]));
      u.at[i] = narrow(widen(u.at[i]) + widen(bias[FEED + at + i]));
    }
    const float x = widen(g.at[i]);
    y.at[i] = narrow(widen(narrow(x / (1 + __expf(-x)))) * widen(u.at[i]));
  }
  store(product + row * FEED + at, y);
}

// A part of attention: some queries over some pages of one sequence. attention_plan.hpp makes
// these.
struct attention_part {
  int row;     // of the page table
  int first;   // page of the row
  int pages;
  int tokens;  // of these pages that count
  int member;  // index of the first slot of the queries in `members`
  int rank;    // of the first query: shared_heads queries for each member
  int ranks;   // queries of all members
  int unused;
};

// How a slot's parts are found again.
struct slot_parts {
  int own;           // first part of its own tokens
  int own_count;
  int shared;        // first part of its prompt
  int shared_count;  // chunks of the prompt
  int shared_step;   // parts of one chunk
  int member;        // its rank among the members
};

constexpr int queries = 16;  // of a part, rows of the tensor cores' matrices

__device__ inline unsigned both(float low, float high) {
  const half_t pair[2] = {narrow(low), narrow(high)};
  return *reinterpret_cast<const unsigned*>(pair);
}

// c += a b: [16, 16] times [16, 8], as the warp holds them (PTX, mma.m16n8k16).
__device__ inline void multiply(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE
               ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Blocks of four warps, in y one for each head of keys and values. A warp computes one part:
// softmax-weighted sums of values, not yet divided, to sums [parts, KV_HEADS, 16, HEAD], and the
// largest exponent (base 2) and the sum of the weights to weights [parts, KV_HEADS, 16].
//
// The order of a matrix product's inner elements does not matter, so each thread takes 16 bytes
// that lie together where the instruction would have it take four pairs that do not: eight elements
// of a head for q k, eight tokens for p v. For that, values are stored transposed, and column n of
// the scores is the token (n / 2) 8 + n mod 2 + 2 tile of a page.
extern "C" __global__ void __launch_bounds__(128)
    attend(const half_t* qkv, const half_t* keys, const half_t* values, const int* table,
           const attention_part* parts, const int* part_count, const int* members, float scale,
           float* sums, float2* weights) {
  const int index = blockIdx.x * 4 + threadIdx.x / 32;
  if (index >= *part_count) return;
  const int kv = blockIdx.y;
  const attention_part part = parts[index];
  const int lane = threadIdx.x % 32;
  const int group = lane / 4;
  const int quarter = lane % 4;

  uint4 q[2][HEAD / 32];
  for (int half = 0; half < 2; ++half) {
    const int rank = part.rank + group + 8 * half;
    const bool is_there = rank < part.ranks;
    const long long slot = is_there ? members[part.member + rank / shared_heads] : 0;
    const half_t* from = qkv + slot * qkv_width + (kv * shared_heads + rank % shared_heads) * HEAD;
    for (int b = 0; b < HEAD / 32; ++b)
      q[half][b] = is_there ? *reinterpret_cast<const uint4*>(from + b * 32 + quarter * 8)
                            : make_uint4(0, 0, 0, 0);
  }

  float sum[HEAD / 8][4] = {};
  float highest[2] = {-infinity, -infinity};
  float total[2] = {0, 0};
  for (int p = 0; p < part.pages; ++p) {
    const long long at =
        (static_cast<long long>(table[part.row * TABLE + part.first + p]) * KV_HEADS + kv) *
        (page * HEAD);
    float score[4][4] = {};
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
      const half_t* key = keys + at + (group / 2 * 8 + tile * 2 + group % 2) * HEAD + quarter * 8;
#pragma unroll
      for (int b = 0; b < HEAD / 32; ++b) {
        const uint4 k = *reinterpret_cast<const uint4*>(key + b * 32);
        multiply(score[tile], q[0][b].x, q[1][b].x, q[0][b].y, q[1][b].y, k.x, k.y);
        multiply(score[tile], q[0][b].z, q[1][b].z, q[0][b].w, q[1][b].w, k.z, k.w);
      }
    }
    float top[2] = {highest[0], highest[1]};
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = p * page + quarter * 8 + tile * 2 + i % 2;
        score[tile][i] = token < part.tokens ? score[tile][i] * scale : -infinity;
        top[i / 2] = fmaxf(top[i / 2], score[tile][i]);
      }
    }
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      top[half] = fmaxf(top[half], __shfl_xor_sync(~0U, top[half], 1));
      top[half] = fmaxf(top[half], __shfl_xor_sync(~0U, top[half], 2));
      shrink[half] = exp2f(highest[half] - top[half]);
      highest[half] = top[half];
      total[half] *= shrink[half];
    }
#pragma unroll
    for (int tile = 0; tile < 4; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        score[tile][i] = exp2f(score[tile][i] - highest[i / 2]);
        total[i / 2] += score[tile][i];
      }
    }
    unsigned chance[2][4];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      chance[j][0] = both(score[2 * j][0], score[2 * j][1]);
      chance[j][1] = both(score[2 * j][2], score[2 * j][3]);
      chance[j][2] = both(score[2 * j + 1][0], score[2 * j + 1][1]);
      chance[j][3] = both(score[2 * j + 1][2], score[2 * j + 1][3]);
    }
#pragma unroll
    for (int n = 0; n < HEAD / 8; ++n) {
      for (int i = 0; i < 4; ++i) sum[n][i] *= shrink[i / 2];
      const uint4 v =
          *reinterpret_cast<const uint4*>(values + at + (n * 8 + group) * page + quarter * 8);
      multiply(sum[n], chance[0][0], chance[0][1], chance[0][2], chance[0][3], v.x, v.y);
      multiply(sum[n], chance[1][0], chance[1][1], chance[1][2], chance[1][3], v.z, v.w);
    }
  }

  for (int half = 0; half < 2; ++half) {
    total[half] += __shfl_xor_sync(~0U, total[half], 1);
    total[half] += __shfl_xor_sync(~0U, total[half], 2);
    if (part.rank + group + 8 * half >= part.ranks) continue;
    const long long row =
        (static_cast<long long>(index) * KV_HEADS + kv) * queries + group + 8 * half;
    if (quarter == 0) weights[row] = make_float2(highest[half], total[half]);
    for (int n = 0; n < HEAD / 8; ++n)
      *reinterpret_cast<float2*>(sums + row * HEAD + n * 8 + quarter * 2) =
          make_float2(sum[n][2 * half], sum[n][2 * half + 1]);
  }
}

// Blocks of four warps; in x one for each slot, in y four heads. Joins the parts of a slot:
// mixed [slots, HEADS * HEAD]. Slots without parts get zeros.
extern "C" __global__ void join(const slot_parts* slots, const float* sums, const float2* weights,
                                half_t* mixed) {
  const int head = blockIdx.y * 4 + threadIdx.x / 32;
  if (head >= HEADS) return;
  const int lane = threadIdx.x % 32;
  const slot_parts slot = slots[blockIdx.x];
  const int kv = head / shared_heads;
  const int of_kv = head % shared_heads;
  const int rank = slot.member * shared_heads + of_kv;
  const auto row_of = [&](int i) {
    const bool is_own = i < slot.own_count;
    const long long part = is_own ? slot.own + i
                                  : slot.shared + (i - slot.own_count) * slot.shared_step +
                                        rank / queries;
    return (part * KV_HEADS + kv) * queries + (is_own ? of_kv : rank % queries);
  };
  const int count = slot.own_count + slot.shared_count;
  float highest = -infinity;
  for (int i = lane; i < count; i += 32) highest = fmaxf(highest, weights[row_of(i)].x);
  highest = over_warp(highest, larger);
  float total = 0;
  for (int i = lane; i < count; i += 32) {
    const float2 w = weights[row_of(i)];
    total += exp2f(w.x - highest) * w.y;
  }
  total = over_warp(total, add);
  float sum[HEAD / 32] = {};
  for (int i = 0; i < count; ++i) {
    const long long row = row_of(i);
    const float by = exp2f(weights[row].x - highest);
    for (int d = 0; d < HEAD / 32; ++d) sum[d] += by * sums[row * HEAD + lane + 32 * d];
  }
  half_t* to = mixed + (static_cast<long long>(blockIdx.x) * HEADS + head) * HEAD;
  for (int d = 0; d < HEAD / 32; ++d)
    to[lane + 32 * d] = narrow(count > 0 ? sum[d] / total : 0.0F);
}

constexpr int draw_threads = 512;
constexpr int stretch = draw_threads * 8;  // elements that a block reads at once
constexpr int stretches = (VOCABULARY + stretch - 1) / stretch;

// Returns the sum of x over the threads up to this one.
__device__ float sum_up_to(float x) {
  __shared__ float of_warp[draw_threads / 32];
  const int lane = threadIdx.x % 32;
  for (int by = 1; by < 32; by *= 2) {
    const float before = __shfl_up_sync(~0U, x, by);
    if (lane >= by) x += before;
  }
  __syncthreads();
  if (lane == 31) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  for (int i = 0; i < static_cast<int>(threadIdx.x) / 32; ++i) x += of_warp[i];
  return x;
}

// Blocks of draw_threads, one for each row of logits [rows, VOCABULARY]. Draws a token from the
// softmax of logits / temperature by inverse transform sampling with the row's uniform number in
// [0, 1), or takes the most likely token where the number is negative. Writes the token, and ln of
// its probability: under the softmax, of logits / temperature if it was drawn. ln p is NaN if a
// logit is not finite.
extern "C" __global__ void __launch_bounds__(draw_threads)
    draw(const half_t* logits, const float* uniform, float temperature, int* tokens,
         float* log_probabilities) {
  const half_t* row = logits + static_cast<long long>(blockIdx.x) * VOCABULARY;
  const float number = uniform[blockIdx.x];
  const bool is_greedy = number < 0;
  const float scale = is_greedy ? 1.0F : 1 / temperature;
  __shared__ float sum_of[stretches];
  __shared__ int chosen;
  __shared__ int last;  // token of the stretch that can be drawn at all
  if (threadIdx.x == 0) {
    chosen = VOCABULARY;
    last = 0;
  }

  float highest = -infinity;
  bool is_finite = true;
  for (int at = threadIdx.x * 8; at < VOCABULARY; at += stretch) {
    const eight x = load(row + at);
    for (const half_t one : x.at) {
      is_finite = is_finite && fabsf(widen(one)) < infinity;
      highest = fmaxf(highest, widen(one));
    }
  }
  highest = over_block<draw_threads>(highest, larger);
  const auto weigh = [&](half_t x) { return __expf((widen(x) - highest) * scale); };
  for (int s = 0; s < stretches; ++s) {
    const int at = s * stretch + threadIdx.x * 8;
    float sum = 0;
    if (at < VOCABULARY) {
      const eight x = load(row + at);
      for (const half_t one : x.at) sum += weigh(one);
    }
    sum = over_block<draw_threads>(sum, add);
    if (threadIdx.x == 0) sum_of[s] = sum;
  }
  const bool all_finite = over_block<draw_threads>(is_finite ? 0.0F : 1.0F, larger) == 0;
  float total = 0;
  for (int s = 0; s < stretches; ++s) total += sum_of[s];

  if (is_greedy) {
    for (int at = threadIdx.x * 8; at < VOCABULARY; at += stretch) {
      const eight x = load(row + at);
      for (int i = 0; i < 8; ++i)
        if (widen(x.at[i]) == highest) atomicMin(&chosen, at + i);
    }
  } else {
    // The stretch in which the cumulative sum passes the number, then the token in it.
    const float wanted = number * total;
    float before = 0;
    int s = 0;
    int latest = 0;
    for (int i = 0; i < stretches; ++i)
      if (sum_of[i] > 0) latest = i;
    while (s < latest && before + sum_of[s] <= wanted) before += sum_of[s++];
    const int at = s * stretch + threadIdx.x * 8;
    eight x = {};
    float sum = 0;
    if (at < VOCABULARY) {
      x = load(row + at);
      for (int i = 0; i < 8; ++i) {
        const float weight = weigh(x.at[i]);
        if (weight > 0) atomicMax(&last, at + i);
        sum += weight;
      }
    }
    const float after = before + sum_up_to(sum);
    if (at < VOCABULARY && after > wanted) {
      float up_to = after - sum;
      int i = 0;
      for (; i < 7; ++i) {
        up_to += weigh(x.at[i]);
        if (up_to > wanted) break;
      }
      atomicMin(&chosen, at + i);
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  // Rounding may leave the number above every sum.
  const int token = chosen < VOCABULARY ? chosen : last;
  tokens[blockIdx.x] = token;
  log_probabilities[blockIdx.x] =
      all_finite ? (widen(row[token]) - highest) * scale - logf(total) : nanf("");
}
