#include "actors/generator.hpp"

#include <caf/all.hpp>

#include <algorithm>

#include "actors/timeouts.hpp"
#include "messages/clock.hpp"
#include "messages/names.hpp"
#include "policy/policy_device.hpp"
#include "policy/training/checkpoint.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

// Limit on the requests for draws without a reply.
constexpr std::size_t max_requested_draws = 8;

void store(const completion& from, schema::Rollout::Builder rollout) {
  auto tokens = rollout.initTokens(static_cast<unsigned>(from.tokens.size()));
  for (unsigned t = 0; t < tokens.size(); ++t) tokens.set(t, from.tokens[t]);
  auto log_probabilities =
      rollout.initLogProbabilities(static_cast<unsigned>(from.log_probabilities.size()));
  for (unsigned t = 0; t < log_probabilities.size(); ++t)
    log_probabilities.set(t, from.log_probabilities[t]);
  auto versions = rollout.initVersions(static_cast<unsigned>(from.versions.size()));
  for (unsigned v = 0; v < versions.size(); ++v) {
    versions[v].setVersion(from.versions[v].first);
    versions[v].setTokens(from.versions[v].second);
  }
  rollout.setTruncated(from.truncated);
}

// Returns the draw without what its prompt does not show: its first exemplars, and the attempt.
draw_record without_unshown(const draw_record& draw, std::size_t exemplars, bool has_attempt) {
  const auto all = draw->getExemplars();
  if (exemplars == all.size() && has_attempt == draw->hasAttempt()) return draw;
  capnp::MallocMessageBuilder scratch;
  scratch.setRoot(*draw);
  auto shown = scratch.getRoot<schema::Draw>();
  auto kept = shown.initExemplars(static_cast<unsigned>(exemplars));
  for (unsigned i = 0; i < kept.size(); ++i)
    kept.setWithCaveats(i, all[static_cast<unsigned>(all.size() - exemplars) + i]);
  if (!has_attempt) shown.disownAttempt();
  return copy_record<schema::Draw>(shown.asReader());
}

group_record make_group(const generator_state::open_draw& from,
                        const completion_sampler::finished_prompt& done) {
  const task_id task(from.draw->getTaskId());
  record_builder<schema::RolloutGroup> group;
  random_id<group_id>().store(group->initId());
  group->setOrigin(is_compared(from.draw->getStage()) ? schema::RolloutGroup::Origin::COMPARISON
                                                      : schema::RolloutGroup::Origin::POLICY);
  group->setDraw(*from.draw);
  group->setPrompt(from.prompt);
  group->setStartedMs(from.started_ms);
  group->setFinishedMs(unix_ms());
  auto rollouts = group->initRollouts(static_cast<unsigned>(done.completions.size()));
  std::map<variant_id, record<schema::Variant>> variants;
  for (unsigned i = 0; i < rollouts.size(); ++i) {
    const completion_sampler::sample& one = done.completions[i];
    const auto variant = make_variant(task, one.text);
    const variant_id id(variant->getId());
    variants.emplace(id, variant);
    random_id<rollout_id>().store(rollouts[i].initId());
    id.store(rollouts[i].initVariantId());
    rollouts[i].setText(one.text);
    store(one.how, rollouts[i]);
  }
  auto list = group->initVariants(static_cast<unsigned>(variants.size()));
  unsigned v = 0;
  for (const auto& [id, variant] : variants) list.setWithCaveats(v++, *variant);
  return group.finish();
}

}  // namespace

// Requests as many draws as the sampler has free slots for at once, so that the waiting times for
// their replies overlap.
void generator_state::request_draws() {
  if (stopping || !has_loaded || !pinned_draws.empty() || fetching_pins > 0) return;
  const std::size_t free = sampler->free_slots();
  const std::size_t wanted =
      std::min(max_requested_draws, group_size > 0 ? (free + group_size - 1) / group_size
                                                   : std::min<std::size_t>(free, 1));
  while (requested_draws < wanted) {
    ++requested_draws;
    self->request(pool, timeouts::draw_request, draw_atom_v)
        .then(
            [this](const draw_record& draw) {
              --requested_draws;
              take_draw(draw);
              request_draws();
            },
            [this](const caf::error&) {
              --requested_draws;  // the pool has no room at present, or the stage draws nothing
              repeat_later();
            });
  }
}

void generator_state::take_draw(const draw_record& draw) {
  if (stopping) return;
  group_size = std::max<std::size_t>(1, draw->getSamples());
  if (draw->getStage() == Stage::COMPARISON && draw->getPolicyVersion() != loaded) return pin(draw);
  submit_prompt(draw);
}

