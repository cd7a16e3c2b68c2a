// Functions for cuda blocks, on both kinds of devices and in exports: several elements at a time,
// and results of all threads of a warp or block. over_tile() is for blocks with two dimensions of
// threads, over_warp() and over_block() are for blocks with one, of a multiple of 32 threads.
#ifdef __HONE_CPU__
#define HONE_SHARED static thread_local
#else
#define HONE_SHARED __shared__
#endif

namespace device {

// i / n and i % n for i >= 0 and n > 0. Divided without a sign, they take half the time.
__device__ inline int div(int i, int n) { return (int)((unsigned)i / (unsigned)n); }
__device__ inline int mod(int i, int n) { return (int)((unsigned)i % (unsigned)n); }

template <class T, int N>
struct alignas(N * sizeof(T)) pack {
  T at[N];
};

// Loads N of `size` elements, from `first` on, which must be a multiple of N. Beyond the last one
// there are copies of the first.
template <int N, class T, class Index, class Size>
__device__ inline pack<T, N> load(const T* from, Index first, Size size) {
  if (first + N <= size) return *reinterpret_cast<const pack<T, N>*>(from + first);
  pack<T, N> loaded;
#pragma unroll
  for (int j = 0; j < N; ++j) loaded.at[j] = from[first + j < size ? first + j : first];
  return loaded;
}

// Stores those of N elements, from `first` on, that are before `size`.
template <int N, class T, class Index, class Size>
__device__ inline void store(T* to, Index first, Size size, const pack<T, N>& values) {
  if (first + N <= size) {
    *reinterpret_cast<pack<T, N>*>(to + first) = values;
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (first + j < size) to[first + j] = values.at[j];
    }
  }
}

template <class T>
__device__ inline T of_other_lane(T value, int step) {
  return __shfl_xor_sync(0xffffffffu, value, step);
}

// What reductions know of the elements so far: add() takes one element, or what another thread
// knows. of_other_lane() returns what the thread of the same warp knows whose number differs by
// `step`, a power of two. T: the type in which sums are accumulated.
template <class T = float>
struct sum {
  T total = 0;
  __device__ void add(T value) { total += value; }
  __device__ void add(const sum& other) { total += other.total; }
  __device__ sum of_other_lane(int step) const { return {device::of_other_lane(total, step)}; }
};

template <class T = float>
struct product {
  T total = 1;
  __device__ void add(T value) { total *= value; }
  __device__ void add(const product& other) { total *= other.total; }
  __device__ product of_other_lane(int step) const { return {device::of_other_lane(total, step)}; }
};

template <bool IsUp>
__device__ inline bool is_beyond(float a, float b) {
  return IsUp ? a > b : a < b;
}

template <bool IsUp>
struct extreme {
  float best = IsUp ? -INFINITY : INFINITY;
  __device__ void add(float value) {
    if (is_beyond<IsUp>(value, best)) best = value;
  }
  __device__ void add(const extreme& other) { add(other.best); }
  __device__ extreme of_other_lane(int step) const { return {device::of_other_lane(best, step)}; }
};
using largest = extreme<true>;
using smallest = extreme<false>;

// Of several that are equal, the first.
template <bool IsUp>
struct place_of_extreme {
  float best = IsUp ? -INFINITY : INFINITY;
  int place = 0;
  __device__ void add(float value, int at) {
    if (is_beyond<IsUp>(value, best)) *this = {value, at};
  }
  __device__ void add(const place_of_extreme& other) {
    const bool is_earlier = other.best == best && other.place < place;
    if (is_beyond<IsUp>(other.best, best) || is_earlier) *this = other;
  }
  __device__ place_of_extreme of_other_lane(int step) const {
    return {device::of_other_lane(best, step), device::of_other_lane(place, step)};
  }
};
using place_of_largest = place_of_extreme<true>;
using place_of_smallest = place_of_extreme<false>;

// The largest element and the sum of exponentials of the differences to it. Differences are never
// fused with a product, so that the largest element's own is exactly 0.
template <class T = float>
struct exponentials {
  float largest = -INFINITY;
  T total = 0;
  __device__ void add(float value) {
    if (value > largest) {
      total = total * expf(__fsub_rn(largest, value)) + 1;
      largest = value;
    } else if (value > -INFINITY) {
      total += expf(__fsub_rn(value, largest));
    }
  }
  __device__ void add(const exponentials& other) {
    if (other.largest > largest) {
      total = total * expf(largest - other.largest) + other.total;
      largest = other.largest;
    } else if (other.largest > -INFINITY) {
      total += other.total * expf(other.largest - largest);
    }
  }
  __device__ exponentials of_other_lane(int step) const {
    return {device::of_other_lane(largest, step), device::of_other_lane(total, step)};
  }
};

// The mean and the sum of squared differences to it, by Welford's update and Chan's combination.
template <class T = float>
struct moments {
  T mean = 0;
  T squares = 0;
  T count = 0;
  __device__ void add(T value) {
    count += 1;
    const T step = value - mean;
    mean += step / count;
    squares += step * (value - mean);
  }
  __device__ void add(const moments& other) {
    if (other.count == 0) return;
    const T whole = count + other.count;
    const T step = other.mean - mean;
    mean += step * (other.count / whole);
    squares += other.squares + step * step * (count * other.count / whole);
    count = whole;
  }
  __device__ moments of_other_lane(int step) const {
    return {device::of_other_lane(mean, step), device::of_other_lane(squares, step),
            device::of_other_lane(count, step)};
  }
};

// What all 32 threads of a warp know together.
template <class State>
__device__ inline State over_warp(State state) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) state.add(state.of_other_lane(step));
  return state;
}

// What all threads of a block know together, which every thread of the block must call.
template <int Threads, class State>
__device__ inline State over_block(State state) {
  constexpr int warps = Threads / 32;
  HONE_SHARED double room[(warps * sizeof(State) + 7) / 8];
  State* const of_warps = reinterpret_cast<State*>(room);
  state = over_warp(state);
  __syncthreads();  // an earlier call may still read the room
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = state;
  __syncthreads();
  return over_warp(threadIdx.x % 32 < warps ? of_warps[threadIdx.x % 32] : State());
}

// Combines values of the threads with the same threadIdx.x, in a block of 32 by `Height` threads,
// which every thread of the block must call.
template <int Height, class State>
__device__ inline State over_tile(State state) {
  HONE_SHARED double room[(Height * 32 * sizeof(State) + 7) / 8];
  State* const of_threads = reinterpret_cast<State*>(room);
  __syncthreads();
  of_threads[threadIdx.y * 32 + threadIdx.x] = state;
  __syncthreads();
  State whole;
  for (int y = 0; y < Height; ++y) whole.add(of_threads[y * 32 + threadIdx.x]);
  return whole;
}

// Keeps what a block knows for a later kernel, and adds what was kept. `memory` has room for
// sizeof(State) / 4 elements for each place.
template <class State>
__device__ inline void keep(float* memory, int place, const State& state) {
  reinterpret_cast<State*>(memory)[place] = state;
}
template <class State>
__device__ inline void add_kept(State& state, const float* memory, int place) {
  state.add(reinterpret_cast<const State*>(memory)[place]);
}

}  // namespace device
#undef HONE_SHARED
