#include "actors/pool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "actors/error_text.hpp"
#include "actors/timeouts.hpp"
#include "messages/clock.hpp"
#include "messages/even_spacing.hpp"
#include "messages/names.hpp"
#include "network/thread_priority.hpp"
#include "process/cut_line.hpp"

namespace hone {
namespace {

// Tasks of which a status tells the best variant: it is sent every second.
constexpr std::size_t max_shown_tasks = 256;

// Returns a reply that delivers a promise; nullopt becomes the error request_timeout.
template <class Record>
pool_requests::reply<Record> deliver(caf::typed_response_promise<Record> promise) {
  return [promise](const std::optional<Record>& answer) mutable {
    if (answer) {
      promise.deliver(*answer);
    } else {
      promise.deliver(caf::make_error(caf::sec::request_timeout));
    }
  };
}

}  // namespace

pool_state::~pool_state() {
  if (log) log->close();
  caf::anon_send_exit(syncer, caf::exit_reason::user_shutdown);
}

void pool_state::fail(const std::string& reason) {
  stopping = true;
  caf::anon_send(supervisor, fatal_atom_v, reason);
  self->quit(caf::make_error(caf::sec::runtime_error, reason));
}

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
  if (!is_syncing) self->send(self, flush_atom_v);
}

void pool_state::submit(const group_record& group,
                        const caf::typed_response_promise<done_atom>& promise) {
  const activity::span busy(counts, "group");
  schedule->complete(draw_id(group->getDraw().getId()));
  owned->record_group(group, unix_ms(), unwritten.jobs);
  requests->drop_if_late(*group);
  unwritten.acknowledgments.push_back({promise, "group " + to_string(group_id(group->getId()))});
  counts.processed(group->getRollouts().size());
  schedule_flush();
}

void pool_state::submit(const task_record& task,
                        const caf::typed_response_promise<done_atom>& promise) {
  owned->add_task(task);
  unwritten.acknowledgments.push_back({promise, "task " + to_string(task_id(task->getId()))});
  schedule_flush();
}

void pool_state::close(const evaluation_record& result) {
  const activity::span busy(counts, "result");
  if (!owned->record_evaluation(result, unix_ms(), unwritten.jobs)) return;
  if (acknowledgments && result->getOutcome() != Outcome::INFRASTRUCTURE)
    unwritten.closed_lines.push_back("measurement " +
                                     to_string(measurement_id(result->getMeasurementId())) + " " +
                                     to_string(variant_id(result->getVariantId())));
  schedule_flush();
}

void pool_state::commit_step(const version_record& version, const step_record& step,
                             const caf::typed_response_promise<done_atom>& promise) {
  const activity::span busy(counts, "step");
  owned->commit_step(version, step);
  unwritten.acknowledgments.push_back(
      {promise, "version " + std::to_string(version->getVersion())});
  schedule_flush();
}

std::uint32_t pool_state::compare(const schema::ComparisonRequest::Reader& request) {
  std::uint32_t groups = 0;
  attempt([&] { groups = static_cast<std::uint32_t>(requests->compare(request)); });
  schedule_flush();
  return groups;
}

void pool_state::cancel_given_up() {
  const std::vector<std::uint64_t> halves = halves_of(requests->take_given_up());
  if (halves.empty() || !compilers) return;
  self->send(compilers, cancel_atom_v, halves);
  self->send(verifiers, cancel_atom_v, halves);
}

void pool_state::flush() {
  flush_is_due = false;
  bool is_written = false;
  {
    const activity::span busy(counts, "flush");
    is_written = owned->write();
  }
  unsynced = std::exchange(unwritten, {});
  {
    const activity::span busy(counts, "hand out");
    requests->serve_batch(unix_ms());
    requests->serve_judgements(unix_ms());
    if (!stopping && compilers) requests->serve_draws(unix_ms());
    cancel_given_up();
  }
  if (!is_written) return release_unsynced();
  is_syncing = true;
  self->request(syncer, caf::infinite, flush_atom_v)
      .then(
          [this](const std::string& problem) {
            is_syncing = false;
            if (!problem.empty()) return fail(problem);
            release_unsynced();
            if (flush_is_due) self->send(self, flush_atom_v);
          },
          [this](const caf::error& error) {
            fail("the pool's log cannot be synced: " + text_of(self->system(), error));
          });
}

void pool_state::release_unsynced() {
  const activity::span busy(counts, "release");
  std::string lines;
  for (const std::string& line : unsynced.closed_lines) lines += line + "\n";
  for (const auto& ack : unsynced.acknowledgments) lines += ack.line + "\n";
  if (acknowledgments && !lines.empty() &&
      write(acknowledgments.get(), lines.data(), lines.size()) !=
          static_cast<ssize_t>(lines.size()))
    fail("the file of acknowledgments cannot be written (" + std::string(std::strerror(errno)) +
         ")");
  for (auto& ack : unsynced.acknowledgments) ack.promise.deliver(done_atom_v);
  for (const compile_job& job : unsynced.jobs) self->send(compilers, put_atom_v, job);
  unsynced = {};
}

