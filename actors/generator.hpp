#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/activity.hpp"
#include "actors/gpu_lease.hpp"
#include "messages/interfaces.hpp"
#include "policy/network/weights_exchange.hpp"
#include "policy/sampling/completion_sampler.hpp"
#include "policy/text/prompt.hpp"
#include "tasks/task_table.hpp"

namespace hone {

struct generator_options {
  std::filesystem::path run_folder;  // the names of checkpoints are relative to it
  // Called once, on the actor's own thread, before it waits for a GPU lease; empty: nothing is to
  // be done before.
  std::function<void()> prepare;
  // Called once, on the actor's own thread, under the GPU lease if the GPU is shared.
  std::function<std::unique_ptr<completion_sampler>()> make_sampler;
  std::shared_ptr<const prompt_template> prompts;
  // With the learner of this process; null: weights come as files.
  std::shared_ptr<const weights_exchange> exchange;
  bool is_distant = false;  // runs on another device than the learner
  shared_gpu gpu;
  learner_actor learner;  // announces versions; empty: somebody else does
  fetcher_actor fetcher;  // of a joined node, which copies checkpoints; empty on the first node
};

// Keeps a sampler busy: requests draws from the pool, renders their prompts and submits finished
// groups. New weights take effect between two tokens. A draw that names another version (of a
// comparison) is pinned: it waits until all samples under way are finished, then its version is
// loaded. Blocks its thread while the network runs, so it must be spawned detached.
struct generator_state {
  generator_state() = default;

  struct open_draw {
    draw_record draw;
    std::string prompt;
    std::uint64_t started_ms = 0;
  };

  generator_actor::stateful_pointer<generator_state> self = nullptr;
  generator_options options;
  std::shared_ptr<const task_table> tasks;
  pool_actor pool;
  gpu_lease lease;
  std::unique_ptr<completion_sampler> sampler;  // null until the first work on the GPU
  activity counts{"", "generator"};

  version_record announced;  // the newest that the learner has announced
  version_record newest;     // the newest whose checkpoint is here
  std::filesystem::path newest_folder;
  bool has_newest = false;  // `newest` must still be loaded
  std::uint64_t loaded = 0;
  // Weights of which no token is sampled yet: when they were offered, and the tokens before them.
  struct first_token {
    std::chrono::steady_clock::time_point offered;
    std::uint64_t tokens_before = 0;
  };
  std::optional<first_token> waits_for;
  bool has_loaded = false;

  std::vector<group_record> unsubmitted;          // groups that the pool has refused
  bool repeats = false;                           // repeat() is due
  std::size_t requested_draws = 0;                // requests to the pool without a reply yet
  std::size_t group_size = 0;                     // samples of the latest draw; 0 before the first
  std::map<std::uint64_t, open_draw> open_draws;  // by the sampler's ticket
  std::uint64_t next_ticket = 0;
  struct pinned_draw {
    draw_record draw;
    std::filesystem::path folder;  // of its version's checkpoint
  };
  std::deque<pinned_draw> pinned_draws;
  std::size_t fetching_pins = 0;  // pinned draws whose versions are being copied
  bool tick_is_due = false;
  bool stopping = false;

  void request_draws();
  void take_draw(const draw_record& draw);
  void submit_prompt(const draw_record& draw);
  void pin(const draw_record& draw);
  void load(std::uint64_t version, const std::filesystem::path& checkpoint);
  // Takes the newest weights, from the learner itself if they are still there.
  void load_newest();
  void take_weights(const version_record& version);
  // Lets the fetcher copy a version's checkpoint, and calls `use(folder)` then; `otherwise(error)`
  // if it does not. Without a fetcher the checkpoint is there.
  template <class Use, class Otherwise>
  void find_checkpoint(std::uint64_t version, bool is_pinned, Use use, Otherwise otherwise);
  bool is_comparing() const;
  void load_pinned_version();
  void schedule_tick();
  // Samples for one slice of time, after which the actor serves its mailbox.
  void sample();
  // Records how long the first token of new weights has taken, if it has come.
  void note_first_token();
  void finish_group(const completion_sampler::finished_prompt& done);
  // Submits the group until the pool acknowledges it.
  void submit_group(const group_record& group);
  // Repeats the requests that the pool has refused, after a pause.
  void repeat_later();
  void repeat();
};

generator_actor::behavior_type generator_behavior(
    generator_actor::stateful_pointer<generator_state> self, std::string name,
    generator_options options, std::shared_ptr<const task_table> tasks, pool_actor pool);

}  // namespace hone
