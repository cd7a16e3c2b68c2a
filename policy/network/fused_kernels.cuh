// The kernels of fused_operators.cpp, each of which reads and writes its tensors once where a
// composition of LibTorch's operators does so several times. elements.cuh precedes this file.
// Tensors are contiguous, and the sizes that are counted in eights are multiples of 8.

__device__ inline long long index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// The heads of a row of queries, keys and values, which lie together in qkv [rows, heads + 2
// kv_heads, 2 pairs], or apart in q, k and v.
struct head_layout {
  element* q;
  element* k;
  element* v;
  int heads;
  int kv_heads;

  __device__ element* find(long long row, int head, int width) const {
    if (head < heads) return q + (row * heads + head) * width;
    if (head < heads + kv_heads) return k + (row * kv_heads + head - heads) * width;
    return v + (row * kv_heads + head - heads - kv_heads) * width;
  }
};

// Rotates eight pairs of a head by the angle of the row's position; `direction` -1 rotates back.
// `turns` [positions, pairs] holds cosine and sine.
__device__ inline void rotate_eight(const element* from, element* to, const float2* turn, int pairs,
                                    float direction) {
  const eight low = load(from);
  const eight high = load(from + pairs);
  eight a;
  eight b;
  for (int i = 0; i < 8; ++i) {
    const float sine = turn[i].y * direction;
    a.at[i] = narrow(widen(low.at[i]) * turn[i].x - widen(high.at[i]) * sine);
    b.at[i] = narrow(widen(high.at[i]) * turn[i].x + widen(low.at[i]) * sine);
  }
  store(to, a);
  store(to + pairs, b);
}

// y = x [rows, heads, 2 pairs], rotated. A thread rotates eight pairs.
__global__ void rotate(const element* x, const float2* turns, const int* positions, element* y,
                       long long rows, int heads, int pairs, float direction) {
  const int eights = pairs / 8;
  const long long i = index();
  if (i >= rows * heads * eights) return;
  const int first = static_cast<int>(i % eights) * 8;
  const long long row = i / eights / heads;
  const long long at = i / eights * 2 * pairs + first;
  rotate_eight(x + at, y + at, turns + static_cast<long long>(positions[row]) * pairs + first,
               pairs, direction);
}

// Takes q, k and v apart and rotates q and k, or, with `backward`, rotates gradients back and puts
// them together.
template <bool backward>
__global__ void split_and_rotate(element* qkv, const float2* turns, const int* positions,
                                 head_layout apart, long long rows, int pairs) {
  const int eights = pairs / 8;
  const int all_heads = apart.heads + 2 * apart.kv_heads;
  const long long i = index();
  if (i >= rows * all_heads * eights) return;
  const int first = static_cast<int>(i % eights) * 8;
  const int head = static_cast<int>(i / eights % all_heads);
  const long long row = i / eights / all_heads;
  element* together = qkv + (row * all_heads + head) * 2 * pairs + first;
  element* alone = apart.find(row, head, 2 * pairs) + first;
  const element* from = backward ? alone : together;
  element* to = backward ? together : alone;
  if (head < apart.heads + apart.kv_heads) {
    rotate_eight(from, to, turns + static_cast<long long>(positions[row]) * pairs + first, pairs,
                 backward ? -1.0F : 1.0F);
  } else {
    store(to, load(from));
    store(to + pairs, load(from + pairs));
  }
}

// y = silu(gate) up, where a row of `gate_up` holds `width` gates and then as many ups.
__global__ void gated(const element* gate_up, element* y, long long rows, int width) {
  const int eights = width / 8;
  const long long i = index();
  if (i >= rows * eights) return;
  const long long at = i / eights * 2 * width + i % eights * 8;
  const eight g = load(gate_up + at);
  const eight u = load(gate_up + at + width);
  eight to;
  for (int k = 0; k < 8; ++k) {
    to.at[k] = gated_element(g.at[k], u.at[k]);
  }
  store(y + i * 8, to);
}

// The gradients of gate_up from those of y.
__global__ void gated_backward(const element* of_y, const element* gate_up, element* of_gate_up,
                               long long rows, int width) {
  const int eights = width / 8;
  const long long i = index();
  if (i >= rows * eights) return;
  const long long at = i / eights * 2 * width + i % eights * 8;
  const eight d = load(of_y + i * 8);
  const eight g = load(gate_up + at);
  const eight u = load(gate_up + at + width);
  eight dg;
  eight du;
  for (int k = 0; k < 8; ++k) {
    const float x = widen(g.at[k]);
    const float s = 1 / (1 + __expf(-x));
    dg.at[k] = narrow(widen(d.at[k]) * widen(u.at[k]) * s * (1 + x * (1 - s)));
    du.at[k] = narrow(widen(d.at[k]) * x * s);
  }
  store(of_gate_up + at, dg);
  store(of_gate_up + at + width, du);
}

