#pragma once

#include <memory>

#include "evaluation/backends/device.hpp"

namespace hone::benchmark {

// Opens the first GPU and reserves its launch core. Must be called before threads are started.
// Throws std::runtime_error if there is no GPU.
std::unique_ptr<device> open_gpu();

}  // namespace hone::benchmark
