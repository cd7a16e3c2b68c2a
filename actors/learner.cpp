#include "actors/learner.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "messages/clock.hpp"
#include "policy/checkpoint.hpp"

namespace hone {
namespace {

constexpr auto batch_limit = std::chrono::seconds(20);
constexpr auto commit_limit = std::chrono::seconds(60);
constexpr auto supervised_slice =
    std::chrono::milliseconds(200);  // of training between two looks at the mailbox
constexpr std::uint32_t all_that_is_ready = std::numeric_limits<std::uint32_t>::max();

}  // namespace

void learner_state::tick_soon(std::chrono::milliseconds delay) {
  if (delay.count() == 0) {
    self->send(self, tick_atom_v);
  } else {
    self->delayed_send(self, delay, tick_atom_v);
  }
}

// A new run commits its initial weights as the first version; a resumed one loads what it goes on
// from.
void learner_state::start() {
  next_version = options.next_version;
  if (options.chain.empty()) {
    plan->advance();
    commit({plan->stage(), 0, {}}, {}, false);
    return;
  }
  for (const version_record& version : options.chain) remember(version);
  plan->load(options.run_folder / std::string(view(head->getCheckpoint())));
  const auto replay = [this] {
    self->request(pool, commit_limit, replay_atom_v, static_cast<std::uint8_t>(Stage::SFT))
        .then(
            [this](const std::vector<scored_group_record>& groups) {
              for (const auto& group : groups) plan->admit(*group);
              admitted_in_all = groups.size();
              if (head->getComplete()) return finish(true);
              turns.take(self, [this] {
                // By other settings than before the stage may be over; everybody hears of a stage
                // through its first version.
                if (plan->advance()) return commit({plan->stage(), 0, {}}, {}, false);
                publish();
                tick_soon();
              });
            },
            [this](const caf::error& e) { self->quit(e); });
  };
  if (!options.leaves_branch) return replay();
  self->request(pool, commit_limit, branch_atom_v, head->getVersion())
      .then([replay](done_atom) { replay(); }, [this](const caf::error& e) { self->quit(e); });
}

void learner_state::go_on() {
  if (to_write) return write_and_commit(*std::exchange(to_write, std::nullopt));
  if (committing || finished) return;
  if (!plan) {  // its first turn has not come
    if (stopping) finish(false);
    return;
  }
  switch (plan->stage()) {
    case Stage::SFT:
      return train_supervised();
    case Stage::SELF_SUPERVISED: {
      if (stopping) return finish(false);
      const auto groups = static_cast<std::uint32_t>(options.plan.self_supervised.groups);
      return ask(Stage::SELF_SUPERVISED, groups, groups, false);
    }
    case Stage::CONTRASTIVE: {
      if (stopping) return finish(false);
      const auto groups = static_cast<std::uint32_t>(options.plan.contrastive.groups);
      return ask(Stage::CONTRASTIVE, groups, groups, options.plan.contrastive.one_per_task);
    }
    case Stage::COMPARISON:
      if (stopping) return finish(false);
      return compared_groups > 0 ? ask(Stage::COMPARISON, compared_groups, compared_groups, false)
                                 : compare();
  }
}

// Trains while the corpus is still being judged; what has become known joins in.
void learner_state::train_supervised() {
  ask(Stage::SFT, 1, all_that_is_ready, false);
  const auto needed = static_cast<std::size_t>(options.plan.sft.begin_with *
                                               static_cast<double>(options.corpus_groups));
  if (admitted_in_all >= options.corpus_groups && !plan->can_update()) {
    throw std::runtime_error("there is nothing to learn from: none of the " +
                             std::to_string(options.corpus_groups) +
                             " documents of the corpus is ok here (`hone pool ls` says why)");
  }
  const bool enough = admitted_in_all >= needed && plan->can_update();
  if (stopping &&
      (!enough || plan->sft_updates_left_in_step() == options.plan.sft.updates_per_step))
    return finish(false);
  if (!enough) return tick_soon(std::chrono::milliseconds(100));
  if (slice_waits) return;
  slice_waits = true;
  turns.take(self, [this] {
    slice_waits = false;
    train_supervised_slice();
  });
}

void learner_state::train_supervised_slice() {
  if (committing || finished) return;
  {
    const activity::span busy(counts, "sft");
    const auto end = std::chrono::steady_clock::now() + supervised_slice;
    while (plan->sft_updates_left_in_step() > 0 && std::chrono::steady_clock::now() < end) {
      plan->sft_update();
      counts.processed();
    }
  }
  if (plan->sft_updates_left_in_step() > 0 && !stopping) return tick_soon();
  learned_step learned{Stage::SFT, 0, plan->end_sft_step()};
  learned.step = plan->step();
  std::vector<group_id> groups = std::move(admitted);
  admitted.clear();
  plan->advance();
  commit(learned, groups, false);
}

void learner_state::ask(Stage stage, std::uint32_t at_least, std::uint32_t at_most, bool is_even) {
  if (asking == stage) return;
  asking = stage;
  self->request(pool, batch_limit, take_atom_v, static_cast<std::uint8_t>(stage), at_least, at_most,
                is_even)
      .then(
          [this, stage](const batch_record& batch) {
            if (asking == stage) asking.reset();
            take(batch);
          },
          [this, stage](const caf::error&) {
            if (asking != stage) return;  // given up for another wish
            asking.reset();
            if (stage != Stage::SFT) go_on();  // not yet; the same again
          });
}

void learner_state::take(const batch_record& batch) {
  if (batch->getStage() != plan->stage() || committing || finished) return;
  if (batch->getStage() == Stage::SFT) {
    // Ready groups stay ready until a step over them is committed, so the same ones come again.
    for (const auto scored : batch->getGroups()) {
      const group_id id(scored.getGroup().getId());
      if (std::find(admitted.begin(), admitted.end(), id) != admitted.end()) continue;
      plan->admit(scored);
      admitted.push_back(id);
      ++admitted_in_all;
    }
    return;
  }
  turns.take(self, [this, batch] { learn(batch); });
}

void learner_state::learn(const batch_record& batch) {
  if (committing || finished) return;
  std::vector<group_id> groups;
  for (const auto scored : batch->getGroups()) groups.emplace_back(scored.getGroup().getId());
  if (plan->stage() == Stage::COMPARISON) {
    commit({Stage::COMPARISON, 1, describe_batch(*batch)}, groups, true);
    return;
  }
  learned_step learned{plan->stage(), 0, {}};
  {
    const activity::span busy(counts, plan->stage() == Stage::CONTRASTIVE ? "grpo" : "likelihood");
    learned.numbers = plan->learn(*batch);
    counts.processed(groups.size());
  }
  learned.step = plan->step();
  plan->advance();
  commit(learned, groups, false);
}

// In the policy's turn.
void learner_state::commit(const learned_step& learned, const std::vector<group_id>& groups,
                           bool complete) {
  const std::uint64_t number = next_version++;
  const bool is_first = !head;
  record_builder<schema::PolicyVersion> version;
  version->setVersion(number);
  version->setParent(is_first ? number : head->getVersion());
  version->setDepth(is_first ? 0 : head->getDepth() + 1);
  version->setStage(plan->stage());
  version->setStep(static_cast<std::uint32_t>(plan->step()));
  version->setCheckpoint(checkpoint_name(number));
  version->setCreatedMs(unix_ms());
  version->setComplete(complete);
  record_builder<schema::TrainingStep> step;
  step->setVersion(number);
  step->setParent(version->getParent());
  step->setStage(is_first ? plan->stage() : head->getStage());
  auto ids = step->initGroups(static_cast<unsigned>(groups.size()));
  for (unsigned i = 0; i < ids.size(); ++i) groups[i].store(ids[i]);
  auto metrics = step->initMetrics(static_cast<unsigned>(learned.numbers.size()));
  unsigned m = 0;
  for (const auto& [name, value] : learned.numbers) {
    metrics[m].setName(name);
    metrics[m++].setValue(value);
  }
  committing = true;
  to_write = {plan->take_checkpoint(), version.finish(), step.finish(), learned};
  tick_soon();
}

// The checkpoint first, then one write that makes the step true.
void learner_state::write_and_commit(const taken_version& taken) {
  {
    const activity::span busy(counts, "checkpoint");
    const auto folder = options.run_folder / std::string(view(taken.version->getCheckpoint()));
    std::filesystem::remove_all(folder);  // left by a run that was killed before its commit
    taken.checkpoint(folder);
  }
  self->request(pool, commit_limit, commit_atom_v, taken.version, taken.step)
      .then(
          [this, version = taken.version, learned = taken.learned](done_atom) {
            committing = false;
            remember(version);
            if (options.metrics) options.metrics(head, learned);
            delete_old_checkpoints();
            publish();
            if (head->getComplete()) return finish(true);
            tick_soon();
          },
          [this](const caf::error& e) { self->quit(e); });
}

void learner_state::publish() {
  counts.set_number("version", static_cast<double>(head->getVersion()));
  counts.set_number("step", static_cast<double>(plan->step()));
  counts.set_number("steps", static_cast<double>(plan->steps()));
  counts.set_number("stage", static_cast<double>(plan->stage()));
  const auto left = plan->seconds_left();
  counts.set_number("stage_ends_s", left ? static_cast<double>(unix_ms()) / 1e3 + *left : 0);
  for (const generator_actor& generator : generators) self->send(generator, weights_atom_v, head);
}

// The policies before and after the contrastive stage write for the same prompts, and are judged
// afresh.
void learner_state::compare() {
  if (asking == Stage::COMPARISON || comparing) return;
  comparing = true;
  if (!before_contrast || options.plan.comparison_samples == 0) {
    return turns.take(self, [this] {
      if (!committing && !finished) commit({Stage::COMPARISON, 1, {}}, {}, true);
    });
  }
  const std::vector<std::uint64_t> versions = {*before_contrast, head->getVersion()};
  if (options.log)
    options.log("comparing version " + std::to_string(versions[0]) + " with version " +
                std::to_string(versions[1]) + ": " +
                std::to_string(options.plan.comparison_samples) + " samples a task each");
  self->request(pool, commit_limit, compare_atom_v, versions, options.plan.comparison_samples)
      .then(
          [this](std::uint32_t groups) {
            compared_groups = groups;
            ask(Stage::COMPARISON, groups, groups, false);
          },
          [this](const caf::error& e) { self->quit(e); });
}

void learner_state::finish(bool complete) {
  if (finished) return;
  finished = true;
  caf::anon_send(supervisor, finish_atom_v, complete);
}

void learner_state::remember(const version_record& version) {
  if (version->getStep() == 0) stage_ends.insert(version->getVersion());
  if (version->getStage() == Stage::CONTRASTIVE && version->getStep() == 0)
    before_contrast = version->getVersion();
  head = version;
}

void learner_state::delete_old_checkpoints() const {
  const auto folder = options.run_folder / "checkpoints";
  std::set<std::uint64_t, std::greater<>> numbers;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.empty() &&
        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
      numbers.insert(std::stoull(name));
  }
  std::size_t newest = 0;
  for (const std::uint64_t number : numbers) {
    if (newest++ < options.keep_checkpoints || stage_ends.contains(number)) continue;
    std::filesystem::remove_all(folder / std::to_string(number), ignored);
  }
}

