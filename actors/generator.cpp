#include "actors/generator.hpp"

#include <caf/all.hpp>

#include "messages/clock.hpp"
#include "policy/checkpoint.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

constexpr auto draw_limit = std::chrono::seconds(20);
constexpr auto submit_limit = std::chrono::seconds(60);
constexpr std::size_t most_draws = 8;  // asked for at a time
constexpr auto slice =
    std::chrono::milliseconds(50);  // of writing between two looks at the mailbox
constexpr auto shared_slice = std::chrono::milliseconds(
    300);  // where each one is a turn at a GPU, with up to four jobs between them

group_record make_group(const generator_state::open_draw& from, const writer::finished& done) {
  const task_id task(from.draw->getTaskId());
  record_builder<schema::RolloutGroup> group;
  random_id<group_id>().store(group->initId());
  group->setOrigin(from.draw->getStage() == schema::Stage::COMPARISON
                       ? schema::RolloutGroup::Origin::COMPARISON
                       : schema::RolloutGroup::Origin::POLICY);
  group->setDraw(*from.draw);
  group->setPrompt(from.prompt);
  group->setStartedMs(from.started_ms);
  group->setFinishedMs(unix_ms());
  auto rollouts = group->initRollouts(static_cast<unsigned>(done.completions.size()));
  std::map<variant_id, record<schema::Variant>> variants;
  for (unsigned i = 0; i < rollouts.size(); ++i) {
    const writer::written& one = done.completions[i];
    const auto variant = make_variant(task, one.text);
    const variant_id id(variant->getId());
    variants.emplace(id, variant);
    random_id<rollout_id>().store(rollouts[i].initId());
    id.store(rollouts[i].initVariantId());
    rollouts[i].setText(one.text);
    auto tokens = rollouts[i].initTokens(static_cast<unsigned>(one.how.tokens.size()));
    for (unsigned t = 0; t < tokens.size(); ++t) tokens.set(t, one.how.tokens[t]);
    auto log_probabilities =
        rollouts[i].initLogProbabilities(static_cast<unsigned>(one.how.log_probabilities.size()));
    for (unsigned t = 0; t < log_probabilities.size(); ++t)
      log_probabilities.set(t, one.how.log_probabilities[t]);
    auto versions = rollouts[i].initVersions(static_cast<unsigned>(one.how.versions.size()));
    for (unsigned v = 0; v < versions.size(); ++v) {
      versions[v].setVersion(one.how.versions[v].first);
      versions[v].setTokens(one.how.versions[v].second);
    }
    rollouts[i].setTruncated(one.how.truncated);
  }
  auto list = group->initVariants(static_cast<unsigned>(variants.size()));
  unsigned v = 0;
  for (const auto& [id, variant] : variants) list.setWithCaveats(v++, *variant);
  return group.finish();
}

}  // namespace

void generator_state::ask() {
  if (stopping || !has_loaded || !pinned.empty()) return;
  // As many as there is room for, so that the pool's answers cost one wait and not one each.
  const std::size_t wanted =
      std::min(most_draws, group_size > 0 ? (pen->room() + group_size - 1) / group_size
                                          : std::min<std::size_t>(pen->room(), 1));
  while (asking < wanted) {
    ++asking;
    self->request(pool, draw_limit, draw_atom_v)
        .then(
            [this](const draw_record& draw) {
              --asking;
              take_draw(draw);
              ask();
            },
            [this](const caf::error&) {
              --asking;  // there is no room at present, or the stage draws nothing
              ask();
            });
  }
}

void generator_state::take_draw(const draw_record& draw) {
  if (stopping) return;
  group_size = std::max<std::size_t>(1, draw->getSamples());
  if (draw->getStage() == schema::Stage::COMPARISON && draw->getPolicyVersion() != loaded) {
    pinned.push_back(draw);
    keep_writing();
    return;
  }
  begin(draw);
}

void generator_state::begin(const draw_record& draw) {
  const auto t = tasks->find(task_id(draw->getTaskId()));
  if (t == nullptr) return;
  // Where the prompt leaves no room for an answer, it shows fewer exemplars: those that matter most
  // come last.
  for (prompt_facts facts = facts_for(*t, *draw);; facts.exemplars.erase(facts.exemplars.begin())) {
    open_draw opened{draw, options.prompts->render(facts), unix_ms()};
    try {
      pen->submit(next_ticket, opened.prompt, draw->getSamples());
      open.emplace(next_ticket++, std::move(opened));
      keep_writing();
      return;
    } catch (const policy_error& e) {
      counts.failed();
      if (!facts.exemplars.empty()) continue;
      self->quit(caf::make_error(caf::sec::runtime_error, "task " + t->name + ": " + e.what()));
      return;
    }
  }
}