std::uint64_t pool_state::number_of_generator(const caf::actor& generator) {
  if (!generator) return 0;
  const auto [entry, is_new] = generators.try_emplace(generator.address(), next_generator);
  if (is_new) {
    ++next_generator;
    self->monitor(generator);
  }
  return entry->second;
}

// The samples that it was writing are lost: other generators write them.
void pool_state::lose_generator(const caf::actor_addr& generator) {
  const auto found = generators.find(generator);
  if (found == generators.end()) return;
  requests->forget(found->second);
  generators.erase(found);
  schedule_flush();
}

void pool_state::lose_generators_of(const caf::node_id& node) {
  std::vector<caf::actor_addr> lost;
  for (const auto& [address, number] : generators) {
    if (address.node() == node) lost.push_back(address);
  }
  for (const caf::actor_addr& one : lost) lose_generator(one);
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
  owned->collect_overdue(unix_ms(), unwritten.jobs);
  schedule_flush();
}

void pool_state::tick() {
  owned->collect_overdue(unix_ms(), unwritten.jobs);
  schedule->expire(unix_ms());
  requests->refuse_expired(unix_ms());
  requests->withdraw_expired(unix_ms());
  if (keep_judged_ms > 0) owned->forget_judged(unix_ms() - keep_judged_ms);
  schedule_flush();
  self->delayed_send(self, timeouts::pool_tick, tick_atom_v);
}

run_status_record pool_state::status() const {
  record_builder<schema::RunStatus> status;
  std::map<Outcome, std::uint64_t> outcomes;
  if (const version_record* head = owned->versions().head_version()) {
    status->setStage(std::string(name_of((*head)->getStage())));
    status->setVersion((*head)->getVersion());
    status->setStep((*head)->getStep());
    status->setComplete((*head)->getComplete());
    outcomes = owned->sample_outcomes((*head)->getStage());
  } else {
    outcomes = owned->sample_outcomes(Stage::SERVICE);  // the pool of a server has no versions
  }
  status->setInFlight(static_cast<std::uint32_t>(owned->in_flight()));
  status->setWaitingGroups(static_cast<std::uint32_t>(owned->waiting_groups()));
  status->setReadyGroups(static_cast<std::uint32_t>(owned->ready_groups()));
  const auto& dropped = owned->dropped_groups();
  auto by_type = status->initDroppedByType(static_cast<unsigned>(dropped.size()));
  std::uint64_t all_dropped = 0;
  unsigned d = 0;
  for (const auto& [type, count] : dropped) {
    by_type[d].setName(type);
    by_type[d++].setValue(static_cast<double>(count));
    all_dropped += count;
  }
  status->setDroppedGroups(all_dropped);
  status->setLag(requests->lag());
  auto results = status->initOutcomes(static_cast<unsigned>(outcomes.size()));
  unsigned i = 0;
  for (const auto& [outcome, count] : outcomes) {
    results[i].setName(std::string(name_of(outcome)));
    results[i++].setValue(static_cast<double>(count));
  }
  const auto types = schedule->device_types();
  const auto shown = evenly_spaced(max_shown_tasks, tasks->all().size());
  auto best = status->initTasks(static_cast<unsigned>(shown.size() * types.size()));
  unsigned t = 0;
  for (const std::size_t at : shown) {
    const task& one = *tasks->all()[at];
    for (const std::string& type : types) {
      best[t].setName(one.name);
      best[t].setDeviceType(type);
      best[t].setVariants(owned->accepted_variants(one.id, type));
      const auto leader = owned->best(one.id, type);
      best[t++].setBest(leader ? leader->score : 0);
    }
  }
  return status.finish();
}

