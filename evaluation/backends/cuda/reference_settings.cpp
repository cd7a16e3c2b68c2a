#include "evaluation/backends/cuda/reference_settings.hpp"

#include <algorithm>
#include <chrono>

#include "evaluation/judge/inputs.hpp"
#include "evaluation/judge/timed_checks.hpp"

namespace hone {
namespace {

// Share of the tolerance that the reference may use up when it rounds to TF32.
constexpr double share_of_tf32 = 0.5;

bool takes_large(const tensor_spec& input) {
  return !is_floating(input.type) || input.type == dtype::float32 || input.type == dtype::float64;
}

}  // namespace

program_result<agreement> reference_agreement(gpu_sessions& sessions, gpu_task& on_gpu,
                                              const opened_settings& asked) {
  const gpu_sessions::reference_settings_scope scope(sessions, asked);
  gpu_session& session = sessions.reference(on_gpu.of());
  session.arrange(0, on_gpu.inputs().layouts, on_gpu.parameters().layouts, 1);
  session.write_inputs(0, on_gpu.inputs());
  session.write_parameters(on_gpu.parameters());
  const std::size_t set = 0;
  const auto deadline = std::chrono::steady_clock::now() + reference_call_limit;
  if (auto ran = session.run_anew({&set, 1}, deadline); !ran) return tl::unexpected(ran.error());
  const auto outputs = session.outputs(0);
  if (!outputs) return tl::unexpected(outputs.error());
  return on_gpu.compare(*outputs);
}

static bool bears_large_inputs(gpu_sessions& sessions, gpu_task& on_gpu, random_stream& random) {
  const task& t = on_gpu.of();
  if (!t.relaxed || !std::all_of(t.inputs.begin(), t.inputs.end(), takes_large)) return false;
  on_gpu.draw_parameters(distribution::declared, random.bits());
  on_gpu.draw_inputs(distribution::large, random.bits());
  opened_settings with_tf32;
  with_tf32.tf32 = true;
  try {
    on_gpu.expect(evidence::noise);
    if (on_gpu.flops() == 0 || !on_gpu.expects_finite()) return false;
    const auto found = reference_agreement(sessions, on_gpu, with_tf32);
    return found && !found->problem && found->worst_element <= share_of_tf32 &&
           found->rms <= share_of_tf32;
  } catch (const reference_error&) {
    return false;
  }
}

std::vector<distribution> usable_on_gpu(gpu_sessions& sessions, gpu_task& on_gpu,
                                        random_stream& random) {
  auto usable =
      usable_distributions(on_gpu.of(), random, [&](distribution how, std::uint64_t seed) {
        on_gpu.draw_parameters(how, random.bits());
        on_gpu.draw_inputs(how, seed);
        on_gpu.expect(evidence::own_types);
        return on_gpu.expects_finite();
      });
  if (bears_large_inputs(sessions, on_gpu, random)) usable.push_back(distribution::large);
  return usable;
}

}  // namespace hone
