// Kernels that encrypt, convert, copy and compare memory.

// Encrypts memory with a key, or decrypts it: XORs each 16 bytes with 16 bytes of Philox. Contents
// cannot be read without the key.
extern "C" __global__ void scramble(void* memory, u64 bytes, u64 key) {
  const u64 step = (u64)gridDim.x * blockDim.x, at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  for (u64 i = at; i < bytes / 16; i += step) {
    uint4 x = ((uint4*)memory)[i];
    const uint4 r = philox(i, key, 0x5eedu);
    x.x ^= r.x;
    x.y ^= r.y;
    x.z ^= r.z;
    x.w ^= r.w;
    ((uint4*)memory)[i] = x;
  }
  for (u64 i = bytes / 16 * 16 + at; i < bytes; i += step)
    ((unsigned char*)memory)[i] ^= (unsigned char)philox(i, key, 0x5eeeu).x;
}

// Copies numbers to another type. As LibTorch does, it truncates toward zero for integers and
// converts to 16-bit types by way of float32.
extern "C" __global__ void convert(void* to, int to_type, const void* from, int from_type, u64 n) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  const bool exact =
      (from_type == int64 || from_type == int32) && (to_type == int64 || to_type == int32);
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    if (exact)
      store_integer(to, to_type, i,
                    from_type == int64 ? ((const long long*)from)[i] : ((const int*)from)[i]);
    else
      store(to, to_type, i, load(from, from_type, i));
  }
}

// A strided tensor; gpu_strided in gpu_context.cpp has the same layout.
struct strided {
  u64 n;  // number of elements
  int dimensions;
  int bytes;  // of an element
  long long sizes[12];
  long long strides[12];  // in elements
};

// Copies a strided tensor row-major.
extern "C" __global__ void gather(void* to, const void* from, strided s) {
  const u64 step = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < s.n; i += step) {
    u64 rest = i;
    long long at = 0;
    for (int d = s.dimensions - 1; d >= 0; --d) {
      at += (long long)(rest % s.sizes[d]) * s.strides[d];
      rest /= s.sizes[d];
    }
    switch (s.bytes) {
      case 1:
        ((unsigned char*)to)[i] = ((const unsigned char*)from)[at];
        break;
      case 2:
        ((unsigned short*)to)[i] = ((const unsigned short*)from)[at];
        break;
      case 4:
        ((unsigned*)to)[i] = ((const unsigned*)from)[at];
        break;
      default:
        ((u64*)to)[i] = ((const u64*)from)[at];
        break;
    }
  }
}

// Pairs of ranges of memory, aligned to 16 bytes, of which each row of the grid takes one. `pair`
// and `pairs` have the layouts of gpu_context::range_pair and of pair_list in gpu_context.cpp.
struct pair {
  void* a;
  void* b;
  u64 bytes;
};
struct pairs {
  pair of[128];
};

// Copies b to a in each pair.
extern "C" __global__ void copy_ranges(const pairs list) {
  const pair p = list.of[blockIdx.y];
  const u64 step = (u64)gridDim.x * blockDim.x, at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  for (u64 i = at; i < p.bytes / 16; i += step) ((uint4*)p.a)[i] = ((const uint4*)p.b)[i];
  for (u64 i = p.bytes / 16 * 16 + at; i < p.bytes; i += step)
    ((unsigned char*)p.a)[i] = ((const unsigned char*)p.b)[i];
}

// Sets *flag to 1 if a and b differ in any pair.
extern "C" __global__ void find_difference(const pairs list, unsigned* flag) {
  const pair p = list.of[blockIdx.y];
  const u64 step = (u64)gridDim.x * blockDim.x, at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  bool differs = false;
  for (u64 i = at; i < p.bytes / 16; i += step) {
    const uint4 x = ((const uint4*)p.a)[i], y = ((const uint4*)p.b)[i];
    differs |= x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w;
  }
  for (u64 i = p.bytes / 16 * 16 + at; i < p.bytes; i += step)
    differs |= ((const unsigned char*)p.a)[i] != ((const unsigned char*)p.b)[i];
  if (differs) *flag = 1;
}

// A range of bytes that should all be equal; gpu_range in gpu_context.hpp has the same layout.
struct range {
  u64 begin, end, expected;
};

// Sets *first to the smallest index of a range that holds a byte other than the expected one. Each
// block checks one range at a time.
extern "C" __global__ void find_damage(const unsigned char* base, const range* ranges,
                                       unsigned count, unsigned* first) {
  for (unsigned s = blockIdx.x; s < count; s += gridDim.x) {
    bool damaged = false;
    for (u64 i = ranges[s].begin + threadIdx.x; i < ranges[s].end; i += blockDim.x)
      damaged |= base[i] != ranges[s].expected;
    if (damaged) atomicMin(first, s);
  }
}
