#include "actors/learner.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "actors/error_text.hpp"
#include "actors/timeouts.hpp"
#include "messages/names.hpp"
#include "policy/policy_device.hpp"
#include "policy/training/checkpoint.hpp"

namespace hone {
namespace {

constexpr std::uint32_t all_ready_groups = std::numeric_limits<std::uint32_t>::max();

// Of a stream's documents that were judged, at most this share may be wrong, from so many on.
constexpr double max_wrong_share = 0.01;
constexpr std::size_t min_sampled_documents = 100;

// Returns the groups of all batches as one.
batch_record joined(const std::vector<batch_record>& parts) {
  if (parts.size() == 1) return parts.front();
  std::size_t count = 0;
  for (const batch_record& part : parts) count += part->getGroups().size();
  record_builder<schema::TrainingBatch> whole;
  whole->setId(parts.front()->getId());
  whole->setStage(parts.front()->getStage());
  auto groups = whole->initGroups(static_cast<unsigned>(count));
  unsigned at = 0;
  for (const batch_record& part : parts) {
    for (const auto scored : part->getGroups()) groups.setWithCaveats(at++, scored);
  }
  return whole.finish();
}

std::size_t sum(const std::map<std::string, std::size_t>& by_type) {
  return std::accumulate(by_type.begin(), by_type.end(), std::size_t{0},
                         [](std::size_t s, const auto& entry) { return s + entry.second; });
}

}  // namespace

void stream_sample::count(const schema::ScoredGroup::Reader& scored) {
  for (const auto result : scored.getResults()) {
    if (is_inconclusive(result.getOutcome())) continue;
    ++documents;
    wrong += result.getOutcome() == Outcome::OK ? 0 : 1;
  }
  const double allowed = max_wrong_share * static_cast<double>(documents);
  if (documents < min_sampled_documents || static_cast<double>(wrong) <= allowed) return;
  throw std::runtime_error(std::to_string(wrong) + " of " + std::to_string(documents) +
                           " documents of the stream that were judged are not ok, more than 1 % "
                           "(`hone pool ls` says why)");
}

void learner_state::schedule_tick(std::chrono::milliseconds delay) {
  const auto at = self->system().clock().now() + delay;
  if (tick_at && *tick_at <= at) return;
  tick_at = at;
  if (delay.count() == 0) return self->send(self, tick_atom_v);
  self->delayed_send(self, delay, tick_atom_v);
}

void learner_state::attempt(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& e) {
    fail(describe_failure(e));
  }
}

void learner_state::attempt_on_gpu(std::function<void()> work) {
  lease.run(self, [this, work = std::move(work)] { attempt(work); });
}

// A new run commits its initial weights as its first version. A resumed run loads the weights of
// the version that it continues from.
void learner_state::start() {
  next_version = options.next_version;
  if (options.chain.empty()) {
    plan->advance();
    commit({plan->stage(), 0, {}}, {}, false);
    return;
  }
  for (const version_record& version : options.chain) set_head(version);
  tip = head;
  plan->load(options.run_folder / std::string(view(head->getCheckpoint())));
  if (plan->stage() == Stage::CONTRASTIVE && before_contrastive)
    plan->load_reference(options.run_folder / checkpoint_name(*before_contrastive));
  if (!options.leaves_branch) return replay();
  self->request(pool, timeouts::commit_request, branch_atom_v, head->getVersion())
      .then([this](done_atom) { replay(); },
            [this](const caf::error& e) { fail_to("make a version the head", e); });
}

// Admits again the corpus groups that the run's steps have consumed, then continues the run.
void learner_state::replay() {
  self->request(pool, timeouts::commit_request, replay_atom_v,
                static_cast<std::uint8_t>(Stage::SFT))
      .then(
          [this](const std::vector<scored_group_record>& groups) {
            attempt([&] {
              for (const auto& group : groups) admit(*group);
              if (head->getComplete()) return finish(true);
              attempt_on_gpu([this] {
                // The configuration may have changed so that the stage is over. The pool takes the
                // stage from the newest version, so a new stage needs a new version.
                if (plan->advance()) return commit({plan->stage(), 0, {}}, {}, false);
                publish();
                schedule_tick();
              });
            });
          },
          [this](const caf::error& e) { fail_to("read the groups of its steps", e); });
}

