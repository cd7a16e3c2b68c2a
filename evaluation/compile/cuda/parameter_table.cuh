// Follows cuda_prelude.cuh: a table of a kernel's parameters, as an object in the cubin.
// read_parameter_table() in cubin.cpp reads it. The numbers of the kinds are those of
// schema::Kernel::Parameter::Kind.
namespace hone {

template <class T>
struct kind_of {
  static constexpr unsigned value = 4;
};
template <class T>
struct kind_of<T*> {
  static constexpr unsigned value = 0;
};
#define HONE_KIND(type, number)               \
  template <>                                 \
  struct kind_of<type> {                      \
    static constexpr unsigned value = number; \
  };
// clang-format off
HONE_KIND(bool, 3)
HONE_KIND(float, 2)
HONE_KIND(double, 2)
HONE_KIND(char, 1)
HONE_KIND(signed char, 1)
HONE_KIND(unsigned char, 1)
HONE_KIND(short, 1)
HONE_KIND(unsigned short, 1)
HONE_KIND(int, 1)
HONE_KIND(unsigned, 1)
HONE_KIND(long, 1)
HONE_KIND(unsigned long, 1)
HONE_KIND(long long, 1)
HONE_KIND(unsigned long long, 1)
// clang-format on
#undef HONE_KIND

template <class Function>
struct parameters;
template <class... P>
struct parameters<void (*)(P...)> {
  unsigned count = sizeof...(P);
  // One pair more than there are parameters, because an array cannot be empty.
  unsigned kind_and_bytes[2 * sizeof...(P) + 2];
  constexpr parameters() : kind_and_bytes{} {
    unsigned i = 0;
    ((kind_and_bytes[i] = kind_of<P>::value, kind_and_bytes[i + 1] = sizeof(P), i += 2), ...);
  }
};

}  // namespace hone
