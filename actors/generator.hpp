#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "actors/activity.hpp"
#include "actors/gpu_turns.hpp"
#include "messages/interfaces.hpp"
#include "policy/prompt.hpp"
#include "policy/writer.hpp"
#include "tasks/task_table.hpp"

namespace hone {

struct generator_options {
  std::filesystem::path run_folder;                      // checkpoints' names are relative to it
  std::function<std::unique_ptr<writer>()> make_writer;  // called on the actor's own thread
  std::shared_ptr<const prompt_template> prompts;
  shared_gpu gpu;  // set where a device of this node times on the policy's GPU
};

// Keeps a writer busy: asks the pool for draws, renders prompts, hands finished groups to the pool.
// New weights take effect between two tokens; a draw that names another version (a comparison)
// waits until all sequences under way are finished. Runs the network: spawn it detached.
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
  std::unique_ptr<writer> pen;  // empty until its first turn
  gpu_turns turns;
  activity counts{"", "generator"};
  version_record newest;
  bool has_newest = false;  // not loaded yet
  std::uint64_t loaded = 0;
  bool has_loaded = false;
  std::size_t asking = 0;      // draws that have been asked for and have not come
  std::size_t group_size = 0;  // of the latest draw
  bool writing = false;        // a tick is on its way
  bool stopping = false;
  std::uint64_t next_ticket = 0;
  std::map<std::uint64_t, open_draw> open;
  std::deque<draw_record> pinned;  // draws for another version than the one that is loaded

  void ask();
  void take_draw(const draw_record& draw);
  void begin(const draw_record& draw);
  void load(std::uint64_t version, const std::string& checkpoint);
  void take_weights(const version_record& version);
  void write_on();
  void keep_writing();
  void hand_in(const writer::finished& done);
  void send_group(const group_record& group);
};

generator_actor::behavior_type generator(generator_actor::stateful_pointer<generator_state> self,
                                         std::string name, generator_options options,
                                         std::shared_ptr<const task_table> tasks, pool_actor pool);

}  // namespace hone