void learner_state::work() {
  if (made && !writing && !taking_is_due) {
    taking_is_due = true;
    attempt_on_gpu([this] {
      taking_is_due = false;
      if (made && !writing) take_and_write();
    });
  }
  if (finished || batch_is_due || must_wait()) return;
  if (!plan) {  // the first lease has not been granted yet
    if (stopping) finish(false);
    return;
  }
  switch (plan->stage()) {
    case Stage::SFT:
      return train_supervised();
    case Stage::SELF_SUPERVISED: {
      if (stopping) return finish(false);
      const auto groups = static_cast<std::uint32_t>(options.plan.self_supervised.groups);
      return request_batch(Stage::SELF_SUPERVISED, groups, groups, false);
    }
    case Stage::CONTRASTIVE: {
      if (stopping) return finish(false);
      return request_contrastive_batch();
    }
    case Stage::COMPARISON:
      if (stopping) return finish(false);
      return comparison_groups > 0
                 ? request_batch(Stage::COMPARISON, comparison_groups, comparison_groups, false)
                 : compare();
    case Stage::VALIDATION:  // no stages of a curriculum
    case Stage::SERVICE:
      break;
  }
}

void learner_state::admit(const schema::ScoredGroup::Reader& scored) {
  plan->admit(scored);
  if (options.streams) sample.count(scored);
  ++admitted_by_type[scored.getGroup().getDraw().getDeviceType()];
}

// Returns true if enough of the corpus is judged on one of the device types: a fast type does not
// wait for a slow one.
bool learner_state::has_enough_of_corpus() const {
  if (options.streams) return true;
  if (options.corpus_groups.empty()) return !options.awaits_corpus;
  return std::any_of(
      options.corpus_groups.begin(), options.corpus_groups.end(), [&](const auto& of_type) {
        const auto admitted_here = admitted_by_type.find(of_type.first);
        const std::size_t count =
            admitted_here == admitted_by_type.end() ? 0 : admitted_here->second;
        return count >= static_cast<std::size_t>(options.plan.sft.begin_with *
                                                 static_cast<double>(of_type.second));
      });
}

// Trains while the corpus is still being judged. Each document is used once its score is known.
void learner_state::train_supervised() {
  request_batch(Stage::SFT, 1, all_ready_groups, false);
  const std::size_t documents = sum(options.corpus_groups);
  if (sum(admitted_by_type) >= documents && !plan->can_update() && !options.awaits_corpus) {
    throw std::runtime_error("there is nothing to learn from: none of the " +
                             std::to_string(documents) +
                             " documents of the corpus is ok here (`hone pool ls` says why)");
  }
  const bool enough = has_enough_of_corpus() && plan->can_update();
  counts.set_number("waits_for_corpus", enough ? 0 : 1);
  if (stopping && (!enough || !plan->has_new_updates())) return finish(false);
  if (!enough) return schedule_tick(timeouts::corpus_poll);
  if (slice_is_due) return;
  slice_is_due = true;
  attempt_on_gpu([this] {
    slice_is_due = false;
    train_supervised_slice();
  });
}

void learner_state::train_supervised_slice() {
  if (must_wait() || finished) return;
  {
    const activity::span busy(counts, "sft");
    const auto end = std::chrono::steady_clock::now() + timeouts::training_slice;
    while (plan->sft_updates_left_in_step() > 0 && std::chrono::steady_clock::now() < end) {
      counts.set_number("loss", plan->sft_update());
      counts.processed();
    }
  }
  counts.set_number("updates", static_cast<double>(plan->sft_updates()));
  counts.set_number("part_of_step", plan->part_of_sft_step());
  counts.set_number("trained_tokens", static_cast<double>(plan->tokens_trained_on()));
  if (plan->sft_updates_left_in_step() > 0 && !stopping) return schedule_tick();
  learned_step learned{Stage::SFT, 0, plan->end_sft_step()};
  learned.step = plan->step();
  const std::vector<group_id> groups(admitted.begin(), admitted.end());
  admitted.clear();
  plan->advance();
  commit(learned, groups, false);
}

void learner_state::request_batch(Stage stage, std::uint32_t at_least, std::uint32_t at_most,
                                  bool is_even) {
  if (requested_stage == stage) return;
  requested_stage = stage;
  std::set<group_id> without = uncommitted_groups;
  without.insert(admitted.begin(), admitted.end());
  for (const batch_record& batch : taken) {
    for (const auto scored : batch->getGroups()) without.emplace(scored.getGroup().getId());
  }
  self->request(pool, timeouts::batch_request, take_atom_v, static_cast<std::uint8_t>(stage),
                at_least, at_most, is_even, halves_of(without))
      .then(
          [this, stage](const batch_record& batch) {
            if (requested_stage == stage) requested_stage.reset();
            attempt([&] { take_batch(batch); });
          },
          [this, stage](const caf::error&) {
            if (requested_stage != stage) return;  // another request has replaced this one
            requested_stage.reset();
            if (stage != Stage::SFT) work();  // repeats the request
          });
}

