#include <algorithm>

#include "actors/node.hpp"

// The generators of a joined node, and the fetcher that brings them checkpoints.
namespace hone {
namespace {

template <class Self>
void end(Self self, const caf::actor_addr& one) {
  const auto alive = caf::actor_cast<caf::actor>(one);
  if (!alive) return;
  self->demonitor(one);
  self->send_exit(alive, caf::exit_reason::user_shutdown);
}

}  // namespace

void node_state::start_generators() {
  if (generation.generators.empty()) return;
  generators.resize(generation.generators.size());
  fetcher_options how = generation.fetching;
  how.has_own_thread = true;
  fetcher =
      self->spawn<caf::detached + caf::monitored>(fetcher_behavior, "fetcher " + options.name, how);
  watch(caf::actor_cast<caf::strong_actor_ptr>(fetcher));
  for (std::size_t i = 0; i < generators.size(); ++i) start_generator(i);
}

void node_state::start_generator(std::size_t index) {
  const planned_generator& plan = generation.generators[index];
  generator_options how = plan.options;
  how.learner = generation.learner;
  how.fetcher = fetcher;
  if (!how.gpu.device.empty())
    how.gpu.node = caf::actor_cast<node_actor>(caf::strong_actor_ptr(self->ctrl()));
  const auto generator = self->spawn<caf::detached + caf::monitored>(
      generator_behavior, "generator " + options.name + " " + plan.device + number_of(index), how,
      tasks, wiring.pool);
  generators[index].generator = generator.address();
  watch(caf::actor_cast<caf::strong_actor_ptr>(generator));
}

std::string node_state::number_of(std::size_t index) const {
  const auto begin = generation.generators.begin();
  const auto earlier = std::count_if(begin, begin + static_cast<std::ptrdiff_t>(index),
                                     [&](const planned_generator& other) {
                                       return other.device == generation.generators[index].device;
                                     });
  return earlier > 0 ? "#" + std::to_string(earlier) : "";
}

void node_state::stop_generators() {
  for (supervised_generator& one : generators) {
    end(self, one.generator);
    one.generator = {};
  }
  end(self, fetcher ? fetcher.address() : caf::actor_addr());
  fetcher = fetcher_actor();
}

}  // namespace hone
