#include "evaluation/sandbox/child/cpu/kernel_table.hpp"

#include <algorithm>

namespace hone {

kernel_table::kernel_table(schema::LoadedKernels::Reader loaded) {
  for (const auto one : loaded.getKernels()) {
    known_kernel& added = kernels_.emplace_back();
    added.name = one.getName().cStr();
    for (const auto parameter : one.getParameters())
      added.parameters.push_back({static_cast<parameter_facts::kinds>(parameter.getKind()),
                                  static_cast<unsigned>(parameter.getBytes())});
  }
}

std::optional<checked_launch> kernel_table::check(const std::string& kernel,
                                                  const std::vector<std::int64_t>& grid,
                                                  const std::vector<std::int64_t>& block,
                                                  std::int64_t shared_bytes,
                                                  const std::vector<c10::IValue>& arguments) const {
  const auto found = std::find_if(kernels_.begin(), kernels_.end(),
                                  [&](const known_kernel& one) { return one.name == kernel; });
  if (found == kernels_.end())
    throw program_error(Outcome::LAUNCH_ERROR,
                        "the cuda block has no __global__ function '" + kernel + "'");
  const launch_size blocks = checked_grid(kernel, grid);
  const launch_size threads = checked_block(kernel, block);
  check_shared_bytes(kernel, shared_bytes);
  const marshaled_arguments marshaled(kernel, arguments, found->parameters, false);
  if (blocks.count() == 0) return std::nullopt;
  return checked_launch{{static_cast<std::uint32_t>(found - kernels_.begin()),
                         static_cast<std::uint32_t>(arguments.size()),
                         {blocks.x, blocks.y, blocks.z},
                         {threads.x, threads.y, threads.z},
                         static_cast<std::uint32_t>(shared_bytes),
                         0},
                        marshaled.values()};
}

}  // namespace hone
