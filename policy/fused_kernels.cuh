// The kernels of fused_operators.cpp, each of which reads and writes its tensors once where a
// composition of LibTorch's operators does so several times. ELEMENT is the type of the policy's
// weights: __nv_bfloat16, __half or float. Tensors are contiguous, and the sizes that are counted in
// eights are multiples of 8.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

using element = ELEMENT;

#define infinity __int_as_float(0x7f800000)

__device__ inline float widen(element x) { return static_cast<float>(x); }
__device__ inline element narrow(float x) { return static_cast<element>(x); }

struct alignas(16) eight {
  element at[8];
};

__device__ inline eight load(const element* from) { return *reinterpret_cast<const eight*>(from); }
__device__ inline void store(element* to, const eight& x) { *reinterpret_cast<eight*>(to) = x; }
__device__ inline long long index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// y = x [rows, heads, 2 pairs], rotated by the angle of the row's position; `direction` -1 rotates
// back. `turns` [positions, pairs] holds cosine and sine. A thread rotates eight pairs.
extern "C" __global__ void rotate(const element* x, const float2* turns, const int* positions,
                                  element* y, long long rows, int heads, int pairs,
                                  float direction) {
  const int eights = pairs / 8;
  const long long i = index();
  if (i >= rows * heads * eights) return;
  const int first = static_cast<int>(i % eights) * 8;
  const long long row = i / eights / heads;
  const long long at = i / eights * 2 * pairs + first;
  const float2* turn = turns + static_cast<long long>(positions[row]) * pairs + first;
  const eight low = load(x + at);
  const eight high = load(x + at + pairs);
  eight a;
  eight b;
  for (int k = 0; k < 8; ++k) {
    const float sine = turn[k].y * direction;
    a.at[k] = narrow(widen(low.at[k]) * turn[k].x - widen(high.at[k]) * sine);
    b.at[k] = narrow(widen(high.at[k]) * turn[k].x + widen(low.at[k]) * sine);
  }
  store(y + at, a);
  store(y + at + pairs, b);
}

// y = silu(gate) up.
extern "C" __global__ void gated(const element* gate, const element* up, element* y,
                                 long long eights) {
  const long long i = index();
  if (i >= eights) return;
  const eight g = load(gate + i * 8);
  const eight u = load(up + i * 8);
  eight to;
  for (int k = 0; k < 8; ++k) {
    const float x = widen(g.at[k]);
    to.at[k] = narrow(widen(narrow(x / (1 + __expf(-x)))) * widen(u.at[k]));
  }
  store(y + i * 8, to);
}

// The gradients of gate and up from that of y.
extern "C" __global__ void gated_backward(const element* of_y, const element* gate,
                                          const element* up, element* of_gate, element* of_up,
                                          long long eights) {
  const long long i = index();
  if (i >= eights) return;
  const eight d = load(of_y + i * 8);
  const eight g = load(gate + i * 8);
  const eight u = load(up + i * 8);
  eight dg;
  eight du;
  for (int k = 0; k < 8; ++k) {
    const float x = widen(g.at[k]);
    const float s = 1 / (1 + __expf(-x));
    dg.at[k] = narrow(widen(d.at[k]) * widen(u.at[k]) * s * (1 + x * (1 - s)));
    du.at[k] = narrow(widen(d.at[k]) * x * s);
  }
  store(of_gate + i * 8, dg);
  store(of_up + i * 8, du);
}

constexpr int row_threads = 512;

template <class Combine>
__device__ float over_block(float x, Combine combine) {
  __shared__ float of_warp[row_threads / 32];
  for (int mask = 16; mask > 0; mask /= 2) x = combine(x, __shfl_xor_sync(~0U, x, mask));
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = of_warp[0];
  for (int i = 1; i < row_threads / 32; ++i) x = combine(x, of_warp[i]);
  return x;
}

// What reading a row of logits x leaves for its gradient.
struct row_numbers {
  float highest;  // logit
  float scaled;   // sum of exp(scale (x - highest))
  float plain;    // sum of exp(x - highest)
  float entropy;  // of the softmax of x
};

