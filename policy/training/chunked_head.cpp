#include "policy/training/chunked_head.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "policy/network/fused_operators.hpp"

namespace hone {
namespace {

// A loss's inputs for some tokens.
struct token_numbers {
  at::Tensor log_probabilities;
  at::Tensor entropies;
};

// Computes the logits of some rows and the numbers read from them, and discards the logits.
class head_reader {
 public:
  head_reader(const decoder& network, const decoder_weights& weights, const at::Tensor& targets,
              const sampling_distribution& s, std::int64_t max_logits, entropies use)
      : network_(network),
        weights_(weights),
        targets_(targets),
        sampling_(s),
        use_(use),
        is_fused_(is_plain(s) && network.config().vocabulary % 8 == 0 &&
                  can_fuse(weights.all().begin()->second)),
        rows_at_a_time_(std::max<std::int64_t>(
            1, (is_fused_ ? max_logits : std::min(max_logits, max_unfused_logits)) /
                   network.config().vocabulary)) {}

  bool takes_at_once(std::int64_t rows) const { return rows <= rows_at_a_time_; }

  token_numbers read(const at::Tensor& rows, std::int64_t begin, std::int64_t count) const {
    const at::Tensor its_rows = rows.narrow(0, begin, count);
    const at::Tensor its_targets = targets_.narrow(0, begin, count);
    if (is_fused_) {
      auto [log_probabilities, of_rows] = fused_token_numbers(
          network_.unconverted_head(weights_, its_rows), its_targets, sampling_.temperature);
      return {std::move(log_probabilities),
              use_ == entropies::read ? std::move(of_rows) : at::Tensor()};
    }
    const at::Tensor logits = network_.head(weights_, its_rows);
    token_numbers numbers{token_log_probabilities(logits, its_targets, sampling_), {}};
    if (use_ == entropies::read) {
      const at::Tensor all = at::log_softmax(logits, -1);
      numbers.entropies = -(all.exp() * all).sum(-1);
    }
    return numbers;
  }
  token_numbers read_all(const at::Tensor& rows) const {
    std::vector<at::Tensor> log_probabilities;
    std::vector<at::Tensor> entropies;
    for_parts(rows.size(0), [&](std::int64_t begin, std::int64_t count) {
      token_numbers part = read(rows, begin, count);
      log_probabilities.push_back(std::move(part.log_probabilities));
      if (part.entropies.defined()) entropies.push_back(std::move(part.entropies));
    });
    return {at::cat(log_probabilities), entropies.empty() ? at::Tensor() : at::cat(entropies)};
  }
  template <class Work>
  void for_parts(std::int64_t rows, const Work& work) const {
    for (std::int64_t begin = 0; begin == 0 || begin < rows; begin += rows_at_a_time_)
      work(begin, std::min(rows_at_a_time_, rows - begin));
  }

 private:
  const decoder& network_;
  const decoder_weights& weights_;
  const at::Tensor& targets_;
  const sampling_distribution& sampling_;
  entropies use_;
  bool is_fused_;  // own kernels, which write the gradients over the logits
  std::int64_t rows_at_a_time_;
};

// Computes a loss of the rows that `network` has made for `p`, and the gradients of the rows'
// graph.
at::Tensor backward_from(const at::Tensor& rows, const head_reader& head, const token_loss& loss) {
  if (head.takes_at_once(rows.size(0))) {
    const token_numbers numbers = head.read(rows, 0, rows.size(0));
    const at::Tensor value = loss(numbers.log_probabilities, numbers.entropies);
    value.backward();
    return value.detach();
  }
  // The rows become leaves, so that the logits of a part can be forgotten with their gradients.
  const at::Tensor leaves = rows.detach().requires_grad_();
  token_numbers numbers;
  {
    const c10::NoGradGuard no_gradients;
    numbers = head.read_all(leaves);
  }
  numbers.log_probabilities.requires_grad_();
  if (numbers.entropies.defined()) numbers.entropies.requires_grad_();
  const at::Tensor value = loss(numbers.log_probabilities, numbers.entropies);
  value.backward();
  const at::Tensor& asked = numbers.log_probabilities.grad();
  const at::Tensor asked_of_entropies =
      numbers.entropies.defined() ? numbers.entropies.grad() : at::Tensor();
  head.for_parts(rows.size(0), [&](std::int64_t begin, std::int64_t count) {
    const token_numbers part = head.read(leaves, begin, count);
    at::Tensor weighed = (part.log_probabilities * asked.narrow(0, begin, count)).sum();
    if (asked_of_entropies.defined())
      weighed = weighed + (part.entropies * asked_of_entropies.narrow(0, begin, count)).sum();
    weighed.backward();
  });
  rows.backward(leaves.grad());
  return value.detach();
}

}  // namespace

at::Tensor target_log_probabilities(const decoder& network, const decoder_weights& weights,
                                    const prediction& p, const sampling_distribution& s,
                                    std::int64_t max_logits) {
  const c10::NoGradGuard no_gradients;
  return head_reader(network, weights, p.targets, s, max_logits, entropies::ignored)
      .read_all(network.hidden_at(weights, p.tokens, p.lengths, p.rows))
      .log_probabilities;
}

at::Tensor add_gradients(const decoder& network, const decoder_weights& weights,
                         const prediction& p, const sampling_distribution& s,
                         std::int64_t max_logits, recomputation again, entropies use,
                         const token_loss& loss) {
  const head_reader head(network, weights, p.targets, s, max_logits, use);
  if (again == recomputation::logits)
    return backward_from(network.hidden_at(weights, p.tokens, p.lengths, p.rows), head, loss);
  const auto pass = network.checkpointed_hidden_at(weights, p.tokens, p.lengths, p.rows);
  const at::Tensor value = backward_from(*pass.rows, head, loss);
  pass.finish();
  return value;
}

}  // namespace hone