// Rows of the norms are shared by teams of threads, of a block of norm_threads. A thread holds
// `parts` times eight elements of a row, or fewer.
constexpr int norm_threads = 128;

template <int team>
__device__ float over_team(float x) {
  return team == 32 ? over_warp(x, add) : over_block<norm_threads>(x, add);
}

// y = x + change, h = RMSNorm of y, and 1 / sqrt(mean(y^2) + epsilon) of each row.
template <int team, int parts>
__global__ void __launch_bounds__(norm_threads)
    add_and_norm(const element* x, const element* change, const element* weight, element* y,
                 element* h, float* inverses, long long rows, int width, float epsilon) {
  const int lane = threadIdx.x % team;
  const long long row =
      static_cast<long long>(blockIdx.x) * (norm_threads / team) + threadIdx.x / team;
  if (row >= rows) return;
  eight sum[parts];
  float squares = 0;
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    const int at = (part * team + lane) * 8;
    if (at >= width) break;
    sum[part] = load(x + row * width + at);
    const eight by = load(change + row * width + at);
    for (int i = 0; i < 8; ++i) {
      sum[part].at[i] = narrow(widen(sum[part].at[i]) + widen(by.at[i]));
      squares += widen(sum[part].at[i]) * widen(sum[part].at[i]);
    }
    store(y + row * width + at, sum[part]);
  }
  const float inverse = rsqrtf(over_team<team>(squares) / static_cast<float>(width) + epsilon);
  if (lane == 0) inverses[row] = inverse;
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    const int at = (part * team + lane) * 8;
    if (at >= width) break;
    const eight w = load(weight + at);
    eight to;
    for (int i = 0; i < 8; ++i)
      to.at[i] = narrow(widen(sum[part].at[i]) * inverse * widen(w.at[i]));
    store(h + row * width + at, to);
  }
}

// Adds the sums of a block's teams, one team after the other, so that a repetition is equal, and
// stores them as the block's row of `sums` [blocks, width].
template <int team, int parts>
__device__ void store_block_sums(const float (&mine)[parts][8], float* sums, int width) {
  __shared__ float of_block[parts * team * 8];
  const int lane = threadIdx.x % team;
  for (int turn = 0; turn < norm_threads / team; ++turn) {
    if (threadIdx.x / team == turn) {
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        for (int i = 0; i < 8; ++i) {
          float& sum = of_block[(part * team + lane) * 8 + i];
          sum = turn == 0 ? mine[part][i] : sum + mine[part][i];
        }
      }
    }
    __syncthreads();
  }
  for (int at = threadIdx.x; at < width; at += norm_threads)
    sums[static_cast<long long>(blockIdx.x) * width + at] = of_block[at];
}

// The gradient of x and change from those of y and h, and of the weight, as sums over some of the
// rows: [blocks, width]. With n = y inverse: of_y + inverse (w of_h - n mean(w of_h n)), and sums
// of of_h n.
template <int team, int parts>
__global__ void __launch_bounds__(norm_threads)
    add_and_norm_backward(const element* of_y, const element* of_h, const element* y,
                          const element* weight, const float* inverses, element* of_x,
                          float* of_weight, long long rows, int width) {
  constexpr int teams_of_block = norm_threads / team;
  const int lane = threadIdx.x % team;
  const int me = threadIdx.x / team;
  const long long teams = static_cast<long long>(gridDim.x) * teams_of_block;
  float weighed[parts][8] = {};
  for (long long row = static_cast<long long>(blockIdx.x) * teams_of_block + me; row < rows;
       row += teams) {
    const float inverse = inverses[row];
    eight d[parts];
    eight n[parts];
    eight to[parts] = {};
    // All that is read of the row is under way before anything is computed.
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const int at = (part * team + lane) * 8;
      if (at >= width) break;
      d[part] = load(of_h + row * width + at);
      n[part] = load(y + row * width + at);
      if (of_y != nullptr) to[part] = load(of_y + row * width + at);
    }
    float along = 0;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const int at = (part * team + lane) * 8;
      if (at >= width) break;
      const eight w = load(weight + at);
      for (int i = 0; i < 8; ++i) {
        const float normed = widen(n[part].at[i]) * inverse;
        along += widen(w.at[i]) * widen(d[part].at[i]) * normed;
        weighed[part][i] += widen(d[part].at[i]) * normed;
      }
    }
    along = over_team<team>(along) / static_cast<float>(width);
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const int at = (part * team + lane) * 8;
      if (at >= width) break;
      const eight w = load(weight + at);
      for (int i = 0; i < 8; ++i) {
        const float normed = widen(n[part].at[i]) * inverse;
        to[part].at[i] = narrow(widen(to[part].at[i]) +
                                inverse * (widen(w.at[i]) * widen(d[part].at[i]) - normed * along));
      }
      store(of_x + row * width + at, to[part]);
    }
  }
  store_block_sums<team, parts>(weighed, of_weight, width);
}

