#include "actors/pool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "messages/clock.hpp"
#include "messages/names.hpp"

namespace hone {
namespace {

constexpr auto tick_interval = std::chrono::milliseconds(500);
constexpr std::uint64_t patience_ms = 15000;  // less than those who ask have

// A draw that one more version is to write for: the same choices under another id.
draw_record for_version(const draw_record& draw, std::uint64_t version, std::uint32_t samples) {
  capnp::MallocMessageBuilder scratch;
  scratch.setRoot(*draw);
  auto copy = scratch.getRoot<schema::Draw>();
  random_id<draw_id>().store(copy.getId());
  copy.setPolicyVersion(version);
  copy.setSamples(samples);
  return copy_record<schema::Draw>(copy.asReader());
}

}  // namespace

void pool_state::fail(const std::string& reason) {
  stopping = true;
  caf::anon_send(supervisor, fatal_atom_v, reason);
  self->quit(caf::make_error(caf::sec::runtime_error, reason));
}

// A pool that cannot be written stops the run; what was acknowledged is safe on disk.
void pool_state::attempt(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& e) {
    fail(e.what());
  }
}

void pool_state::schedule_flush() {
  if (flush_is_due) return;
  flush_is_due = true;
  self->send(self, flush_atom_v);
}

void pool_state::submit(const group_record& group,
                        const caf::typed_response_promise<done_atom>& promise) {
  const activity::span busy(counts, "group");
  schedule->came_back(draw_id(group->getDraw().getId()));
  const std::size_t unparsable = owned->record_group(group, unix_ms(), unsent);
  if (unparsable > 0) outcomes[Outcome::UNPARSABLE] += unparsable;
  unacknowledged.push_back({promise, "group " + to_string(group_id(group->getId()))});
  counts.processed(group->getRollouts().size());
  schedule_flush();
}

void pool_state::close(const evaluation_record& result) {
  const activity::span busy(counts, "result");
  const pool::taken how = owned->record_evaluation(result, unix_ms(), unsent);
  if (how == pool::taken::not_at_all) return;
  if (how == pool::taken::as_first) ++outcomes[result->getOutcome()];
  if (acknowledgements >= 0 && result->getOutcome() != Outcome::INFRASTRUCTURE)
    closed_lines.push_back("measurement " + to_string(measurement_id(result->getMeasurementId())) +
                           " " + to_string(variant_id(result->getVariantId())));
  schedule_flush();
}

void pool_state::commit_step(const version_record& version, const step_record& step,
                             const caf::typed_response_promise<done_atom>& promise) {
  const activity::span busy(counts, "step");
  owned->commit_step(version, step);
  if (version->getStage() != outcomes_of) {
    outcomes_of = version->getStage();
    outcomes.clear();
  }
  unacknowledged.push_back({promise, "version " + std::to_string(version->getVersion())});
  schedule_flush();
}

void pool_state::flush() {
  flush_is_due = false;
  {
    const activity::span busy(counts, "flush");
    owned->commit();
  }
  std::string lines;
  for (const std::string& line : closed_lines) lines += line + "\n";
  closed_lines.clear();
  for (auto& ack : unacknowledged) {
    ack.promise.deliver(done_atom_v);
    lines += ack.line + "\n";
  }
  unacknowledged.clear();
  if (acknowledgements >= 0 && !lines.empty() &&
      write(acknowledgements, lines.data(), lines.size()) < 0)
    fail("the file of acknowledgements cannot be written");
  const activity::span busy(counts, "hand out");
  for (const compile_job& job : unsent) self->send(compilers, put_atom_v, job);
  unsent.clear();
  serve_takers();
  serve_draws();
}

draw_record pool_state::make_draw(const draw_schedule::assignment& what) {
  if (what.stage == Stage::COMPARISON && what.comparison < comparison_draws.size())
    return for_version(comparison_draws[what.comparison], what.version, what.samples);
  const auto draw = owned->draw(
      {what.where.task, what.where.device_type, what.stage, what.version, what.samples});
  if (what.stage == Stage::COMPARISON) comparison_draws.push_back(draw);
  return draw;
}

void pool_state::serve_draws() {
  const auto head = owned->versions().head();
  if (stopping || !head || !compilers) return;
  const Stage stage = (*owned->versions().find(*head))->getStage();
  turn_away_old_askers();
  while (!waiting_draws.empty()) {
    const auto what = schedule->next(stage, *head, owned->waiting_groups(),
                                     owned->ready_groups(stage), owned->waiting_by_type());
    if (!what) return;
    const draw_record draw = make_draw(*what);
    schedule->given_out(draw_id(draw->getId()), *what, unix_ms());
    waiting_draws.front().promise.deliver(draw);
    waiting_draws.pop_front();
  }
}

