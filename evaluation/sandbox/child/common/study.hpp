#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "evaluation/sandbox/protocol.capnp.h"

namespace at {
class Tensor;
}
namespace c10 {
struct IValue;
}

namespace hone {

using output_list = std::vector<at::Tensor>;

// Makes the runs that a study command lists. `forward` runs the reference once and may clear its
// arguments; `arguments` are those of the staged call. Adds the outputs of each run to `outputs`,
// and returns the number of decisions that the runs with `record` have recorded.
std::uint64_t study_call(schema::StudyCalls::Reader request,
                         const std::function<output_list(std::vector<c10::IValue>&)>& forward,
                         const std::vector<c10::IValue>& arguments,
                         std::vector<output_list>& outputs);

}  // namespace hone
