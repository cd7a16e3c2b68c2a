#include "policy/sampling/paged_network.hpp"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <map>

#include "cuda/captured_work.hpp"
#include "policy/files.hpp"
#include "policy/network/fused_operators.hpp"
#include "policy/policy_device.hpp"
#include "policy/sampling/gpu_layers.hpp"
#include "policy/sampling/page_book.hpp"
#include "policy/sampling/prompt_reader.hpp"
#include "policy/sampling/step_numbers.hpp"

namespace hone {
namespace {

// Returns the number of slots that a step for n slots is recorded for.
std::int64_t recorded_slots(std::int64_t n) {
  if (n <= 8) return n <= 1 ? 1 : n <= 2 ? 2 : n <= 4 ? 4 : 8;
  const std::int64_t step = n <= 64 ? 8 : n <= 256 ? 32 : 64;
  return (n + step - 1) / step * step;
}

class paged_network final : public sequence_network {
 public:
  paged_network(const decoder_config& config, const sequence_limits& limits,
                const sampling_distribution& sampling, const decoder_weights& like);
  ~paged_network() override {
    try {
      stream_.synchronize();
    } catch (const std::exception&) {
      // The GPU has failed, as the last call has said.
    }
  }

  void set_weights(const decoder_weights& weights) override;
  bool open(std::uint64_t ticket, const std::vector<token_id>& prompt) override;
  std::vector<std::uint64_t> read_prompts() override;
  bool has_unread() const override { return reader_->has_unread(); }
  bool attach(std::uint64_t ticket) override;
  void close(std::uint64_t ticket) override;
  void release(std::size_t slot) override;
  std::vector<drawn_token> decode(std::span<const input> inputs,
                                  std::span<const double> uniform) override;
  std::vector<drawn_token> draw_first(std::size_t first, std::span<const double> uniform) override;

 private:
  struct sample_slot {
    std::uint64_t ticket = 0;
    int row = 0;
  };
  std::int64_t answer_pages(const open_prompt& p) const {
    const auto length = static_cast<std::int64_t>(p.tokens.size());
    return pages_for(std::min(limits_.max_new_tokens, config_.context - length));
  }
  void prepare();
  void forget_if_unused(std::uint64_t ticket);
  void upload_table();
  void fill_step(std::span<const input> inputs, std::span<const double> uniform, std::int64_t n);
  void queue_step(std::int64_t n);
  bool draws_by_kernel() const { return sampling_.temperature <= 0 || is_plain(sampling_); }
  std::vector<drawn_token> drawn(std::size_t n) const;

