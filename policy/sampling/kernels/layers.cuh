// Kernels of gpu_layers: what lies between the matrix products of a decoder, and what the other
// files of this folder use, which are compiled together with this one, behind
// policy/network/elements.cuh, with these macros:
//   WIDTH, HEADS, KV_HEADS, HEAD (width of one), FEED (width of the feed-forward part), VOCABULARY
//   TABLE: pages in a row of the page table
//   EPSILON: of the norms
//   MMA_TYPE: the type of the elements in the names of instructions, "bf16" or "f16"
// WIDTH, FEED and VOCABULARY are multiples of 8, HEAD is a multiple of 32 and at most 128.

constexpr int page = 32;  // tokens of a page, which page_book.hpp names page_tokens
constexpr int shared_heads = HEADS / KV_HEADS;
constexpr int qkv_width = (HEADS + 2 * KV_HEADS) * HEAD;
constexpr int norm_threads = 128;

// The elements of a row that one thread of norm_threads holds: eight of every norm_threads * 8.
constexpr int norm_parts = (WIDTH / 8 + norm_threads - 1) / norm_threads;

// Writes the RMSNorm of the row that the block's threads hold: x / sqrt(mean(x^2) + EPSILON)
// weight.
__device__ void write_norm(const eight (&x)[norm_parts], const element* weight, element* to) {
  float squares = 0;
  for (int part = 0; part < norm_parts; ++part)
    for (const element one : x[part].at) squares += widen(one) * widen(one);
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
extern "C" __global__ void embed(const int* tokens, const element* embedding, const element* weight,
                                 element* x, element* h) {
  const long long row = blockIdx.x;
  const element* from = embedding + static_cast<long long>(tokens[row]) * WIDTH;
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
extern "C" __global__ void add_and_norm(const element* change, const element* bias,
                                        const element* weight, element* x, element* h) {
  const long long row = blockIdx.x;
  eight mine[norm_parts] = {};
  for (int part = 0; part < norm_parts; ++part) {
    const int at = (part * norm_threads + threadIdx.x) * 8;
    if (at >= WIDTH) break;
    const eight by = load(change + row * WIDTH + at);
    mine[part] = load(x + row * WIDTH + at);
    for (int i = 0; i < 8; ++i) {
      const element d = bias == nullptr ? by.at[i] : narrow(widen(by.at[i]) + widen(bias[at + i]));
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
extern "C" __global__ void rotate_and_keep(element* qkv, const element* bias, const element* q_norm,
                                           const element* k_norm, const float2* turns,
                                           const int* positions, const int* places, element* keys,
                                           element* values) {
  constexpr int pairs = HEAD / 2;
  constexpr int mine = (pairs + 31) / 32;
  const int lane = threadIdx.x % 32;
  const int place = places[blockIdx.x];
  const float2* turn = turns + static_cast<long long>(positions[blockIdx.x]) * pairs;
  for (int head = threadIdx.x / 32; head < HEADS + 2 * KV_HEADS; head += 4) {
    element* at = qkv + static_cast<long long>(blockIdx.x) * qkv_width + head * HEAD;
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
    const element* norm = head < HEADS ? q_norm : k_norm;
    float scale = 1;
    if (norm != nullptr && !is_value)
      scale = rsqrtf(over_warp(squares, add) / static_cast<float>(HEAD) + EPSILON);
    const int kv = is_value ? head - HEADS - KV_HEADS : head - HEADS;
    const long long kept = (static_cast<long long>(place / page) * KV_HEADS + kv) * (page * HEAD);
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
extern "C" __global__ void gate(const element* gate_up, const element* bias, element* product) {
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
    y.at[i] = gated_element(g.at[i], u.at[i]);
  }
  store(product + row * FEED + at, y);
}
