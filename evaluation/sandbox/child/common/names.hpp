#pragma once

#include <memory>

namespace torch::jit {
struct Resolver;
}

namespace hone {

// How host programs and references resolve names: torch and its namespaces, F, math, and launch;
// anything else is unknown. The functional names that functional.py defines are compiled on the
// first call. One thread.
std::shared_ptr<torch::jit::Resolver> torchscript_names();

}  // namespace hone