void pool_state::serve_takers() {
  std::vector<waiting_taker> left;
  for (waiting_taker& taker : takers) {
    pool::batch_request& request = taker.request;
    const std::size_t ready = owned->ready_groups(request.stage);
    // Where nothing else will come, a step takes more than its share of some tasks, and a
    // comparison does without what has gone with its devices.
    const bool is_all = schedule->has_run_dry(request.stage, owned->waiting_groups(), ready);
    if (taker.is_even)
      request.most_of_a_task =
          is_all ? request.at_most : schedule->share_of_a_task(request.at_least);
    if (is_all && request.stage == Stage::COMPARISON)
      request.at_least = std::min(request.at_least, ready);
    const auto batch = owned->take(request);
    if (!batch) {
      left.push_back(taker);
      continue;
    }
    double total = 0;
    std::size_t count = 0;
    for (const auto scored : (*batch)->getGroups()) {
      for (const auto rollout : scored.getGroup().getRollouts()) {
        for (const auto run : rollout.getVersions()) {
          total += owned->versions().lag_of(run.getVersion()).value_or(0);
          ++count;
        }
      }
    }
    lag = count > 0 ? total / static_cast<double>(count) : 0;
    taker.promise.deliver(*batch);
  }
  takers = std::move(left);
}

void pool_state::change_devices(const device_type_record& type, std::int32_t by) {
  const std::string name(view(type->getName()));
  schedule->change_devices(name, by);
  const auto served = schedule->device_types();
  if (std::find(served.begin(), served.end(), name) != served.end()) {
    owned->add_device_type(type);
  } else {
    owned->remove_device_type(name);
  }
  owned->collect_overdue(unix_ms(), unsent);
  schedule_flush();
}

// Whoever asked has stopped waiting soon after; what would be sent now would be lost.
void pool_state::turn_away_old_askers() {
  const std::uint64_t now = unix_ms();
  while (!waiting_draws.empty() && waiting_draws.front().since_ms + patience_ms < now) {
    waiting_draws.front().promise.deliver(caf::make_error(caf::sec::request_timeout));
    waiting_draws.pop_front();
  }
  if (!takers.empty() && takers.front().since_ms + patience_ms < now) {
    takers.front().promise.deliver(caf::make_error(caf::sec::request_timeout));
    takers.clear();
  }
}

void pool_state::tick() {
  owned->collect_overdue(unix_ms(), unsent);
  schedule->give_up_old(unix_ms());
  turn_away_old_askers();
  schedule_flush();
  self->delayed_send(self, tick_interval, tick_atom_v);
}

run_status_record pool_state::status() const {
  record_builder<schema::RunStatus> status;
  if (const auto head = owned->versions().head()) {
    const auto& version = *owned->versions().find(*head);
    status->setStage(std::string(name_of(version->getStage())));
    status->setVersion(*head);
    status->setStep(version->getStep());
    status->setComplete(version->getComplete());
  }
  status->setInFlight(static_cast<std::uint32_t>(owned->in_flight()));
  status->setWaitingGroups(static_cast<std::uint32_t>(owned->waiting_groups()));
  std::size_t ready = 0;
  for (const Stage stage :
       {Stage::SFT, Stage::SELF_SUPERVISED, Stage::CONTRASTIVE, Stage::COMPARISON})
    ready += owned->ready_groups(stage);
  status->setReadyGroups(static_cast<std::uint32_t>(ready));
  status->setDroppedGroups(owned->dropped_groups());
  status->setLag(lag);
  auto results = status->initOutcomes(static_cast<unsigned>(outcomes.size()));
  unsigned i = 0;
  for (const auto& [outcome, count] : outcomes) {
    results[i].setName(std::string(name_of(outcome)));
    results[i++].setValue(static_cast<double>(count));
  }
  const auto types = schedule->device_types();
  auto best = status->initTasks(static_cast<unsigned>(tasks->all().size() * types.size()));
  unsigned t = 0;
  for (const auto& one : tasks->all()) {
    for (const std::string& type : types) {
      best[t].setName(one->name);
      best[t].setDeviceType(type);
      best[t].setVariants(owned->accepted_variants(one->id, type));
      const auto leader = owned->best(one->id, type);
      best[t++].setBest(leader ? leader->score : 0);
    }
  }
  return status.finish();
}

