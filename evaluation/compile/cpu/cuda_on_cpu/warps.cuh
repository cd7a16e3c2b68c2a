// Warp operations. Lanes exchange their values through hone::gather() in thread_blocks.cuh.

static inline void __syncwarp(unsigned mask = 0xffffffffu) { hone::gather(mask, 0); }
static inline unsigned __activemask() { return 0xffffffffu; }

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned lane = hone::lane();
  const uint64_t* lanes = hone::gather(mask, hone::to_bits(value));
  return hone::from_bits<T>(
      lanes[(lane & ~(unsigned)(width - 1)) + ((unsigned)source & (unsigned)(width - 1))]);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = hone::lane(), first = lane & ~(unsigned)(width - 1);
  const uint64_t* lanes = hone::gather(mask, hone::to_bits(value));
  return lane - first >= delta ? hone::from_bits<T>(lanes[lane - delta]) : value;
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = hone::lane(), first = lane & ~(unsigned)(width - 1);
  const uint64_t* lanes = hone::gather(mask, hone::to_bits(value));
  return lane - first + delta < (unsigned)width ? hone::from_bits<T>(lanes[lane + delta]) : value;
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const unsigned lane = hone::lane(), other = lane ^ (unsigned)lane_mask;
  const uint64_t* lanes = hone::gather(mask, hone::to_bits(value));
  return other < (lane & ~(unsigned)(width - 1)) + (unsigned)width
             ? hone::from_bits<T>(lanes[other & 31u])
             : value;
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const uint64_t* lanes = hone::gather(mask, predicate != 0);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i) bits |= (mask >> i & 1u) && lanes[i] ? 1u << i : 0u;
  return bits;
}
static inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate == 0) == 0;
}
template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value) {
  const uint64_t bits = hone::to_bits(value);
  const uint64_t* lanes = hone::gather(mask, bits);
  unsigned same = 0;
  for (unsigned i = 0; i < 32; ++i) same |= (mask >> i & 1u) && lanes[i] == bits ? 1u << i : 0u;
  return same;
}
namespace hone {
template <class T, class Combine>
static inline T reduce(unsigned mask, T value, Combine combine) {
  const uint64_t* lanes = gather(mask, to_bits(value));
  bool any = false;
  T total{};
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1u)) continue;
    total = any ? combine(total, from_bits<T>(lanes[i])) : from_bits<T>(lanes[i]);
    any = true;
  }
  return total;
}
}  // namespace hone
#define HONE_REDUCE(name, type, expression)                                              \
  static inline type __reduce_##name##_sync(unsigned mask, type value) {                 \
    return hone::reduce(mask, value, [](type a, type b) -> type { return expression; }); \
  }
// clang-format off
HONE_REDUCE(add, unsigned, a + b)
HONE_REDUCE(min, unsigned, a < b ? a : b)
HONE_REDUCE(max, unsigned, a > b ? a : b)
HONE_REDUCE(and, unsigned, a & b)
HONE_REDUCE(or, unsigned, a | b)
HONE_REDUCE(xor, unsigned, a ^ b)
HONE_REDUCE(add, int, a + b)
HONE_REDUCE(min, int, a < b ? a : b)
HONE_REDUCE(max, int, a > b ? a : b)
// clang-format on
#undef HONE_REDUCE