learner_actor::behavior_type learner(learner_actor::stateful_pointer<learner_state> self,
                                     learner_options options, pool_actor pool,
                                     std::vector<generator_actor> generators,
                                     caf::actor supervisor) {
  auto& s = self->state;
  s.self = self;
  s.options = std::move(options);
  s.pool = std::move(pool);
  s.generators = std::move(generators);
  s.supervisor = std::move(supervisor);
  const auto attempt = [self](auto work) {
    try {
      work();
    } catch (const std::exception& e) {
      caf::anon_send(self->state.supervisor, fatal_atom_v, std::string("learner: ") + e.what());
      self->quit(caf::make_error(caf::sec::runtime_error, e.what()));
    }
  };
  self->link_to(s.pool);
  s.turns = gpu_turns(s.options.gpu);
  attempt([&] {
    s.turns.take(self, [&s] {
      if (s.finished) return;
      s.plan = s.options.make_curriculum();
      s.start();
    });
  });
  return {
      [self, attempt](use_atom, std::uint64_t turn) {
        attempt([&] { self->state.turns.use(self, turn); });
        return done_atom_v;
      },
      [self](lease_atom) { self->state.turns.ask_again(self); },
      [self, attempt](tick_atom) { attempt([&] { self->state.go_on(); }); },
      [self](stop_atom) {
        self->state.stopping = true;
        if (!self->state.committing) self->state.tick_soon();
      },
      [self](status_atom) { return self->state.counts.report(0, self->state.asking ? 1U : 0U); },
  };
}

}  // namespace hone
