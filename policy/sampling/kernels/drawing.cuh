// Kernels of gpu_layers: drawing tokens.

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
// [0, 1], or takes the most likely token where the number is negative. Writes the token, and ln of
// its probability: under the softmax, of logits / temperature if it was drawn. ln p is NaN if a
// logit is not finite.
extern "C" __global__ void __launch_bounds__(draw_threads)
    draw(const element* logits, const float* uniform, float temperature, int* tokens,
         float* log_probabilities) {
  const element* row = logits + static_cast<long long>(blockIdx.x) * VOCABULARY;
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
    for (const element one : x.at) {
      is_finite = is_finite && fabsf(widen(one)) < infinity;
      highest = fmaxf(highest, widen(one));
    }
  }
  highest = over_block<draw_threads>(highest, larger);
  const auto weigh = [&](element x) { return __expf((widen(x) - highest) * scale); };
  for (int s = 0; s < stretches; ++s) {
    const int at = s * stretch + threadIdx.x * 8;
    float sum = 0;
    if (at < VOCABULARY) {
      const eight x = load(row + at);
      for (const element one : x.at) sum += weigh(one);
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
