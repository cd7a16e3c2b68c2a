#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace hone {

// Threads that serve a connection each. Safe on any thread.
class connection_threads {
 public:
  explicit connection_threads(std::size_t max_connections) : max_connections_(max_connections) {}
  ~connection_threads() { end_all(); }
  connection_threads(const connection_threads&) = delete;
  connection_threads& operator=(const connection_threads&) = delete;

  // Calls `serve` on a new thread. `end`, which another thread may call, makes it return soon.
  // Neither throws. Destroys both at once if there are too many connections, if no thread is left,
  // or after end_all(). Neither blocks nor throws.
  void start(std::function<void()> serve, std::function<void()> end);
  // Ends all connections, and waits for their threads.
  void end_all();

 private:
  struct served {
    std::function<void()> serve;
    std::function<void()> end;
    std::thread thread{};
    std::atomic<bool> has_ended = false;
  };

  std::size_t max_connections_;
  std::mutex lock_;  // guards the next two
  std::list<served> all_;
  bool has_stopped_ = false;
};

}  // namespace hone