  decoder_config config_;
  sequence_limits limits_;
  sampling_distribution sampling_;
  c10::Stream stream_;
  joined_weights weights_;
  std::int64_t parts_;
  std::unique_ptr<page_book> book_;
  std::unique_ptr<gpu_layers> layers_;  // made with the first weights, as the pages are
  std::unique_ptr<prompt_reader> reader_;
  std::unique_ptr<step_numbers> numbers_;  // made last: there once all is made
  at::Tensor table_host_, table_;
  std::map<std::int64_t, std::unique_ptr<captured_work>> steps_;  // by number of slots
  std::map<std::uint64_t, open_prompt> prompts_;
  std::vector<sample_slot> slots_;
};

c10::Stream stream_for(const decoder_weights& weights) {
  const c10::Device device = weights.all().begin()->second.device();
  return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

// Returns how many pages `share` of the GPU's memory holds, or all that the slots can use.
std::int64_t pages_in(const decoder_config& c, const sequence_limits& limits,
                      const c10::Device& device) {
  const auto bytes = static_cast<double>(gpu_memory_of(device.str()));
  const double page_bytes =
      static_cast<double>(2 * 2 * c.layers * c.kv_heads * c.head_width * page_tokens);
  const auto in_share = static_cast<std::int64_t>(limits.memory_share * bytes / page_bytes);
  return std::min(in_share, limits.slots * (pages_for(c.context) + 1));
}

paged_network::paged_network(const decoder_config& config, const sequence_limits& limits,
                             const sampling_distribution& sampling, const decoder_weights& like)
    : config_(config),
      limits_(limits),
      sampling_(sampling),
      stream_(stream_for(like)),
      parts_(max_parts(recorded_slots(limits.slots), config.kv_heads)) {}

void paged_network::set_weights(const decoder_weights& weights) {
  {
    // What has written the weights is queued on the caller's stream.
    const c10::impl::VirtualGuardImpl device(stream_.device_type());
    c10::Event written(stream_.device_type());
    written.record(device.getStream(stream_.device()));
    written.block(stream_);
  }
  const c10::StreamGuard guard(stream_);
  try {
    weights_.assign(weights, config_);
    if (!numbers_) prepare();
    stream_.synchronize();  // the caller may free the weights now
  } catch (const std::exception& e) {
    throw policy_error(describe_failure(e));
  }
}

// Makes what has the addresses of the weights, and the pages.
void paged_network::prepare() {
  const std::int64_t slots = recorded_slots(limits_.slots);
  const std::int64_t pages = pages_in(config_, limits_, stream_.device());
  const std::int64_t row_pages = pages_for(config_.context);
  book_ = std::make_unique<page_book>(pages, 2 * limits_.slots, row_pages);
  const gpu_layers::sizes most{std::max(slots, prompt_reader::piece_tokens), slots, pages,
                               row_pages, parts_};
  layers_ = std::make_unique<gpu_layers>(config_, weights_, most,
                                         static_cast<CUstream>(stream_.native_handle()));
  reader_ = std::make_unique<prompt_reader>(config_, *layers_, *book_, stream_.device());
  const auto size = static_cast<std::int64_t>(book_->table().size());
  table_host_ = at::zeros({size}, at::TensorOptions(at::kInt).pinned_memory(true));
  table_ = at::zeros({size}, weights_.embedding.options().dtype(at::kInt));
  numbers_ = std::make_unique<step_numbers>(slots, parts_, weights_.embedding);
}

bool paged_network::open(std::uint64_t ticket, const std::vector<token_id>& tokens) {
  open_prompt p;
  p.tokens = tokens;
  const std::int64_t pages = pages_for(static_cast<std::int64_t>(tokens.size()));
  // Each open prompt can still take the pages of one more answer, so some sample always fits.
  std::int64_t kept = answer_pages(p);
  for (const auto& [other, open] : prompts_) {
    if (!open.is_closed) kept = std::max(kept, answer_pages(open));
  }
  if (book_->free_pages() < pages + kept) return false;
  const auto row = book_->take(pages);
  if (!row) return false;
  p.row = *row;
  reader_->add(ticket, prompts_.emplace(ticket, std::move(p)).first->second);
  return true;
}

std::vector<std::uint64_t> paged_network::read_prompts() {
  const c10::StreamGuard guard(stream_);
  return reader_->read();
}

bool paged_network::attach(std::uint64_t ticket) {
  open_prompt& p = prompts_.at(ticket);
  const auto row = book_->take(answer_pages(p));
  if (!row) return false;
  slots_.push_back({ticket, *row});
  ++p.slots;
  return true;
}

void paged_network::close(std::uint64_t ticket) {
  prompts_.at(ticket).is_closed = true;
  forget_if_unused(ticket);
}

void paged_network::release(std::size_t slot) {
  const auto [ticket, row] = slots_[slot];
  book_->give_back(row);
  --prompts_.at(ticket).slots;
  slots_[slot] = slots_.back();
  slots_.pop_back();
  forget_if_unused(ticket);
}

void paged_network::forget_if_unused(std::uint64_t ticket) {
  const open_prompt& p = prompts_.at(ticket);
  if (!p.is_closed || p.slots > 0) return;
  book_->give_back(p.row);
  prompts_.erase(ticket);
}

void paged_network::upload_table() {
  if (!book_->has_changed()) return;
  const auto table = book_->table();
  std::copy(table.begin(), table.end(), table_host_.data_ptr<int>());
  table_.copy_(table_host_, /*non_blocking=*/true);
}

// Writes the numbers of a step. Rows from the last slot to `n` are those of no slot.
void paged_network::fill_step(std::span<const input> inputs, std::span<const double> uniform,
                              std::int64_t n) {
  std::map<std::uint64_t, std::size_t> index_of;
  std::vector<attention_plan::prompt> prompts;
  std::vector<attention_plan::slot> slots;
  step_numbers& to = *numbers_;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const sample_slot& s = slots_[i];
    const open_prompt& p = prompts_.at(s.ticket);
    const auto length = static_cast<std::int64_t>(p.tokens.size());
    const auto [found, is_new] = index_of.emplace(s.ticket, prompts.size());
    if (is_new) prompts.push_back({p.row, length});
    const std::int64_t own = inputs[i].position - length;
    slots.push_back({s.row, own + 1, found->second});
    to.tokens()[i] = inputs[i].token;
    to.positions()[i] = static_cast<int>(inputs[i].position);
    to.places()[i] = book_->place(s.row, own);
    to.uniform()[i] = static_cast<float>(uniform[i]);
  }
  for (std::size_t i = inputs.size(); i < static_cast<std::size_t>(n); ++i) {
    to.tokens()[i] = 0;
    to.positions()[i] = 0;
    to.places()[i] = -1;
    to.uniform()[i] = static_cast<float>(greedy);
    to.slots()[i] = {};
  }
  const attention_plan plan = plan_attention(slots, prompts, config_.heads / config_.kv_heads,
                                             max_parts(n, config_.kv_heads));
  *to.part_count() = static_cast<int>(plan.parts.size());
  std::copy(plan.parts.begin(), plan.parts.end(), to.parts());
  std::copy(plan.slots.begin(), plan.slots.end(), to.slots());
  std::copy(plan.members.begin(), plan.members.end(), to.members());
}

void paged_network::queue_step(std::int64_t n) {
  layers_->run(n, numbers_->device_rows(), [&](std::size_t layer) {
    layers_->attend_pages(layer, n, numbers_->device_plan(table_));
  });
  const at::Tensor logits = layers_->logits(layers_->hidden(n));
  if (draws_by_kernel())
    layers_->draw(logits, numbers_->device_uniform(), static_cast<float>(sampling_.temperature),
                  numbers_->device_drawn(), numbers_->device_drawn_log());
}

std::vector<drawn_token> paged_network::drawn(std::size_t n) const {
  const int* const numbers = numbers_->download().data_ptr<int>();
  stream_.synchronize();
  const auto* const logs = reinterpret_cast<const float*>(numbers + numbers_->max_slots());
  std::vector<drawn_token> all;
  for (std::size_t i = 0; i < n; ++i) all.push_back({static_cast<token_id>(numbers[i]), logs[i]});
  return all;
}

std::vector<drawn_token> paged_network::decode(std::span<const input> inputs,
                                               std::span<const double> uniform) {
  const c10::StreamGuard guard(stream_);
  const std::int64_t n = recorded_slots(static_cast<std::int64_t>(inputs.size()));
  fill_step(inputs, uniform, n);
  upload_table();
  numbers_->upload();
  auto& step = steps_[n];
  if (step) {
    step->queue();
  } else {
    // The first step of its size runs as it is, because the libraries prepare themselves in it.
    queue_step(n);
    stream_.synchronize();
    step = std::make_unique<captured_work>(static_cast<CUstream>(stream_.native_handle()),
                                           [&] { queue_step(n); });
  }
  if (draws_by_kernel()) return drawn(inputs.size());
  const auto active = static_cast<std::int64_t>(inputs.size());
  return draw_tokens(layers_->last_logits(active).to(at::kFloat), uniform, sampling_);
}

std::vector<drawn_token> paged_network::draw_first(std::size_t first,
                                                   std::span<const double> uniform) {
  const c10::StreamGuard guard(stream_);
  std::vector<at::Tensor> rows;
  for (std::size_t i = first; i < slots_.size(); ++i)
    rows.push_back(prompts_.at(slots_[i].ticket).last_logits);
  const at::Tensor logits = at::cat(rows, 0);
  if (!draws_by_kernel()) return draw_tokens(logits.to(at::kFloat), uniform, sampling_);
  for (std::size_t i = 0; i < rows.size(); ++i)
    numbers_->uniform()[i] = static_cast<float>(uniform[i]);
  numbers_->upload();
  layers_->draw(logits, numbers_->device_uniform(), static_cast<float>(sampling_.temperature),
                numbers_->device_drawn(), numbers_->device_drawn_log());
  return drawn(rows.size());
}

}  // namespace

bool can_use_pages(const decoder_config& config, const decoder_weights& weights) {
  const at::Tensor& any = weights.all().begin()->second;
  return can_fuse(any) && any.scalar_type() != at::kFloat && config.head_width % 32 == 0 &&
         config.head_width <= 128 && config.heads / config.kv_heads <= part_queries &&
         config.width % 8 == 0 && config.feed_forward % 8 == 0 && config.vocabulary % 8 == 0;
}

std::unique_ptr<sequence_network> make_paged_network(const decoder_config& config,
                                                     const sequence_limits& limits,
                                                     const sampling_distribution& sampling,
                                                     const decoder_weights& like) {
  return std::make_unique<paged_network>(config, limits, sampling, like);
}

}  // namespace hone
