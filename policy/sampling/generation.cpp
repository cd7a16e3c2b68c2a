#include "policy/sampling/generation.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>

#include "policy/files.hpp"
#include "policy/sampling/sequence_network.hpp"
#include "policy/work_progress.hpp"

namespace hone {

struct generation_engine::state {
  struct request {
    generation_request asked;
    std::uint32_t admitted = 0;
    std::uint32_t finished = 0;
    bool is_open = false;
    // The version that has read the prompt, and draws first tokens.
    std::optional<std::uint64_t> read_by;
    std::vector<completion> completions;
  };
  struct slot {
    std::uint64_t ticket = 0;
    std::uint32_t sample = 0;
    sequence_network::input next;
  };

  state(const decoder_config& c, const generation_options& o)
      : config(c), options(o), generator(at::make_generator<at::CPUGeneratorImpl>(o.seed)) {}

  std::vector<double> draw_numbers(std::size_t first);
  void admit();
  void take(const std::vector<drawn_token>& drawn, std::size_t first,
            std::vector<finished_request>& done);
  bool accept(slot& s, const drawn_token& drawn, std::vector<finished_request>& done);
  void release(std::size_t index);

  decoder_config config;
  generation_options options;
  at::Generator generator;
  std::unique_ptr<sequence_network> network;  // made with the first weights
  std::uint64_t version = 0;
  std::vector<slot> slots;
  std::map<std::uint64_t, request> requests;
  std::deque<std::uint64_t> queue;  // tickets with samples that have no slot yet
  std::uint64_t written = 0;
};

generation_engine::generation_engine(const decoder_config& config,
                                     const generation_options& options)
    : state_(std::make_unique<state>(config, options)) {}
generation_engine::~generation_engine() = default;

void generation_engine::set_weights(const decoder_weights& weights, std::uint64_t version) {
  const c10::InferenceMode inference;
  if (!state_->network) {
    const generation_options& o = state_->options;
    state_->network = make_sequence_network(
        state_->config, {o.slots, o.max_new_tokens, o.memory_share}, o.sampling, weights);
  }
  state_->network->set_weights(weights);
  state_->version = version;
}

std::uint64_t generation_engine::version() const { return state_->version; }

void generation_engine::submit(const generation_request& request) {
  const auto length = static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t answer =
      request.room == answer_room::whole ? state_->options.max_new_tokens : 1;
  if (length == 0 || length + answer > state_->config.context) {
    throw policy_error("a prompt of " + std::to_string(length) + " tokens leaves no room for " +
                       (answer > 1 ? std::to_string(answer) : "any") + " in a context of " +
                       std::to_string(state_->config.context));
  }
  auto& r = state_->requests[request.ticket];
  r.asked = request;
  r.completions.resize(request.samples);
  state_->queue.push_back(request.ticket);
}

// Gives the free slots to the waiting samples, in order. The network reads a prompt once for all of
// its samples.
void generation_engine::state::admit() {
  const auto has_slot = [&] { return static_cast<std::int64_t>(slots.size()) < options.slots; };
  std::size_t promised = slots.size();
  for (const std::uint64_t ticket : queue) {
    if (static_cast<std::int64_t>(promised) >= options.slots) break;
    request& r = requests.at(ticket);
    if (!r.is_open) r.is_open = network->open(ticket, r.asked.prompt);
    if (!r.is_open) break;
    promised += r.asked.samples - r.admitted;
  }
  for (const std::uint64_t ticket : network->read_prompts()) requests.at(ticket).read_by = version;
  while (!queue.empty() && has_slot()) {
    const std::uint64_t ticket = queue.front();
    request& r = requests.at(ticket);
    if (!r.read_by) break;
    while (r.admitted < r.asked.samples && has_slot() && network->attach(ticket))
      slots.push_back(
          {ticket, r.admitted++, {0, static_cast<std::int64_t>(r.asked.prompt.size())}});
    if (r.admitted < r.asked.samples) break;
    network->close(ticket);
    queue.pop_front();
  }
  if (slots.empty() && !queue.empty() && !network->has_unread())
    throw policy_error("keys and values of a prompt of " +
                       std::to_string(requests.at(queue.front()).asked.prompt.size()) +
                       " tokens and of one completion do not fit in generation.memory_share = " +
                       std::to_string(options.memory_share) + " of the GPU's memory");
}

// Returns the uniform numbers of the slots from `first` on. They come from the CPU generator on
// every device, so that a seed gives the same numbers everywhere.
std::vector<double> generation_engine::state::draw_numbers(std::size_t first) {
  const std::size_t n = slots.size() - first;
  std::vector<double> numbers(n, greedy);
  const auto is_greedy = [&](std::size_t i) {
    return options.sampling.temperature <= 0 ||
           requests.at(slots[first + i].ticket).asked.is_greedy;
  };
  bool all_greedy = true;
  for (std::size_t i = 0; i < n; ++i) all_greedy = all_greedy && is_greedy(i);
  if (all_greedy) return numbers;
  const at::Tensor drawn =
      at::rand({static_cast<std::int64_t>(n)}, generator, at::TensorOptions(at::kDouble));
  for (std::size_t i = 0; i < n; ++i) {
    if (!is_greedy(i)) numbers[i] = drawn.data_ptr<double>()[i];
  }
  return numbers;
}

// Gives a drawn token to each slot from `first` on. Appends the requests that finish to `done`.
void generation_engine::state::take(const std::vector<drawn_token>& drawn, std::size_t first,
                                    std::vector<finished_request>& done) {
  for (const drawn_token& one : drawn) {
    if (!std::isfinite(one.log_probability))
      throw policy_error("the policy's logits are not finite");
  }
  // The order is descending because release() moves the last slot, which must have its token by
  // then, into the place of a slot that ends.
  for (std::size_t i = drawn.size(); i-- > 0;) {
    if (accept(slots[first + i], drawn[i], done)) release(first + i);
  }
}

// Appends a token to the completion of a slot. Returns true if this token ends the completion.
bool generation_engine::state::accept(slot& s, const drawn_token& drawn,
                                      std::vector<finished_request>& done) {
  request& r = requests.at(s.ticket);
  completion& c = r.completions[s.sample];
  c.tokens.push_back(drawn.token);
  c.log_probabilities.push_back(drawn.log_probability);
  const std::uint64_t by = c.tokens.size() == 1 ? *r.read_by : version;
  if (c.versions.empty() || c.versions.back().first != by) c.versions.emplace_back(by, 0);
  ++c.versions.back().second;
  ++written;
  const bool ended = std::find(options.end_tokens.begin(), options.end_tokens.end(), drawn.token) !=
                         options.end_tokens.end() ||
                     (options.is_complete && options.is_complete(c.tokens));
  const bool is_full = static_cast<std::int64_t>(c.tokens.size()) >= options.max_new_tokens ||
                       s.next.position + 1 >= config.context;
  if (!ended && !is_full) {
    s.next.token = drawn.token;
    return false;
  }
  c.truncated = !ended;
  if (++r.finished == r.asked.samples) {
    done.push_back({s.ticket, std::move(r.completions)});
    requests.erase(s.ticket);
  }
  return true;
}

// Frees a slot. The last slot moves into its place, as in the network.
void generation_engine::state::release(std::size_t index) {
  network->release(index);
  slots[index] = slots.back();
  slots.pop_back();
}

std::vector<finished_request> generation_engine::step() {
  note_progress();
  const c10::InferenceMode inference;
  state& s = *state_;
  std::vector<finished_request> done;
  if (!s.slots.empty()) {
    std::vector<sequence_network::input> inputs;
    for (auto& slot : s.slots) {
      inputs.push_back(slot.next);
      ++slot.next.position;
    }
    s.take(s.network->decode(inputs, s.draw_numbers(0)), 0, done);
  }
  const std::size_t kept = s.slots.size();
  s.admit();
  if (s.slots.size() > kept) s.take(s.network->draw_first(kept, s.draw_numbers(kept)), kept, done);
  return done;
}

std::size_t generation_engine::active() const { return state_->slots.size(); }
std::size_t generation_engine::waiting() const {
  std::size_t count = 0;
  for (const std::uint64_t ticket : state_->queue) {
    const auto& r = state_->requests.at(ticket);
    count += r.asked.samples - r.admitted;
  }
  return count;
}
std::uint64_t generation_engine::tokens_generated() const { return state_->written; }

}  // namespace hone
