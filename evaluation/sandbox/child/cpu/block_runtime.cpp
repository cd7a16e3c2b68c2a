#include "evaluation/sandbox/child/cpu/block_runtime.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <boost/context/fiber.hpp>
#include <csetjmp>
#include <stdexcept>
#include <vector>

namespace hone {
namespace {

namespace context = boost::context;

constexpr std::size_t stack_bytes = 128U << 10U;
constexpr unsigned max_threads = 1024;
constexpr unsigned warp_size = 32;

// Stacks for the fibers of a block, each with a guard page below. Addresses are reserved once, and
// a stack takes memory only when it is used.
class stack_pool {
 public:
  using traits_type = context::stack_traits;

  context::stack_context allocate(unsigned index) {
    if (base_ == nullptr) {
      void* mapped = mmap(nullptr, slot_bytes() * max_threads, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (mapped == MAP_FAILED) throw std::runtime_error("out of memory for the threads' stacks");
      base_ = static_cast<char*>(mapped);
    }
    char* slot = base_ + index * slot_bytes() + guard_bytes();
    if (!open_[index]) {
      if (mprotect(slot, stack_bytes, PROT_READ | PROT_WRITE) != 0)
        throw std::runtime_error("out of memory for the threads' stacks");
      open_[index] = true;
    }
    context::stack_context stack;
    stack.size = stack_bytes;
    stack.sp = slot + stack_bytes;
    return stack;
  }

 private:
  static std::size_t guard_bytes() { return 4096; }
  static std::size_t slot_bytes() { return stack_bytes + guard_bytes(); }
  char* base_ = nullptr;
  std::array<bool, max_threads> open_{};
};

struct keep_stack {
  void deallocate(context::stack_context&) {}
};

enum class place : unsigned char { unstarted, running, at_block_barrier, at_warp, finished };

// The operations of one warp. Each completed operation leaves its values in a buffer. The lanes of
// the operation hold the buffer until they enter their next operation, so groups of lanes under
// different masks never disturb each other. A warp whose lanes run in step needs two buffers.
struct warp {
  struct buffer {
    std::array<std::uint64_t, warp_size> values;
    unsigned holders = 0;
  };
  std::array<buffer, warp_size + 1> results{};
  std::array<std::uint64_t, warp_size> offered{};    // each lane's value
  std::array<unsigned char, warp_size> result_of{};  // the buffer that each lane holds
  std::array<unsigned, warp_size> masks{};  // lanes that take part in each lane's operation
  unsigned waiting = 0;                     // lanes whose operation is incomplete
  unsigned finished = 0;                    // lanes that have returned

  void reset() {
    waiting = finished = 0;
    for (buffer& b : results) b.holders = 0;
  }
  // Completes the operation under `mask` if all its lanes have entered it or have returned.
  void complete_if_all_are_there(unsigned mask) {
    if ((mask & ~(waiting | finished)) != 0) return;
    const unsigned group = mask & waiting;
    for (unsigned lane = 0; lane < warp_size; ++lane)
      if ((group >> lane & 1U) != 0 && masks[lane] != mask) return;
    complete(group);
  }
  void enter(unsigned lane, unsigned mask, std::uint64_t value) {
    results[result_of[lane]].holders &= ~(1U << lane);
    offered[lane] = value;
    masks[lane] = mask | 1U << lane;
    waiting |= 1U << lane;
    complete_if_all_are_there(masks[lane]);
  }
  void finish(unsigned lane) {
    finished |= 1U << lane;
    for (unsigned other = 0; other < warp_size; ++other)
      if ((waiting >> other & 1U) != 0) complete_if_all_are_there(masks[other]);
  }