void generator_state::pin(const draw_record& draw) {
  ++fetching_pins;
  find_checkpoint(
      draw->getPolicyVersion(), true,
      [this, draw](const std::filesystem::path& folder) {
        --fetching_pins;
        pinned_draws.push_back({draw, folder});
        schedule_tick();
      },
      [this](const caf::error& e) { self->quit(e); });
}

template <class Use, class Otherwise>
void generator_state::find_checkpoint(std::uint64_t version, bool is_pinned, Use use,
                                      Otherwise otherwise) {
  if (!options.fetcher) return use(options.run_folder / checkpoint_name(version));
  self->request(options.fetcher, timeouts::fetch_request, fetch_atom_v, version, is_pinned)
      .then([use](const std::string& folder) { use(folder); },
            [otherwise](const caf::error& e) { otherwise(e); });
}

// Renders the prompt of a draw and submits it to the sampler. A prompt that leaves no room for a
// completion of max_new_tokens loses its first exemplars, because the best ones stand last, and
// then the attempt. Without both, any room is enough.
void generator_state::submit_prompt(const draw_record& draw) {
  const auto t = tasks->find(task_id(draw->getTaskId()));
  if (t == nullptr) return;
  for (prompt_facts facts = facts_for(*t, *draw);;) {
    const bool is_bare = facts.exemplars.empty() && !facts.attempt;
    std::string prompt = options.prompts->render(facts);
    const std::uint64_t started_ms = unix_ms();
    try {
      sampler->submit({next_ticket, prompt, draw->getSamples(),
                       is_bare ? answer_room::any : answer_room::whole,
                       draw->getArm() == schema::Draw::Arm::GREEDY, t,
                       std::string(view(draw->getDeviceType()))});
      open_draws[next_ticket++] = {
          without_unshown(draw, facts.exemplars.size(), facts.attempt.has_value()),
          std::move(prompt), started_ms};
      schedule_tick();
      return;
    } catch (const policy_error& e) {
      counts.failed();
      if (is_bare) {
        self->quit(caf::make_error(caf::sec::runtime_error, "task " + t->name + ": " + e.what()));
        return;
      }
    }
    if (facts.exemplars.empty()) {
      facts.attempt.reset();
    } else {
      facts.exemplars.erase(facts.exemplars.begin());
    }
  }
}

void generator_state::load(std::uint64_t version, const std::filesystem::path& checkpoint) {
  const activity::span busy(counts, "load weights");
  waits_for.reset();
  sampler->load(checkpoint, version);
  loaded = version;
  has_loaded = true;
}

void generator_state::load_newest() {
  has_newest = false;
  if (has_loaded && newest->getVersion() == loaded) return;
  const auto offer = options.exchange ? options.exchange->find(newest->getVersion()) : std::nullopt;
  if (!offer) return load(newest->getVersion(), newest_folder);
  if (has_loaded && offer->version == loaded) return;
  const activity::span busy(counts, "take weights");
  sampler->take(options.is_distant ? *offer->on_host : *offer->weights, offer->version);
  loaded = offer->version;
  has_loaded = true;
  if (sampler->unfinished_samples() > 0)
    waits_for = first_token{offer->made, sampler->tokens_generated()};
}

// Sampling goes on while a checkpoint is being copied. Of versions that come meanwhile, the fetcher
// copies only the last.
void generator_state::take_weights(const version_record& version) {
  // The learner announces a version when it is committed; it has handed later ones over since.
  if (announced && version->getVersion() < announced->getVersion()) return;
  announced = version;
  find_checkpoint(
      version->getVersion(), false,
      [this, version](const std::filesystem::path& folder) {
        if (newest && version->getVersion() < newest->getVersion()) return;
        newest = version;
        newest_folder = folder;
        has_newest = true;
        schedule_tick();
      },
      [this, version](const caf::error&) {
        if (version->getVersion() < announced->getVersion()) return;  // which is copied instead
        counts.failed();
        self->delayed_send(self, timeouts::fetch_again, weights_atom_v, version);
      });
}

bool generator_state::is_comparing() const {
  return !pinned_draws.empty() || fetching_pins > 0 ||
         std::any_of(open_draws.begin(), open_draws.end(), [](const auto& entry) {
           return entry.second.draw->getStage() == Stage::COMPARISON;
         });
}

void generator_state::load_pinned_version() {
  const std::uint64_t version = pinned_draws.front().draw->getPolicyVersion();
  load(version, pinned_draws.front().folder);
  while (!pinned_draws.empty() && pinned_draws.front().draw->getPolicyVersion() == version) {
    const draw_record draw = pinned_draws.front().draw;
    pinned_draws.pop_front();
    submit_prompt(draw);
  }
}