void learner_state::take_batch(const batch_record& batch) {
  if (batch->getStage() != plan->stage() || batch_is_due || must_wait() || finished) return;
  if (batch->getStage() == Stage::SFT) {
    // Groups stay ready until a step over them is committed, so a batch repeats them.
    for (const auto scored : batch->getGroups()) {
      const group_id id(scored.getGroup().getId());
      if (uncommitted_groups.contains(id) || !admitted.insert(id).second) continue;
      admit(scored);
    }
    return;
  }
  if (batch->getStage() != Stage::CONTRASTIVE) return learn_on_gpu(batch);
  taken.push_back(batch);
  if (plan->missing_groups(taken) > 0) return request_contrastive_batch();
  learn_on_gpu(joined(std::exchange(taken, {})));
}

void learner_state::request_contrastive_batch() {
  const auto groups = static_cast<std::uint32_t>(plan->missing_groups(taken));
  request_batch(Stage::CONTRASTIVE, groups, groups, options.plan.contrastive.one_per_task);
}

void learner_state::learn_on_gpu(const batch_record& batch) {
  batch_is_due = true;
  attempt_on_gpu([this, batch] {
    batch_is_due = false;
    learn(batch);
  });
}

void learner_state::learn(const batch_record& batch) {
  if (must_wait() || finished) return;
  std::vector<group_id> groups;
  for (const auto scored : batch->getGroups()) groups.emplace_back(scored.getGroup().getId());
  if (plan->stage() == Stage::COMPARISON) {
    commit({Stage::COMPARISON, 1, describe_batch(*batch)}, groups, true);
    return;
  }
  learned_step learned{plan->stage(), 0, {}};
  {
    const activity::span busy(counts, plan->stage() == Stage::CONTRASTIVE ? "grpo" : "likelihood");
    learned.numbers = plan->learn(*batch, tip->getVersion());
    counts.processed(groups.size());
  }
  learned.step = plan->step();
  const auto signal = learned.numbers.find("groups_with_signal");
  if (options.log && signal != learned.numbers.end() && signal->second == 0)
    options.log("contrastive step " + std::to_string(learned.step) +
                " changed nothing: in none of its groups do rewards differ");
  const auto examples = learned.numbers.find("examples");
  if (options.log && examples != learned.numbers.end() && examples->second == 0)
    options.log(std::string(name_of(learned.stage)) + " step " + std::to_string(learned.step) +
                " changed nothing: none of its samples is ok and complete, so there was nothing to "
                "learn from");
  plan->advance();
  commit(learned, groups, false);
}

void learner_state::fail(const std::string& reason) {
  caf::anon_send(supervisor, fatal_atom_v, "learner: " + reason);
  self->quit(caf::make_error(caf::sec::runtime_error, reason));
}

void learner_state::fail_to(const std::string& what, const caf::error& e) {
  fail("the pool did not " + what + ": " + text_of(self->system(), e));
}

void learner_state::finish(bool complete) {
  if (finished) return;
  finished = true;
  caf::anon_send(supervisor, finish_atom_v, complete);
}

learner_actor::behavior_type learner_behavior(learner_actor::stateful_pointer<learner_state> self,
                                              learner_options options, pool_actor pool,
                                              caf::actor supervisor) {
  auto& s = self->state;
  s.self = self;
  s.options = std::move(options);
  s.pool = std::move(pool);
  s.supervisor = std::move(supervisor);
  self->link_to(s.pool);
  self->set_down_handler([&s](const caf::down_msg& down) { s.generators.erase(down.source); });
  s.lease = gpu_lease(s.options.gpu);
  s.attempt_on_gpu([&s] {
    if (s.finished) return;
    s.plan = s.options.make_curriculum();
    s.start();
  });
  return {
      [self](join_atom) { self->state.add_generator(self->current_sender()); },
      [self](corpus_atom, const std::string& device_type, std::uint64_t documents) {
        self->state.options.corpus_groups[device_type] = documents;
        self->state.options.awaits_corpus = false;
      },
      [self](grant_atom, std::uint64_t number) {
        self->state.attempt([&] { self->state.lease.granted(self, number); });
        return done_atom_v;
      },
      [self](lease_atom) { self->state.lease.request_again(self); },
      [self, &s](tick_atom) {
        // A tick that an earlier one has overtaken comes before the next one is due.
        constexpr auto timer_step = std::chrono::milliseconds(2);
        if (s.tick_at && self->system().clock().now() + timer_step < *s.tick_at) return;
        s.tick_at.reset();
        s.attempt([&s] { s.work(); });
      },
      [self](stop_atom) {
        self->state.stopping = true;
        self->state.schedule_tick();
      },
      [self](status_atom) {
        return self->state.counts.report(0, self->state.requested_stage ? 1U : 0U);
      },
  };
}

}  // namespace hone
