#include "cuda/captured_work.hpp"

#include <exception>

namespace hone {

captured_work::captured_work(CUstream stream, const std::function<void()>& work)
    : driver_(cuda_driver::get()), stream_(stream) {
  // Other threads may allocate memory meanwhile.
  driver_.check(driver_.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                "recording a CUDA graph");
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  CUgraph recorded = nullptr;
  const CUresult ended = driver_.cuStreamEndCapture(stream, &recorded);
  if (failure) {
    if (recorded != nullptr) (void)driver_.cuGraphDestroy(recorded);
    std::rethrow_exception(failure);
  }
  driver_.check(ended, "recording a CUDA graph");
  const CUresult made = driver_.cuGraphInstantiateWithFlags(&graph_, recorded, 0);
  (void)driver_.cuGraphDestroy(recorded);
  driver_.check(made, "making a CUDA graph");
}

captured_work::~captured_work() {
  if (graph_ != nullptr) (void)driver_.cuGraphExecDestroy(graph_);
}

void captured_work::queue() const {
  driver_.check(driver_.cuGraphLaunch(graph_, stream_), "queuing a CUDA graph");
}

}  // namespace hone
