#pragma once

#include <memory>

namespace torch::jit {
struct Resolver;
}

namespace hone {

// Returns the resolver for the names in host programs and references: torch and its namespaces, F,
// math, launch, stream, join and Python's common exceptions. All other names are unknown. The first
// call compiles the functions of functional.py. Confined to one thread.
std::shared_ptr<torch::jit::Resolver> torchscript_names();

}  // namespace hone
