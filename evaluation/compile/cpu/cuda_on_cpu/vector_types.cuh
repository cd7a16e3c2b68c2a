// CUDA's vector types, such as float4, and dim3.

// `a2` and `a4` are the alignments of the types with two and four elements.
#define HONE_VECTORS(type, name, a2, a4)                                             \
  struct name##1 {                                                                   \
    type x;                                                                          \
  };                                                                                 \
  struct alignas(a2) name##2 {                                                       \
    type x, y;                                                                       \
  };                                                                                 \
  struct name##3 {                                                                   \
    type x, y, z;                                                                    \
  };                                                                                 \
  struct alignas(a4) name##4 {                                                       \
    type x, y, z, w;                                                                 \
  };                                                                                 \
  static inline name##1 make_##name##1(type x) { return {x}; }                       \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
// clang-format off
HONE_VECTORS(signed char, char, 2, 4)
HONE_VECTORS(unsigned char, uchar, 2, 4)
HONE_VECTORS(short, short, 4, 8)
HONE_VECTORS(unsigned short, ushort, 4, 8)
HONE_VECTORS(int, int, 8, 16)
HONE_VECTORS(unsigned int, uint, 8, 16)
HONE_VECTORS(long, long, 16, 16)
HONE_VECTORS(unsigned long, ulong, 16, 16)
HONE_VECTORS(long long, longlong, 16, 16)
HONE_VECTORS(unsigned long long, ulonglong, 16, 16)
HONE_VECTORS(float, float, 8, 16)
HONE_VECTORS(double, double, 16, 16)
// clang-format on
#undef HONE_VECTORS

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
      : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