constexpr int row_threads = 512;

// What reading a row of logits x leaves for its gradient.
struct row_numbers {
  float highest;  // logit
  float scaled;   // sum of exp(scale (x - highest))
  float plain;    // sum of exp(x - highest)
  float entropy;  // of the softmax of x
};

// Blocks of row_threads, one for each row of logits [rows, vocabulary]: ln p of the row's target
// under the softmax of scale x, and the entropy of the softmax of x.
__global__ void __launch_bounds__(row_threads)
    read_logits(const element* logits, const long long* targets, int vocabulary, float scale,
                float* log_probabilities, float* entropies, row_numbers* numbers) {
  const element* row = logits + static_cast<long long>(blockIdx.x) * vocabulary;
  // One pass: the sums of each thread are relative to the largest of its logits so far.
  float mine = -infinity;
  float scaled = 0;
  float plain = 0;
  float weighed = 0;  // sum of exp(x - mine) (x - mine)
  const auto move_to = [&](float to) {
    if (mine > -infinity) {
      const float d = mine - to;
      const float e = __expf(d);
      scaled *= __expf(d * scale);
      weighed = e * (weighed + d * plain);
      plain *= e;
    }
    mine = to;
  };
  for (int at = threadIdx.x * 8; at < vocabulary; at += row_threads * 8) {
    const eight x = load(row + at);
    float top = mine;
    for (const element one : x.at) top = fmaxf(top, widen(one));
    if (top > mine) move_to(top);
    for (const element one : x.at) {
      const float d = widen(one) - mine;
      const float e = __expf(d);
      scaled += scale == 1 ? e : __expf(d * scale);
      plain += e;
      weighed += e > 0 ? e * d : 0;
    }
  }
  const float highest = over_block<row_threads>(mine, larger);
  if (mine > -infinity && mine < highest) move_to(highest);
  scaled = over_block<row_threads>(scaled, add);
  plain = over_block<row_threads>(plain, add);
  weighed = over_block<row_threads>(weighed, add);
  if (threadIdx.x != 0) return;
  const float entropy = logf(plain) - weighed / plain;
  log_probabilities[blockIdx.x] =
      (widen(row[targets[blockIdx.x]]) - highest) * scale - logf(scaled);
  entropies[blockIdx.x] = entropy;
  numbers[blockIdx.x] = {highest, scaled, plain, entropy};
}

// Replaces the logits by their gradients, from those of ln p and of the entropy:
// d ln p_t / dx_j = scale (1[j = t] - p_j), and dH / dx_j = -q_j (ln q_j + H), where p is the
// softmax of scale x and q that of x.
__global__ void __launch_bounds__(row_threads)
    grade_logits(element* logits, const long long* targets, int vocabulary, float scale,
                 const float* of_log_probabilities, const float* of_entropies,
                 const row_numbers* numbers) {
  element* row = logits + static_cast<long long>(blockIdx.x) * vocabulary;
  const row_numbers n = numbers[blockIdx.x];
  const float by = of_log_probabilities[blockIdx.x] * scale;
  const float by_each = -by / n.scaled;
  const float by_entropy = of_entropies == nullptr ? 0.0F : of_entropies[blockIdx.x];
  const int target = static_cast<int>(targets[blockIdx.x]);
  const float log_plain = logf(n.plain);
  for (int at = threadIdx.x * 8; at < vocabulary; at += row_threads * 8) {
    eight x = load(row + at);
    for (int k = 0; k < 8; ++k) {
      const float d = widen(x.at[k]) - n.highest;
      float gradient = by_each * __expf(d * scale);
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

// An update of AdamW (Loshchilov and Hutter 2017, arXiv 1711.05101) of weights that are `exact`,
// and of their copy in the policy's type, unless that is null. The gradient is shrunk as far as the
// norm of all gradients exceeds `max_norm`. A norm that is not finite leaves everything as it is.
__global__ void adamw(const element* gradient, float* exact, element* weight, float* mean,
                      float* square, long long count, const float* norm, float max_norm,
                      float beta1, float beta2, float correction1, float correction2, float epsilon,
                      float decay, float rate) {
  const long long i = index();
  if (i >= count || !(*norm < infinity)) return;
  const float g = widen(gradient[i]) * (*norm > max_norm ? max_norm / *norm : 1.0F);
  const float m = beta1 * mean[i] + (1 - beta1) * g;
  const float s = beta2 * square[i] + (1 - beta2) * g * g;
  const float w = exact[i] * decay - rate * (m / correction1) / (sqrtf(s / correction2) + epsilon);
  mean[i] = m;
  square[i] = s;
  exact[i] = w;
  if (weight != nullptr) weight[i] = narrow(w);
}
