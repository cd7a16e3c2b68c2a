#pragma once

#include <functional>

namespace hone {

// Runs `work` on a new thread and waits for its end. Rethrows the exception that `work` throws.
// LibTorch and its libraries keep much of their state per thread, above all the plans that cuDNN
// has chosen, and no program may find the state that another program has left.
void on_a_thread(const std::function<void()>& work);

}  // namespace hone
