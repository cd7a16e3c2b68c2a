#include "evaluation/compile/cpu/cuda_on_cpu.hpp"

#include <initializer_list>
#include <string_view>

#include "embedded/cpu_functions.hpp"
#include "embedded/cuda_on_cpu_atomics.hpp"
#include "embedded/cuda_on_cpu_constants.hpp"
#include "embedded/cuda_on_cpu_intrinsics.hpp"
#include "embedded/cuda_on_cpu_keywords.hpp"
#include "embedded/cuda_on_cpu_launch.hpp"
#include "embedded/cuda_on_cpu_math.hpp"
#include "embedded/cuda_on_cpu_standard_library.hpp"
#include "embedded/cuda_on_cpu_thread_blocks.hpp"
#include "embedded/cuda_on_cpu_vector_types.hpp"
#include "embedded/cuda_on_cpu_warps.hpp"

namespace hone {

const std::string& cuda_on_cpu() {
  static const std::string text = [] {
    std::string joined;
    // Each part uses declarations of the parts before it.
    for (const std::string_view part :
         {embedded::cuda_on_cpu_keywords, embedded::cuda_on_cpu_constants,
          embedded::cuda_on_cpu_vector_types, embedded::cuda_on_cpu_thread_blocks,
          embedded::cuda_on_cpu_warps, embedded::cuda_on_cpu_atomics, embedded::cuda_on_cpu_math,
          embedded::cuda_on_cpu_intrinsics, embedded::cuda_on_cpu_standard_library,
          embedded::cuda_on_cpu_launch, embedded::cpu_functions})
      joined += part;
    return joined;
  }();
  return text;
}

}  // namespace hone
