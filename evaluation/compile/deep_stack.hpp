#pragma once

#include <pthread.h>

#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

namespace hone {

// Runs `work` on a thread of its own and returns its result, or rethrows its exception. The
// thread's stack of 1 GiB allows recursion as deep as a document is long: std::regex calls itself
// for every character that a repetition matches, and the author of the text decides how many those
// are. The stack takes memory only as far as it is used. Throws std::runtime_error if the thread
// cannot be started.
template <class Work>
auto on_deep_stack(Work work) -> decltype(work()) {
  using result_type = decltype(work());
  constexpr std::size_t stack_bytes = 1ULL << 30U;
  struct errand {
    Work* work;
    std::optional<result_type> result;
    std::exception_ptr thrown;
  } one{&work, std::nullopt, nullptr};
  pthread_attr_t attributes{};
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread{};
  const int status = pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        auto& mine = *static_cast<errand*>(argument);
        try {
          mine.result.emplace((*mine.work)());
        } catch (...) {
          mine.thrown = std::current_exception();
        }
        return nullptr;
      },
      &one);
  pthread_attr_destroy(&attributes);
  if (status != 0) throw std::runtime_error("cannot start a thread for reading a block");
  pthread_join(thread, nullptr);
  if (one.thrown) std::rethrow_exception(one.thrown);
  return std::move(*one.result);
}

}  // namespace hone