// Blocks of row_threads, one for each row of logits [rows, vocabulary]: ln p of the row's target
// under the softmax of scale x, and the entropy of the softmax of x.
extern "C" __global__ void __launch_bounds__(row_threads)
    read_logits(const element* logits, const long long* targets, int vocabulary, float scale,
                float* log_probabilities, float* entropies, row_numbers* numbers) {
  const element* row = logits + static_cast<long long>(blockIdx.x) * vocabulary;
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  const auto add = [](float a, float b) { return a + b; };
  float highest = -infinity;
  for (int at = threadIdx.x * 8; at < vocabulary; at += row_threads * 8) {
    const eight x = load(row + at);
    for (const element one : x.at) highest = fmaxf(highest, widen(one));
  }
  highest = over_block(highest, larger);
  float scaled = 0;
  float plain = 0;
  float weighed = 0;
  for (int at = threadIdx.x * 8; at < vocabulary; at += row_threads * 8) {
    const eight x = load(row + at);
    for (const element one : x.at) {
      const float d = widen(one) - highest;
      const float e = __expf(d);
      scaled += scale == 1 ? e : __expf(d * scale);
      plain += e;
      weighed += e > 0 ? e * d : 0;
    }
  }
  scaled = over_block(scaled, add);
  plain = over_block(plain, add);
  weighed = over_block(weighed, add);
  if (threadIdx.x != 0) return;
  const float entropy = logf(plain) - weighed / plain;
  log_probabilities[blockIdx.x] =
      (widen(row[targets[blockIdx.x]]) - highest) * scale - logf(scaled);
  entropies[blockIdx.x] = entropy;
  numbers[blockIdx.x] = {highest, scaled, plain, entropy};
}

// Replaces the logits by their gradients, from those of ln p and of the entropy:
// d ln p_t / dx_j = scale (1[j = t] - p_j), and dH / dx_j = -q_j (ln q_j + H), where p is the softmax
// of scale x and q that of x.
extern "C" __global__ void __launch_bounds__(row_threads)
    grade_logits(element* logits, const long long* targets, int vocabulary, float scale,
                 const float* of_log_probabilities, const float* of_entropies,
                 const row_numbers* numbers) {
  element* row = logits + static_cast<long long>(blockIdx.x) * vocabulary;
  const row_numbers n = numbers[blockIdx.x];
  const float by = of_log_probabilities[blockIdx.x] * scale;
  const float by_entropy = of_entropies == nullptr ? 0.0F : of_entropies[blockIdx.x];
  const int target = static_cast<int>(targets[blockIdx.x]);
  const float log_plain = logf(n.plain);
  for (int at = threadIdx.x * 8; at < vocabulary; at += row_threads * 8) {
    eight x = load(row + at);
    for (int k = 0; k < 8; ++k) {
      const float d = widen(x.at[k]) - n.highest;
      float gradient = -by * __expf(d * scale) / n.scaled;
      if (at + k == target) gradient += by;
      if (by_entropy != 0) {
        const float q = __expf(d) / n.plain;
        if (q > 0) gradient -= by_entropy * q * (d - log_plain + n.entropy);
      }
      x.at[k] = narrow(gradient);
    }
    store(row + at, x);
  }
}

// An update of AdamW (Loshchilov and Hutter 2017, arXiv 1711.05101) of weights that are `exact`, and
// of their copy in the policy's type, unless that is null. The gradient is multiplied by `shrink`.
extern "C" __global__ void adamw(const element* gradient, float* exact, element* weight,
                                 float* mean, float* square, long long count, float shrink,
                                 float beta1, float beta2, float correction1, float correction2,
                                 float epsilon, float decay, float rate) {
  const long long i = index();
  if (i >= count) return;
  const float g = widen(gradient[i]) * shrink;
  const float m = beta1 * mean[i] + (1 - beta1) * g;
  const float s = beta2 * square[i] + (1 - beta2) * g * g;
  const float w =
      exact[i] * decay - rate * (m / correction1) / (sqrtf(s / correction2) + epsilon);
  mean[i] = m;
  square[i] = s;
  exact[i] = w;
  if (weight != nullptr) weight[i] = narrow(w);
}