pool_actor::behavior_type pool_shell(pool_actor::stateful_pointer<pool_state> self,
                                     pool_actor_options options,
                                     std::shared_ptr<const task_table> tasks,
                                     caf::actor supervisor) {
  auto& s = self->state;
  s.self = self;
  s.tasks = tasks;
  s.supervisor = std::move(supervisor);
  std::vector<task_id> ids;
  for (const auto& t : tasks->all()) ids.push_back(t->id);
  try {
    s.owned = std::make_unique<pool>(options.storage);
    for (const auto& t : tasks->all()) s.owned->add_task(to_record(*t));
    s.owned->commit();
  } catch (const std::exception& e) {
    s.fail(e.what());
    return pool_actor::behavior_type::make_empty_behavior();
  }
  if (const auto head = s.owned->versions().head())
    s.outcomes_of = (*s.owned->versions().find(*head))->getStage();
  s.schedule = std::make_unique<draw_schedule>(ids, options.draws);
  if (!options.acknowledgements.empty()) {
    s.acknowledgements =
        open(options.acknowledgements.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (s.acknowledgements < 0) {
      s.fail(options.acknowledgements + ": cannot be opened for acknowledgements");
      return pool_actor::behavior_type::make_empty_behavior();
    }
  }
  self->delayed_send(self, tick_interval, tick_atom_v);

  return {
      [self](draw_atom) {
        auto promise = self->make_response_promise<draw_record>();
        self->state.waiting_draws.push_back({promise, unix_ms()});
        self->state.schedule_flush();
        return promise;
      },
      [self](submit_atom, const group_record& group) {
        auto promise = self->make_response_promise<done_atom>();
        self->state.attempt([&] { self->state.submit(group, promise); });
        return promise;
      },
      [self](close_atom, const evaluation_record& result) {
        self->state.attempt([&] { self->state.close(result); });
      },
      [self](take_atom, std::uint8_t stage, std::uint32_t at_least, std::uint32_t at_most,
             bool is_even) {
        auto promise = self->make_response_promise<batch_record>();
        self->state.takers = {{{static_cast<Stage>(stage), at_least, at_most},
                               is_even,
                               promise,
                               unix_ms()}};  // a newer wish replaces one that was given up
        self->state.schedule_flush();
        return promise;
      },
      [self](replay_atom, std::uint8_t stage) -> caf::result<std::vector<scored_group_record>> {
        try {
          return self->state.owned->trained_groups(static_cast<Stage>(stage));
        } catch (const std::exception& e) {
          self->state.fail(e.what());
          return caf::make_error(caf::sec::runtime_error, e.what());
        }
      },
      [self](commit_atom, const version_record& version, const step_record& step) {
        auto promise = self->make_response_promise<done_atom>();
        self->state.attempt([&] { self->state.commit_step(version, step, promise); });
        return promise;
      },
      [self](branch_atom, std::uint64_t version) -> caf::result<done_atom> {
        try {
          self->state.owned->choose_branch(version);
          return done_atom_v;
        } catch (const std::exception& e) {
          return caf::make_error(caf::sec::runtime_error, e.what());
        }
      },
      [self](compare_atom, const std::vector<std::uint64_t>& versions, std::uint32_t samples) {
        self->state.comparison_draws.clear();
        self->state.attempt([&] {
          self->state.owned->abandon(Stage::COMPARISON);
        });  // of a comparison that was broken off
        const auto groups =
            static_cast<std::uint32_t>(self->state.schedule->compare(versions, samples));
        self->state.schedule_flush();
        return groups;
      },
      [self](connect_atom, const compile_queue& queue) {
        self->state.compilers = queue;
        self->state.schedule_flush();
      },
      [self](device_atom, const device_type_record& type, std::int32_t by) {
        self->state.attempt([&] { self->state.change_devices(type, by); });
      },
      [self](status_atom, watch_atom) { return self->state.status(); },
      [self](tick_atom) { self->state.attempt([&] { self->state.tick(); }); },
      [self](flush_atom) { self->state.attempt([&] { self->state.flush(); }); },
      [self](stop_atom) { self->state.stopping = true; },
      [self](status_atom) {
        return self->state.counts.report(self->state.waiting_draws.size(),
                                         self->state.owned->in_flight());
      },
  };
}

}  // namespace hone
