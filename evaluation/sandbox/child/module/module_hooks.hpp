#pragma once

#include <ATen/dlpack.h>

#include <cstdint>

namespace hone {

// The functions of runner.py, which it passes to hone_serve_modules(). They run on the calling
// thread, which holds the interpreter's lock. Those that return a number return a negative one if
// they failed; the runner has called hone_fail() then. The same list is in runner.py.
struct module_hooks {
  // Executes the text of a task's module, whose get_inputs() and get_init_inputs() show the
  // arguments of a call and of the constructor, and that of a program. `class_name`: the program's
  // class.
  int (*load)(const char* task, const char* program, const char* class_name);
  // Makes an instance of the class after seeding PyTorch's generator. Any earlier one is released.
  int (*make)(std::uint64_t seed);
  // Returns a tensor of the instance by the name that a task gives it, or null.
  DLManagedTensor* (*find)(const char* name);
  // Takes the inputs of `calls` calls, `inputs` tensors each, and owns them from now on.
  int (*stage)(std::int64_t calls, std::int64_t inputs, DLManagedTensor** tensors);
  // Makes a staged call. Writes at most `max_module_outputs` outputs and returns their number.
  // Output i becomes row-major if bit i of `row_major` is set.
  int (*call)(std::int64_t number, std::uint64_t row_major, DLManagedTensor** outputs);
};

inline constexpr int max_module_outputs = 64;

}  // namespace hone

extern "C" {
// Serves sessions as hone-sandbox does, with the command socket as descriptor 3. Returns when that
// socket closes.
void hone_serve_modules(const hone::module_hooks* hooks);
// Notes why the hook that is running fails. `outcome`: hone::Outcome as a number.
void hone_fail(int outcome, const char* message);
}