void pool_state::open(const pool_actor_options& options) {
  owned = std::make_unique<pool>(options.storage);
  std::vector<task_id> learned;
  std::vector<task_id> held_out;
  for (const auto& t : tasks->all()) {
    const task_role role = tasks->role_of(t->id);
    owned->add_task(to_record(*t, role));
    if (role == task_role::learned) learned.push_back(t->id);
    if (role == task_role::held_out) held_out.push_back(t->id);
  }
  for (const task_record& task : options.late_tasks) owned->add_task(task);
  keep_judged_ms = options.keep_judged_ms;
  owned->commit();
  schedule = std::make_unique<draw_schedule>(learned, options.draws, held_out);
  requests = std::make_unique<pool_requests>(*owned, *schedule);
  log = std::make_shared<open_log>(*owned);
  syncer = options.has_log_thread ? self->spawn<caf::detached>(log_syncer_behavior, log)
                                  : self->spawn(log_syncer_behavior, log);
  if (options.acknowledgments.empty()) return;
  remove_cut_line(options.acknowledgments);
  acknowledgments.reset(
      ::open(options.acknowledgments.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!acknowledgments)
    throw std::runtime_error(options.acknowledgments + ": cannot be opened for acknowledgments");
}

// Longer than 60 lines: one handler per message of the interface, in its order.
pool_actor::behavior_type pool_behavior(pool_actor::stateful_pointer<pool_state> self,
                                        pool_actor_options options,
                                        std::shared_ptr<const task_table> tasks,
                                        caf::actor supervisor) {
  auto& s = self->state;
  s.self = self;
  s.tasks = std::move(tasks);
  s.supervisor = std::move(supervisor);
  let_messages_pass(thread_work::run);  // and RocksDB's threads and the log's, which open() starts
  s.attempt([&] { s.open(options); });
  if (s.stopping) return pool_actor::behavior_type::make_empty_behavior();
  self->delayed_send(self, timeouts::pool_tick, tick_atom_v);
  self->set_down_handler(
      [&s](const caf::down_msg& down) { s.attempt([&] { s.lose_generator(down.source); }); });
  return {
      [&s, self](draw_atom) {
        // The promise takes the sender out of the message.
        const auto generator =
            s.number_of_generator(caf::actor_cast<caf::actor>(self->current_sender()));
        auto promise = self->make_response_promise<draw_record>();
        s.requests->add(deliver(promise), unix_ms(), generator);
        s.schedule_flush();
        return promise;
      },
      [&s, self](submit_atom, const group_record& group) {
        auto promise = self->make_response_promise<done_atom>();
        s.attempt([&] { s.submit(group, promise); });
        return promise;
      },
      [&s](close_atom, const evaluation_record& result) { s.attempt([&] { s.close(result); }); },
      [&s, self](take_atom, std::uint8_t stage, std::uint32_t at_least, std::uint32_t at_most,
                 bool is_even, const std::vector<std::uint64_t>& without) {
        auto promise = self->make_response_promise<batch_record>();
        pool_requests::batch_request wanted{{static_cast<Stage>(stage), at_least, at_most},
                                            is_even};
        wanted.groups.without = ids_of<group_id>(without);
        s.requests->add(wanted, deliver(promise), unix_ms());
        s.schedule_flush();
        return promise;
      },
      [&s](replay_atom, std::uint8_t stage) -> caf::result<std::vector<scored_group_record>> {
        try {
          return s.owned->trained_groups(static_cast<Stage>(stage));
        } catch (const std::exception& e) {
          s.fail(e.what());
          return caf::make_error(caf::sec::runtime_error, e.what());
        }
      },
      [&s, self](commit_atom, const version_record& version, const step_record& step) {
        auto promise = self->make_response_promise<done_atom>();
        s.attempt([&] { s.commit_step(version, step, promise); });
        return promise;
      },
      [&s](branch_atom, std::uint64_t version) -> caf::result<done_atom> {
        try {
          s.owned->choose_branch(version);
          return done_atom_v;
        } catch (const std::exception& e) {
          return caf::make_error(caf::sec::runtime_error, e.what());
        }
      },
      [&s](compare_atom, const comparison_record& request) -> caf::result<std::uint32_t> {
        if (s.schedule->device_types().empty()) return caf::make_error(caf::sec::request_timeout);
        return s.compare(*request);
      },
      [&s, self](validate_atom, std::uint32_t max_tasks) {
        auto promise = self->make_response_promise<batch_record>();
        s.attempt([&] { s.requests->validate(max_tasks, deliver(promise), unix_ms()); });
        s.schedule_flush();
        return promise;
      },
      [&s, self](judge_atom, std::uint64_t high, std::uint64_t low, std::uint32_t wait_ms) {
        auto promise = self->make_response_promise<judgement_record>();
        s.requests->add(group_id(high, low), deliver(promise), unix_ms() + wait_ms);
        s.schedule_flush();
        return promise;
      },
      [&s, self](cancel_atom, std::uint64_t high, std::uint64_t low) {
        auto promise = self->make_response_promise<judgement_record>();
        s.attempt([&] { s.requests->withdraw(group_id(high, low)); });
        s.requests->add(group_id(high, low), deliver(promise), unix_ms());
        s.schedule_flush();
        return promise;
      },
      [&s, self](submit_atom, const task_record& task) {
        auto promise = self->make_response_promise<done_atom>();
        s.attempt([&] { s.submit(task, promise); });
        return promise;
      },
      [&s](connect_atom, const compile_queue_actor& compiles, const verify_queue_actor& verifies) {
        s.compilers = compiles;
        s.verifiers = verifies;
        s.schedule_flush();
      },
      [&s](device_atom, const device_type_record& type, std::int32_t by) {
        s.attempt([&] { s.change_devices(type, by); });
      },
      [&s](leave_atom, const caf::node_id& node) {
        s.attempt([&] { s.lose_generators_of(node); });
      },
      [&s](status_atom, watch_atom) { return s.status(); },
      [&s](tick_atom) { s.attempt([&] { s.tick(); }); },
      [&s](flush_atom) { s.attempt([&] { s.flush(); }); },
      [&s](stop_atom) { s.stopping = true; },
      [&s](status_atom) {
        return s.counts.report(s.requests->waiting_draws(), s.owned->in_flight());
      },
  };
}

}  // namespace hone
