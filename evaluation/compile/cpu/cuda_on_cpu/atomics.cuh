// Atomic functions. All threads of a launch run on one operating-system thread, so plain loads and
// stores are atomic.

#define HONE_ATOMIC(name, expression)                            \
  template <class T, class U>                                    \
  static inline T atomic##name(T* address, U operand) {          \
    const T old = *address, value = (T)operand;                  \
    *address = expression;                                       \
    return old;                                                  \
  }                                                              \
  template <class T, class U>                                    \
  static inline T atomic##name##_block(T* address, U operand) {  \
    return atomic##name(address, operand);                       \
  }                                                              \
  template <class T, class U>                                    \
  static inline T atomic##name##_system(T* address, U operand) { \
    return atomic##name(address, operand);                       \
  }
// clang-format off
HONE_ATOMIC(Add, old + value)
HONE_ATOMIC(Sub, old - value)
HONE_ATOMIC(Exch, value)
HONE_ATOMIC(Min, value < old ? value : old)
HONE_ATOMIC(Max, value > old ? value : old)
HONE_ATOMIC(And, old & value)
HONE_ATOMIC(Or, old | value)
HONE_ATOMIC(Xor, old ^ value)
HONE_ATOMIC(Inc, old >= value ? 0 : old + 1)
HONE_ATOMIC(Dec, old == 0 || old > value ? value : old - 1)
// clang-format on
#undef HONE_ATOMIC
template <class T, class U, class V>
static inline T atomicCAS(T* address, U compare, V value) {
  const T old = *address;
  if (old == (T)compare) *address = (T)value;
  return old;
}