void generator_state::schedule_tick() {
  if (tick_is_due) return;
  tick_is_due = true;
  self->send(self, tick_atom_v);
}

// A compared version stays loaded until its draws are finished. All other samples use the newest
// version.
void generator_state::sample() {
  tick_is_due = false;
  if (stopping) return;
  if (has_newest && !is_comparing()) load_newest();
  if (!pinned_draws.empty() && sampler->unfinished_samples() == 0) load_pinned_version();
  if (sampler->unfinished_samples() > 0) {
    const activity::span busy(counts, "write");
    const auto end =
        std::chrono::steady_clock::now() +
        (lease.is_shared() ? timeouts::leased_sampling_slice : timeouts::sampling_slice);
    while (sampler->unfinished_samples() > 0 && std::chrono::steady_clock::now() < end) {
      for (const auto& done : sampler->step()) finish_group(done);
      note_first_token();
      if (sampler->free_slots() == 0 || requested_draws > 0) continue;
      if (!lease.is_shared()) break;
      // Under a lease the reply comes after this slice: ending the lease early for it would cost
      // more than an empty slot.
      request_draws();
    }
    counts.set_number("tokens", static_cast<double>(sampler->tokens_generated()));
    counts.set_number("version", static_cast<double>(loaded));
    for (const auto& [endpoint, usage] : sampler->usage()) {
      for (const auto& [name, value] : named_numbers(endpoint, usage))
        counts.set_number(name, value);
    }
  }
  request_draws();
  if (sampler->unfinished_samples() > 0 || !pinned_draws.empty()) schedule_tick();
}

void generator_state::note_first_token() {
  if (!waits_for || sampler->tokens_generated() == waits_for->tokens_before) return;
  const std::chrono::duration<double, std::milli> since =
      std::chrono::steady_clock::now() - waits_for->offered;
  counts.set_number("weights_ms", since.count());
  waits_for.reset();
}

void generator_state::finish_group(const completion_sampler::finished_prompt& done) {
  const auto found = open_draws.find(done.ticket);
  if (found == open_draws.end()) return;
  const group_record group = make_group(found->second, done);
  open_draws.erase(found);
  counts.processed(done.completions.size());
  submit_group(group);
}

void generator_state::submit_group(const group_record& group) {
  self->request(pool, timeouts::submit_request, submit_atom_v, group)
      .then([](done_atom) {},
            [this, group](const caf::error&) {
              counts.failed();
              unsubmitted.push_back(group);
              repeat_later();
            });
}

// A head that has gone refuses at once.
void generator_state::repeat_later() {
  if (repeats || stopping) return;
  repeats = true;
  self->delayed_send(self, timeouts::pool_retry, repeat_atom_v);
}

void generator_state::repeat() {
  repeats = false;
  if (stopping) return;
  for (const group_record& group : std::exchange(unsubmitted, {})) submit_group(group);
  request_draws();
}

generator_actor::behavior_type generator_behavior(
    generator_actor::stateful_pointer<generator_state> self, std::string name,
    generator_options options, std::shared_ptr<const task_table> tasks, pool_actor pool) {
  auto& s = self->state;
  s.self = self;
  s.options = std::move(options);
  s.tasks = std::move(tasks);
  s.pool = std::move(pool);
  s.counts = activity(std::move(name), "generator");
  s.lease = gpu_lease(s.options.gpu);
  // A joined node ends its generators itself; linked, one of them would end the pool.
  if (!s.options.fetcher) self->link_to(s.pool);
  if (s.options.learner) self->send(s.options.learner, join_atom_v);
  const auto attempt = [self](auto work) {
    try {
      work();
    } catch (const std::exception& e) {
      self->quit(caf::make_error(caf::sec::runtime_error, describe_failure(e)));
    }
  };
  attempt([&] {
    if (s.options.prepare) s.options.prepare();
    s.lease.run(self, [&s] { s.sampler = s.options.make_sampler(); });
  });
  return {
      [&s](weights_atom, const version_record& version) { s.take_weights(version); },
      [&s, self, attempt](grant_atom, std::uint64_t number) {
        attempt([&] { s.lease.granted(self, number); });
        return done_atom_v;
      },
      [&s, self](lease_atom) { s.lease.request_again(self); },
      [&s, self, attempt](tick_atom) { attempt([&] { s.lease.run(self, [&s] { s.sample(); }); }); },
      [&s](repeat_atom) { s.repeat(); },
      [&s](stop_atom) { s.stopping = true; },
      [&s](status_atom) {
        return s.counts.report(s.pinned_draws.size(),
                               s.sampler ? s.sampler->unfinished_samples() : 0);
      },
  };
}

}  // namespace hone