 private:
  void complete(unsigned group) {
    unsigned char index = 0;
    while (results[index].holders != 0) ++index;
    results[index].holders = group;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      if ((group >> lane & 1U) == 0) continue;
      results[index].values[lane] = offered[lane];
      result_of[lane] = index;
    }
    waiting &= ~group;
  }
};

struct block_state {
  const block_abi::kernel* kernel = nullptr;
  void* const* arguments = nullptr;
  unsigned threads = 0;
  // The thread that runs on the stack of the launch and schedules the others.
  unsigned root = 0;
  bool in_fibers = false;
  unsigned arrived = 0;
  unsigned finished = 0;
  std::array<unsigned, 2> votes{};
  unsigned barrier = 0;  // number of completed block barriers
  std::array<place, max_threads> places{};
  std::array<unsigned, max_threads> waits_for{};  // number of the barrier
  std::array<context::fiber, max_threads> fibers;
  std::array<warp, max_threads / warp_size> warps{};
  context::fiber scheduler;  // the context that the running fiber returns to
  stack_pool stacks;
  std::jmp_buf failure;
  std::string reason;
};

block_state& state() {
  // Never deleted: kernels may be interrupted anywhere.
  static auto* instance = new block_state;
  return *instance;
}

[[noreturn]] void fail(const std::string& reason) {
  state().reason = reason;
  std::longjmp(state().failure, 1);
}

unsigned lanes_of(unsigned warp_index) {
  const unsigned left = state().threads - warp_index * warp_size;
  return left >= warp_size ? 0xffffffffU : (1U << left) - 1U;
}

bool is_released(unsigned thread) {
  block_state& s = state();
  if (s.places[thread] == place::at_block_barrier) return s.barrier > s.waits_for[thread];
  if (s.places[thread] == place::at_warp)
    return (s.warps[thread / warp_size].waiting >> (thread % warp_size) & 1U) == 0;
  return true;
}

void complete_block_barrier() {
  block_state& s = state();
  if (s.arrived == 0 || s.arrived + s.finished != s.threads) return;
  s.arrived = 0;
  ++s.barrier;
}

void finish(unsigned thread) {
  block_state& s = state();
  s.places[thread] = place::finished;
  ++s.finished;
  complete_block_barrier();
  s.warps[thread / warp_size].finish(thread % warp_size);
}

void advance(unsigned thread) {
  block_state& s = state();
  if (s.places[thread] == place::unstarted) {
    s.places[thread] = place::running;
    const context::stack_context stack = s.stacks.allocate(thread);
    s.fibers[thread] =
        context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
                       keep_stack{}, [thread](context::fiber&& back) {
                         block_state& b = state();
                         b.scheduler = std::move(back);
                         b.kernel->run_thread(b.arguments, thread);
                         finish(thread);
                         return std::move(b.scheduler);
                       });
  }
  s.places[thread] = place::running;
  s.fibers[thread] = std::move(s.fibers[thread]).resume();
}

// Runs the other threads, each until its next barrier or warp operation, until `done` returns true
// and the root thread can continue.
template <class Done>
void schedule_until(Done done) {
  block_state& s = state();
  while (!done()) {
    bool progress = false;
    for (unsigned thread = 0; thread < s.threads && !done(); ++thread) {
      if (thread == s.root) continue;
      const place where = s.places[thread];
      if (where == place::finished || (where != place::unstarted && !is_released(thread))) continue;
      advance(thread);
      progress = true;
    }
    if (!progress && !done())
      fail(
          "threads of a block wait for each other in vain (a barrier or warp operation that not "
          "all of them reach)");
  }
}

void wait(unsigned self) {
  block_state& s = state();
  if (self == s.root) {
    schedule_until([self] { return is_released(self); });
  } else if (!is_released(self)) {
    s.scheduler = std::move(s.scheduler).resume();
  }
  s.places[self] = place::running;
}

// Turns the loop over a block's threads into fibers when the first of them reaches a barrier or a
// warp operation. Threads before `self` have returned, and later threads have not begun.
void enter_fibers(unsigned self) {
  block_state& s = state();
  if (s.in_fibers) return;
  s.in_fibers = true;
  s.root = self;
  s.arrived = 0;
  s.finished = self;
  for (unsigned i = 0; i * warp_size < s.threads; ++i) s.warps[i].reset();
  for (unsigned i = 0; i < s.threads; ++i) {
    s.places[i] = i < self ? place::finished : place::unstarted;
    if (i < self) s.warps[i / warp_size].finish(i % warp_size);
  }
  s.places[self] = place::running;
}

void block_barrier(unsigned self) {
  enter_fibers(self);
  block_state& s = state();
  s.places[self] = place::at_block_barrier;
  s.waits_for[self] = s.barrier;
  ++s.arrived;
  complete_block_barrier();
  wait(self);
}

unsigned block_count(unsigned self, unsigned predicate) {
  enter_fibers(self);
  block_state& s = state();
  const unsigned slot = s.barrier % 2;
  if (s.arrived == 0) s.votes[slot] = 0;
  s.votes[slot] += predicate != 0 ? 1 : 0;
  block_barrier(self);
  return s.votes[slot];
}

const std::uint64_t* warp_gather(unsigned self, unsigned mask, std::uint64_t value) {
  enter_fibers(self);
  warp& w = state().warps[self / warp_size];
  const unsigned lane = self % warp_size;
  state().places[self] = place::at_warp;
  w.enter(lane, mask & lanes_of(self / warp_size), value);
  wait(self);
  return w.results[w.result_of[lane]].values.data();
}

void finish_block(unsigned self) {
  finish(self);
  schedule_until([] { return state().finished == state().threads; });
  state().in_fibers = false;
}

void fail_with(const char* message) { fail(message); }

}  // namespace

const block_abi::runtime& block_runtime::interface() {
  static const block_abi::runtime functions = {block_barrier, block_count, warp_gather,
                                               finish_block, fail_with};
  return functions;
}

void block_runtime::run(const block_abi::module& module, const block_abi::kernel& kernel,
                        block_abi::size grid, block_abi::size block, void* const* arguments) {
  block_state& s = state();
  s.kernel = &kernel;
  s.arguments = arguments;
  s.threads = block.x * block.y * block.z;
  s.in_fibers = false;
  s.reason.clear();
  // Kernels are compiled without exceptions, so a block that cannot go on is left by a jump over
  // its frames.
  if (setjmp(s.failure) == 0) {
    module.set_launch(grid, block);
    kernel.run(arguments);
  } else {
    // The jump has left threads in the middle of the kernel. They are never resumed, and destroying
    // their fibers would unwind frames that were compiled without exceptions. The fibers are leaked
    // on purpose, and the next launch reuses their stacks.
    (void)new std::array<context::fiber, max_threads>(std::move(s.fibers));
    (void)new context::fiber(std::move(s.scheduler));
    throw std::runtime_error(s.reason);
  }
}

}  // namespace hone
