// The learner's versions: how one is handed to the generators, written, committed and deleted.
#include <functional>
#include <set>
#include <utility>

#include "actors/error_text.hpp"
#include "actors/learner.hpp"
#include "actors/timeouts.hpp"
#include "messages/clock.hpp"
#include "messages/parse_number.hpp"
#include "policy/policy_device.hpp"
#include "policy/training/checkpoint.hpp"

namespace hone {

void learner_state::commit(learned_step learned, const std::vector<group_id>& groups,
                           bool complete) {
  if (learned.step > 0) learned.numbers.merge(std::exchange(validated, {}));
  const std::uint64_t number = next_version++;
  const bool is_first = !tip;
  record_builder<schema::PolicyVersion> version;
  version->setVersion(number);
  version->setParent(is_first ? number : tip->getVersion());
  version->setDepth(is_first ? 0 : tip->getDepth() + 1);
  version->setStage(plan->stage());
  version->setStep(static_cast<std::uint32_t>(plan->step()));
  version->setCheckpoint(checkpoint_name(number));
  version->setCreatedMs(unix_ms());
  version->setComplete(complete);
  record_builder<schema::TrainingStep> step;
  step->setVersion(number);
  step->setParent(version->getParent());
  step->setStage(is_first ? plan->stage() : tip->getStage());
  auto ids = step->initGroups(static_cast<unsigned>(groups.size()));
  for (unsigned i = 0; i < ids.size(); ++i) groups[i].store(ids[i]);
  auto metrics = step->initMetrics(static_cast<unsigned>(learned.numbers.size()));
  unsigned m = 0;
  for (const auto& [name, value] : learned.numbers) {
    metrics[m].setName(name);
    metrics[m++].setValue(value);
  }
  tip = version.finish();
  ++uncommitted;
  uncommitted_groups.insert(groups.begin(), groups.end());
  hand_over(tip);
  made = {tip, step.finish(), learned};
  if (!writing) take_and_write();
  schedule_tick();
}

bool learner_state::must_wait() const {
  return made || (uncommitted > 0 && (stopping || tip->getStep() == 0 || tip->getComplete()));
}

void learner_state::add_generator(const caf::strong_actor_ptr& generator) {
  const auto handle = caf::actor_cast<generator_actor>(generator);
  if (!handle || !generators.try_emplace(handle.address(), handle).second) return;
  self->monitor(handle);
  const bool takes_tip = tip && options.exchange && is_near(handle) &&
                         options.exchange->find(tip->getVersion()).has_value();
  if (takes_tip || head) self->send(handle, weights_atom_v, takes_tip ? tip : head);
}

bool learner_state::is_near(const generator_actor& generator) const {
  return generator.node() == self->node();
}

// Gives the weights of a version to the generators before its checkpoint is written. Should the run
// be killed before the commit, groups with tokens of this version remain; a resumed run gives its
// number to no other version (pool::note_versions), and treats them as those of an abandoned
// branch.
void learner_state::hand_over(const version_record& version) {
  if (!options.exchange || version->getComplete()) return;
  auto weights = plan->copy_weights();
  if (!weights) return;
  decoder_weights on_host;
  if (options.has_distant_generators) on_host = weights->on_host();
  options.exchange->put(version->getVersion(), *std::move(weights), std::move(on_host));
  for (const auto& [address, generator] : generators) {
    if (is_near(generator)) self->send(generator, weights_atom_v, version);
  }
}

// Has a separate actor write the checkpoint. The host's memory holds at most one checkpoint at a
// time.
void learner_state::take_and_write() {
  const activity::span busy(counts, "take checkpoint");
  const made_version one = *std::exchange(made, std::nullopt);
  const auto folder = options.run_folder / std::string(view(one.version->getCheckpoint()));
  const auto behavior = [write = plan->take_checkpoint(), folder](caf::event_based_actor* writer) {
    return caf::behavior{[write, folder, writer](tick_atom) -> std::string {
      writer->quit();
      try {
        // A run that was killed before its commit may have left a folder of this name.
        std::filesystem::remove_all(folder);
        write(folder);
        return "";
      } catch (const std::exception& e) {
        return describe_failure(e);
      }
    }};
  };
  const caf::actor writer =
      options.has_thread_for_writing ? self->spawn<caf::detached>(behavior) : self->spawn(behavior);
  writing = true;
  self->request(writer, timeouts::checkpoint_request, tick_atom_v)
      .then(
          [this, one](const std::string& problem) {
            if (!problem.empty()) return fail(problem);
            writing = false;
            request_commit(one);
            schedule_tick();
          },
          [this](const caf::error& e) { fail(text_of(self->system(), e)); });
}

// The checkpoint is on disk before the commit, so that every version in the pool has one.
void learner_state::request_commit(const made_version& written) {
  self->request(pool, timeouts::commit_request, commit_atom_v, written.version, written.step)
      .then(
          [this, written](done_atom) {
            --uncommitted;
            for (const auto group : written.step->getGroups())
              uncommitted_groups.erase(group_id(group));
            set_head(written.version);
            attempt([&] {
              if (options.metrics) options.metrics(head, written.learned);
            });
            delete_old_checkpoints();
            publish();
            if (head->getComplete()) return finish(true);
            validate();
            schedule_tick();
          },
          [this](const caf::error& e) { fail_to("store a version", e); });
}

void learner_state::publish() {
  counts.set_number("version", static_cast<double>(head->getVersion()));
  counts.set_number("step", static_cast<double>(head->getStep()));
  counts.set_number("part_of_step", plan->part_of_sft_step());
  counts.set_number("steps", static_cast<double>(plan->steps()));
  counts.set_number("stage", static_cast<double>(plan->stage()));
  const auto left = plan->seconds_left();
  counts.set_number("stage_ends_s", left ? static_cast<double>(unix_ms()) / 1e3 + *left : 0);
  for (const auto& [address, generator] : generators) self->send(generator, weights_atom_v, head);
}

void learner_state::set_head(const version_record& version) {
  const bool is_left_out =
      version->getVersion() == 0 && (options.begins_random || !options.plan.comparison.untrained);
  if ((version->getStep() == 0 && !is_left_out) ||
      is_on_curve(options.plan, version->getStage(), version->getStep()))
    kept_versions.insert(version->getVersion());
  if (version->getStage() == Stage::CONTRASTIVE && version->getStep() == 0)
    before_contrastive = version->getVersion();
  head = version;
}

void learner_state::delete_old_checkpoints() const {
  const auto folder = options.run_folder / "checkpoints";
  std::set<std::uint64_t, std::greater<>> numbers;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const auto number = parse_number<std::uint64_t>(entry.path().filename().string());
    // A later one is not committed yet.
    if (number && *number <= head->getVersion()) numbers.insert(*number);
  }
  std::size_t newest = 0;
  for (const std::uint64_t number : numbers) {
    const bool is_kept = kept_versions.contains(number) || number == before_contrastive;
    if (newest++ >= options.keep_checkpoints && !is_kept)
      std::filesystem::remove_all(folder / std::to_string(number), ignored);
  }
}

}  // namespace hone
