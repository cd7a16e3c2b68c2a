// Kernels of gpu_layers: attention of the slots over pages of keys and values.

// A part of attention: some queries over some pages of one sequence. attention_plan.hpp makes
// these.
struct attention_part {
  int row;    // of the page table
  int first;  // page of the row
  int pages;
  int tokens;  // valid ones in the pages
  int member;  // index of the first slot of the queries in `members`
  int rank;    // of the first query: shared_heads queries for each member
  int ranks;   // queries of all members
  int unused;
};

// How a slot's parts are found again.
struct slot_parts {
  int own;  // first part of the slot's tokens
  int own_count;
  int shared;        // first part of its prompt
  int shared_count;  // chunks of the prompt
  int shared_step;   // parts of one chunk
  int member;        // its rank among the members
};

constexpr int queries = 16;  // of a part, rows of the tensor cores' matrices

__device__ inline unsigned both(float low, float high) {
  const element pair[2] = {narrow(low), narrow(high)};
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
    attend(const element* qkv, const element* keys, const element* values, const int* table,
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
    const element* from = qkv + slot * qkv_width + (kv * shared_heads + rank % shared_heads) * HEAD;
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
      const element* key = keys + at + (group / 2 * 8 + tile * 2 + group % 2) * HEAD + quarter * 8;
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
                                element* mixed) {
  const int head = blockIdx.y * 4 + threadIdx.x / 32;
  if (head >= HEADS) return;
  const int lane = threadIdx.x % 32;
  const slot_parts slot = slots[blockIdx.x];
  const int kv = head / shared_heads;
  const int of_kv = head % shared_heads;
  const int rank = slot.member * shared_heads + of_kv;
  const auto row_of = [&](int i) {
    const bool is_own = i < slot.own_count;
    const long long part =
        is_own ? slot.own + i
               : slot.shared + (i - slot.own_count) * slot.shared_step + rank / queries;
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
  element* to = mixed + (static_cast<long long>(blockIdx.x) * HEADS + head) * HEAD;
  for (int d = 0; d < HEAD / 32; ++d) to[lane + 32 * d] = narrow(count > 0 ? sum[d] / total : 0.0F);
}