void generator_state::load(std::uint64_t version, const std::string& checkpoint) {
  const activity::span busy(counts, "load weights");
  pen->load(options.run_folder / checkpoint, version);
  loaded = version;
  has_loaded = true;
}

void generator_state::take_weights(const version_record& version) {
  newest = version;
  has_newest = true;
  keep_writing();
}

void generator_state::keep_writing() {
  if (writing) return;
  writing = true;
  self->send(self, tick_atom_v);
}

void generator_state::write_on() {
  writing = false;
  if (stopping) return;
  // A comparison's version stays until its draws are written; everything else is written with the
  // newest.
  const bool comparing =
      !pinned.empty() || std::any_of(open.begin(), open.end(), [](const auto& entry) {
        return entry.second.draw->getStage() == schema::Stage::COMPARISON;
      });
  if (has_newest && !comparing) {
    load(newest->getVersion(), newest->getCheckpoint());
    has_newest = false;
  }
  if (!pinned.empty() && pen->busy_with() == 0) {
    const std::uint64_t version = pinned.front()->getPolicyVersion();
    load(version, checkpoint_name(version));
    while (!pinned.empty() && pinned.front()->getPolicyVersion() == version) {
      const draw_record draw = pinned.front();
      pinned.pop_front();
      begin(draw);
    }
  }
  if (pen->busy_with() > 0) {
    const activity::span busy(counts, "write");
    const auto end = std::chrono::steady_clock::now() + (turns.are_shared() ? shared_slice : slice);
    while (pen->busy_with() > 0 && std::chrono::steady_clock::now() < end) {
      for (const writer::finished& done : pen->step()) hand_in(done);
      if (pen->room() == 0 || asking > 0) continue;
      if (!turns.are_shared()) break;
      ask();  // the answer comes behind this turn, whose end would cost more than an empty slot
    }
    counts.set_number("tokens", static_cast<double>(pen->tokens_written()));
    counts.set_number("version", static_cast<double>(loaded));
  }
  ask();
  if (pen->busy_with() > 0 || !pinned.empty()) keep_writing();
}

void generator_state::hand_in(const writer::finished& done) {
  const auto found = open.find(done.ticket);
  if (found == open.end()) return;
  const group_record group = make_group(found->second, done);
  open.erase(found);
  counts.processed(done.completions.size());
  send_group(group);
}

// Until the pool says that it is durable.
void generator_state::send_group(const group_record& group) {
  self->request(pool, submit_limit, submit_atom_v, group)
      .then([](done_atom) {},
            [this, group](const caf::error&) {
              counts.failed();
              if (!stopping) send_group(group);
            });
}

generator_actor::behavior_type generator(generator_actor::stateful_pointer<generator_state> self,
                                         std::string name, generator_options options,
                                         std::shared_ptr<const task_table> tasks, pool_actor pool) {
  auto& s = self->state;
  s.self = self;
  s.options = std::move(options);
  s.tasks = std::move(tasks);
  s.pool = std::move(pool);
  s.counts = activity(std::move(name), "generator");
  s.turns = gpu_turns(s.options.gpu);
  self->link_to(s.pool);
  const auto attempt = [self](auto work) {
    try {
      work();
    } catch (const std::exception& e) {
      self->quit(caf::make_error(caf::sec::runtime_error, e.what()));
    }
  };
  attempt([&] { s.turns.take(self, [&s] { s.pen = s.options.make_writer(); }); });
  return {
      [self](weights_atom, const version_record& version) { self->state.take_weights(version); },
      [self, attempt](use_atom, std::uint64_t turn) {
        attempt([&] { self->state.turns.use(self, turn); });
        return done_atom_v;
      },
      [self](lease_atom) { self->state.turns.ask_again(self); },
      [self, attempt](tick_atom) {
        attempt([&] { self->state.turns.take(self, [self] { self->state.write_on(); }); });
      },
      [self](stop_atom) { self->state.stopping = true; },
      [self](status_atom) {
        return self->state.counts.report(self->state.pinned.size(),
                                         self->state.pen ? self->state.pen->busy_with() : 0);
      },
  };
}

}  // namespace hone
