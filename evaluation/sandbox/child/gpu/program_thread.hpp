#pragma once

#include <functional>

namespace hone {

// Runs something on a thread of its own, to its end; what it throws is thrown here. LibTorch and
// its libraries keep much of what they learn for a thread, the plans that cuDNN has chosen above
// all: no program shall find what another one left.
void on_a_thread(const std::function<void()>& work);

}  // namespace hone
