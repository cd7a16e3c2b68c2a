// The table of kernels that the sandbox loads, and the loops that run a launch.
//
// A launch runs one block after another and one thread after another, on one operating-system
// thread. Threads of a block that reach a barrier or a warp operation become fibers of the
// sandbox's block runtime. Kernels without barriers and warp operations stay a plain loop that the
// compiler may inline and vectorize.

namespace hone {

enum class parameter_kind : unsigned { pointer, integer, floating, boolean, other };

template <class T>
struct traits {
  static constexpr parameter_kind kind = parameter_kind::other;
};
template <class T>
struct traits<T*> {
  static constexpr parameter_kind kind = parameter_kind::pointer;
};
#define HONE_KIND(type, name)                                    \
  template <>                                                    \
  struct traits<type> {                                          \
    static constexpr parameter_kind kind = parameter_kind::name; \
  };
// clang-format off
HONE_KIND(bool, boolean)
HONE_KIND(float, floating)
HONE_KIND(double, floating)
HONE_KIND(char, integer)
HONE_KIND(signed char, integer)
HONE_KIND(unsigned char, integer)
HONE_KIND(short, integer)
HONE_KIND(unsigned short, integer)
HONE_KIND(int, integer)
HONE_KIND(unsigned, integer)
HONE_KIND(long, integer)
HONE_KIND(unsigned long, integer)
HONE_KIND(long long, integer)
HONE_KIND(unsigned long long, integer)
// clang-format on
#undef HONE_KIND

// The following layouts must match block_abi in evaluation/sandbox/child/cpu/block_runtime.hpp.

struct parameter {
  unsigned kind, bytes;
};
struct kernel {
  const char* name;
  unsigned parameter_count;
  const parameter* parameters;
  // Runs the whole grid.
  void (*run)(void* const* arguments);
  // Runs one thread of the current block, on a fiber.
  void (*run_thread)(void* const* arguments, unsigned self);
};
struct size {
  unsigned x, y, z;
};
struct module {
  unsigned version;
  unsigned kernel_count;
  const kernel* kernels;
  void (*bind)(const runtime* r);
  void (*set_launch)(size grid, size block);
  char* dynamic_shared;
  unsigned dynamic_shared_bytes;
  // Touches this thread's copy of the module's __shared__ variables.
  void* (*static_shared)();
};

template <unsigned... I>
struct indices {};
template <unsigned N, unsigned... I>
struct make_indices : make_indices<N - 1, N - 1, I...> {};
template <unsigned... I>
struct make_indices<0, I...> {
  using type = indices<I...>;
};
template <class T>
struct plain {
  using type = T;
};
template <class T>
struct plain<const T> {
  using type = T;
};

template <auto Kernel>
struct entry;
template <class... P, void (*Kernel)(P...)>
struct entry<Kernel> {
  static constexpr parameter parameters[sizeof...(P) + 1] = {
      {(unsigned)traits<typename plain<P>::type>::kind, (unsigned)sizeof(P)}..., {0, 0}};

  // Arguments are passed by value, so nothing that the kernel writes can change them, and the loops
  // can keep them in registers.
  static void run_grid(P... arguments) {
    const index3 grid = gridDim, block = blockDim;
    for (int z = 0; z < grid.z; ++z)
      for (int y = 0; y < grid.y; ++y)
        for (int x = 0; x < grid.x; ++x) {
          blockIdx = {x, y, z};
          run_block(block, arguments...);
        }
  }
  static inline void run_block(const index3 block, P... arguments) {
    for (int z = 0; z < block.z; ++z)
      for (int y = 0; y < block.y; ++y)
        for (int x = 0; x < block.x; ++x) {
          threadIdx = {x, y, z};
          Kernel(arguments...);
          if (diverted) {
            host->finish_block(self());
            diverted = false;
            return;
          }
        }
  }
  template <unsigned... I>
  static void unpack(void* const* arguments, indices<I...>) {
    run_grid(*(typename plain<P>::type*)arguments[I]...);
  }
  template <unsigned... I>
  static void unpack_thread(void* const* arguments, indices<I...>) {
    Kernel(*(typename plain<P>::type*)arguments[I]...);
  }

  static void run(void* const* arguments) {
    unpack(arguments, typename make_indices<sizeof...(P)>::type{});
  }
  static void run_thread(void* const* arguments, unsigned self) {
    const int at = (int)self;
    threadIdx = {at % blockDim.x, at / blockDim.x % blockDim.y, at / blockDim.x / blockDim.y};
    unpack_thread(arguments, typename make_indices<sizeof...(P)>::type{});
  }
  static constexpr kernel describe(const char* name) {
    return {name, sizeof...(P), parameters, &run, &run_thread};
  }
};

static void bind(const runtime* r) { host = r; }
static void set_launch(size grid, size block) {
  gridDim = {(int)grid.x, (int)grid.y, (int)grid.z};
  blockDim = {(int)block.x, (int)block.y, (int)block.z};
  diverted = false;
}
// The largest dynamic shared memory of a launch (max_shared_bytes in launch_checks.hpp) and one KiB
// of poison that shows writes beyond it.
alignas(1024) static char dynamic_shared[227 * 1024 + 1024];
static thread_local char shared_anchor;
static void* static_shared() { return &shared_anchor; }

}  // namespace hone
