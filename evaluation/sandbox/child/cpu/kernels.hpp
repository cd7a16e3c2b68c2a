#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evaluation/sandbox/child/cpu/kernel_queue.hpp"
#include "evaluation/sandbox/protocol.capnp.h"
#include "messages/record.hpp"

namespace hone {

// The kernels of a shared object that this process has loaded. It runs their code, so only the
// process of the kernels may have one (kernel_server.hpp).
class cpu_kernels {
 public:
  // Loads the shared object at `path`. Throws std::runtime_error.
  explicit cpu_kernels(const std::string& path);
  ~cpu_kernels();

  // Returns the names and parameters of all kernels.
  record<schema::LoadedKernels> facts() const;
  // Fills static and dynamic shared memory with a byte of poison, so that nothing reads zeros
  // there.
  void poison_shared(unsigned char poison);
  // Returns true if a launch wrote beyond the dynamic shared memory that it asked for.
  bool shared_overrun() const;
  // Runs a launch. `arguments` holds a word per argument. Throws std::runtime_error with the reason
  // if a block cannot go on.
  void run(const queued_launch& launch, std::uint64_t* arguments);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace hone
