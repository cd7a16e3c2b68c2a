#include "policy/sampling/token_drawing.hpp"

#include <ATen/ATen.h>

namespace hone {

std::vector<drawn_token> draw_tokens(const at::Tensor& logits, std::span<const double> uniform,
                                     const sampling_distribution& s) {
  const std::int64_t n = logits.size(0);
  std::vector<std::int64_t> greedy_rows;
  for (std::int64_t i = 0; i < n; ++i) {
    if (uniform[static_cast<std::size_t>(i)] < 0) greedy_rows.push_back(i);
  }
  at::Tensor chosen;
  at::Tensor picked;
  if (static_cast<std::int64_t>(greedy_rows.size()) < n) {
    const at::Tensor log_probabilities = sampling_log_probabilities(logits, s);
    const at::Tensor cumulative = log_probabilities.exp().cumsum(-1, at::kDouble);
    const at::Tensor numbers =
        at::tensor(at::ArrayRef<double>(uniform.data(), uniform.size()), at::kDouble)
            .view({n, 1})
            .to(logits.device());
    chosen =
        at::searchsorted(cumulative, numbers * cumulative.narrow(-1, cumulative.size(-1) - 1, 1),
                         /*out_int32=*/false, /*right=*/true)
            .squeeze(-1)
            .clamp_max(cumulative.size(-1) - 1);
    picked = log_probabilities.gather(-1, chosen.unsqueeze(-1)).squeeze(-1);
  } else {
    chosen = at::empty({n}, logits.options().dtype(at::kLong));
    picked = at::empty({n}, logits.options());
  }
  if (!greedy_rows.empty()) {
    const at::Tensor rows = at::tensor(greedy_rows, at::kLong).to(logits.device());
    const at::Tensor its = logits.index_select(0, rows);
    const at::Tensor max_likely = its.argmax(-1);
    chosen = chosen.index_copy(0, rows, max_likely);
    picked = picked.index_copy(0, rows, token_log_probabilities(its, max_likely, {}));
  }
  picked = picked.to(at::kCPU).contiguous();
  chosen = chosen.to(at::kCPU).contiguous();
  std::vector<drawn_token> drawn;
  for (std::int64_t i = 0; i < n; ++i)
    drawn.push_back(
        {static_cast<token_id>(chosen.data_ptr<std::int64_t>()[i]), picked.data_ptr<float>()[i]});
  return drawn;
}

}  // namespace hone
