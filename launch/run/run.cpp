#include "launch/run/run.hpp"

#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "actors/error_text.hpp"
#include "launch/core_wait.hpp"
#include "launch/generator_setup.hpp"
#include "launch/metrics/metrics_server.hpp"
#include "launch/run/history_file.hpp"
#include "launch/run/length_check.hpp"
#include "launch/run/metrics_file.hpp"
#include "launch/run/progress_view.hpp"
#include "launch/run/run_activity.hpp"
#include "launch/run/run_actors.hpp"
#include "launch/run/run_folder.hpp"
#include "launch/run/run_inputs.hpp"
#include "launch/run/start_check.hpp"
#include "launch/run/stream_inputs.hpp"
#include "launch/run/tensorboard_file.hpp"
#include "launch/stop_signals.hpp"
#include "launch/system.hpp"
#include "messages/clock.hpp"
#include "network/thread_priority.hpp"
#include "policy/endpoint/endpoint_check.hpp"
#include "policy/policy_device.hpp"
#include "policy/policy_memory.hpp"
#include "policy/training/checkpoint.hpp"
#include "policy/work_progress.hpp"
#include "process/temporary_folder.hpp"
#include "results/printing.hpp"
#include "results/report.hpp"

namespace hone {
namespace {

// How long a run that was stopped by a signal may take to finish its step, and to write the
// checkpoints of two. Launchers leave a process 30 s.
constexpr auto stop_limit = std::chrono::seconds(25);

class run_process {
 public:
  run_process(const configuration& c, const run_options& o) : c_(c), options_(o) {
    if (!o.directory.empty()) c_.directory = o.directory.string();
    c_.directory = std::filesystem::absolute(c_.directory).lexically_normal().string();
  }

  int execute() {
    if (c_.policy.kind == "none")
      throw format_error(c_.file.string(), 0, "policy.kind",
                         "is 'none', and a run needs a policy (`hone serve` needs none)");
    if (options_.dry_run) return describe(check_start(c_, core_wait(options_.waits_for_cores)));
    task_table loaded = load_tasks(c_);
    start_findings found;
    auto documents = take_documents(loaded, found);
    const auto prompts = load_prompts(c_);
    if (!options_.resume) require_policy(c_);
    folder_ = std::make_unique<run_folder>(c_.directory, options_.resume);
    const auto say = [this](const std::string& line) { view_.message(line); };
    const run_folder::resume_point from = find_begin(say);
    if (options_.more_contrastive_steps == 0 && from.is_finished()) return leave_finished_run();
    const std::filesystem::path excluded = prepare_stream(loaded, documents);
    const auto tasks = std::make_shared<const task_table>(std::move(loaded));
    folder_->write("config.toml", print_configuration(c_, false));
    for (const std::string& note : found.notes) say(note);
    if (!c_.node.devices.empty() && is_simulated(c_.node.devices.front()))
      say("simulated devices make up all outcomes and scores of this run");
    prepare_policy(*tasks, *prompts, documents);
    catch_stop_signals();
    ignore_signals_of_writes();
    auto devices = plan_head_devices(c_, options_.waits_for_cores);
    view_.expect(
        work_of_stages(c_, *tasks, std::max<std::size_t>(1, device_types_of(devices).size())));
    const auto write_step = open_step_files(from);
    make_watchable();

    if (c_.policy.kind == "model" && find_device_on_gpu(devices, c_.policy.device) != nullptr)
      set_policy_environment(share_beside_judge);
    auto& system = start_actor_system({std::chrono::milliseconds(c_.node.heartbeat_ms),
                                       std::chrono::milliseconds(c_.node.silence_ms)});
    caf::scoped_actor supervisor(system);
    run_parts parts = {
        .head = head_of(from, tasks, devices),
        .from = from,
        .prompts = prompts,
        .corpus_groups =
            make_corpus_groups(documents, *tasks, device_types_of(devices), c_.corpus.timed),
        .stream_excludes = excluded,
        .corpus_awaits_nodes = devices.empty() && !documents.empty(),
        .metrics = write_step,
    };
    parts.head.on_new_type = [me = caf::actor(supervisor.ptr())](const std::string& type) {
      caf::anon_send(me, corpus_atom_v, type);
    };
    run_actors actors = start_run_actors(system, parts, supervisor);
    parts.corpus_groups = {};  // the pool's mailbox has them
    say_what_is_left_to_nodes();
    const int code = wait(system, supervisor, actors, [&](const std::string& type) {
      const auto groups = make_corpus_groups(documents, *tasks, {type}, c_.corpus.timed);
      caf::anon_send(actors.learner, corpus_atom_v, type, std::uint64_t{groups.size()});
      for (const group_record& group : groups)
        supervisor->send(actors.head.pool, submit_atom_v, group);
    });
    std::cout.flush();
    // The folder stays locked until the process closes the pool's files.
    end_process(code);
  }

 private:
  head_parts head_of(const run_folder::resume_point& from,
                     const std::shared_ptr<const task_table>& tasks,
                     const std::vector<planned_device>& devices) {
    const curriculum_options& plan = c_.learner.plan;
    pool_actor_options pool = c_.pool;
    pool.draws.step_groups =
        static_cast<std::size_t>(std::max(plan.self_supervised.groups, plan.contrastive.groups));
    pool.draws.first_place = from.next_version * pool.draws.step_groups;
    return {
        .settings = c_,
        .folder = *folder_,
        .tasks = tasks,
        .devices = devices,
        .pool = pool,
        .scored_device_types = from.scored_device_types,
        .needs_baselines = needs_baselines(plan.contrastive.reward),
        // Endpoints have separate limits, which one generator keeps.
        .setup = c_.policy.kind != "endpoint" ? make_generator_setup(c_) : generator_setup_record(),
        .on_new_type = {},
        .log = [this](const std::string& line) { view_.message(line); },
        .show = [this](const node_snapshot& snapshot) { show(snapshot); },
    };
  }

  // Returns the documents of the corpus that are judged. The rest of it is not kept: a large corpus
  // takes gigabytes.
  std::vector<corpus_document> take_documents(const task_table& tasks,
                                              start_findings& found) const {
    const auto corpus = read_corpus(c_, tasks);
    auto documents = choose_documents(c_, tasks, corpus);
    found = check_corpus(c_, tasks, corpus, documents);
    if (!found.problems.empty()) throw std::runtime_error(joined(found.problems));
    return documents;
  }

  // Returns where the run goes on, or begins.
  run_folder::resume_point find_begin(const std::function<void(const std::string&)>& say) {
    run_folder::resume_point from;
    if (options_.resume) from = find_resume_point(*folder_, say);
    refuse_to_mix(c_, *folder_, from.scored_device_types);
    if (options_.more_contrastive_steps > 0) extend_contrastive_stage(from);
    return from;
  }

  void make_watchable() {
    prometheus_ =
        serve_metrics("node.metrics", c_.node.metrics,
                      {.run = c_.directory, .seed = c_.seed, .max_lag = c_.pool.storage.max_lag},
                      [this](const std::string& line) { view_.message(line); });
    {
      const std::lock_guard hold(snapshot_lock_);
      history_.emplace(folder_->path() / "history.jsonl");
    }
    view_.message("watch it in a browser: " + command_to_watch(folder_->path()));
  }

  // Opens the files of the numbers of training steps, and returns a function that writes a step.
  std::function<void(const version_record&, const learned_step&)> open_step_files(
      const run_folder::resume_point& from) const {
    const auto lines = std::make_shared<metrics_file>(folder_->path() / "metrics.jsonl");
    std::shared_ptr<tensorboard_file> events;
    if (c_.run.tensorboard)
      events = std::make_shared<tensorboard_file>(
          folder_->path(), from.chain.empty() ? 0 : from.chain.back()->getVersion() + 1);
    return [lines, events](const version_record& version, const learned_step& step) {
      lines->write(version, step);
      if (events) events->write(version, step);
    };
  }

  // Adds the judged sample of the stream. Returns the file with the stream's exclusions; empty
  // without a stream.
  std::filesystem::path prepare_stream(task_table& tasks,
                                       std::vector<corpus_document>& documents) const {
    if (c_.stream.workers == 0) return {};
    const std::filesystem::path file = folder_->path() / "stream_excludes.json";
    exclude_held_out(tasks, file);
    for (corpus_document& one : add_stream_sample(c_, file, tasks))
      documents.push_back(std::move(one));
    return file;
  }

  void say_what_is_left_to_nodes() {
    if (c_.node.devices.empty())
      view_.message(
          "this node has no devices (node.devices = []): variants wait until nodes bring some");
    if (c_.generation.replicas == 0)
      view_.message(
          "this node has no generators (generation.replicas = 0): nothing is written until a node "
          "with generators joins");
    if (c_.node.options.compilers == 0)
      view_.message(
          "this node has no compilers (node.compilers = 0): variants wait until a node with "
          "compilers joins");
  }

  void prepare_policy(const task_table& tasks, const prompt_template& prompts,
                      const std::vector<corpus_document>& documents) {
    set_policy_threads(static_cast<int>(c_.policy.threads));
    if (c_.policy.kind == "endpoint") read_endpoint_keys(c_.endpoints);
    c_.policy.chat = chat_format_of_run();
    if (c_.policy.kind != "model") return;
    if (const std::string said = describe_dtype(c_); !said.empty()) view_.message(said);
    for (const std::string& warning : check_lengths(c_, tasks, prompts, documents).warnings)
      view_.message(warning);
  }

  // Returns the chat format with which the run began: groups that it has stored were written for
  // it. A template may say the date, so it is rendered once. A run of an earlier version of Hone
  // has no such file, and plain prompts.
  chat_format chat_format_of_run() const {
    constexpr const char* name = "chat_format.json";
    const std::filesystem::path file = folder_->path() / name;
    if (!std::filesystem::exists(file)) {
      const chat_format found = options_.resume ? chat_format{} : find_chat_format(c_);
      folder_->write(name, print_chat_format(found));
      return found;
    }
    chat_format kept = load_chat_format(file);
    if (c_.prompt.format != "auto" && (c_.prompt.format == "plain") != kept.is_plain())
      throw format_error(c_.file.string(), 0, "prompt.format",
                         "is '" + c_.prompt.format + "', but the run began with prompts of the " +
                             "other kind (" + file.string() + ")");
    return kept;
  }

  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
    return text;
  }

  int describe(const start_findings& found) const {
    if (!found.problems.empty()) {
      std::cerr << "hone: " << c_.file.string() << " would not start a run:\n"
                << joined(found.problems) << "\n";
      return 2;
    }
    std::cout << "# " << c_.file.string() << " is valid: " << counted(found.tasks, "task") << ", "
              << counted(found.documents, "corpus document") << "\n";
    for (const std::string& note : found.notes) std::cout << "# " << note << "\n";
    std::cout << "\n" << print_configuration(c_, true);
    return 0;
  }

  void extend_contrastive_stage(run_folder::resume_point& from) {
    std::int64_t& steps = c_.learner.plan.contrastive.steps;
    if (from.is_finished() || from.compares()) {
      const auto made = from.reopen_contrastive_stage();
      if (!made || find_checkpoint_damage(folder_->path() /
                                          checkpoint_name(from.chain.back()->getVersion())))
        throw std::runtime_error(folder_->path().string() +
                                 ": this run has no contrastive stage that could go on, or the "
                                 "checkpoint of its last step is gone");
      steps = *made;
    }
    steps += options_.more_contrastive_steps;
    view_.message("the stage goes on by " + std::to_string(options_.more_contrastive_steps) +
                  " steps" + (from.leaves_branch ? ", after its last step is made again" : ""));
  }

  int leave_finished_run() {
    const std::string folder = folder_->path().string();
    view_.message(folder + ": this run has finished, and is left as it is; `hone report " + folder +
                  "` prints its report, and `" + command_to_go_on(folder, true) +
                  "` goes on by 20 steps");
    return 0;
  }

  void show(const node_snapshot& snapshot) {
    const std::lock_guard hold(snapshot_lock_);
    snapshot_ = snapshot;
    view_.show(snapshot);
    if (prometheus_) prometheus_->show(snapshot);
    if (history_) history_->note(snapshot, unix_ms());
  }

  // Returns the exit code when the learner has finished, something fatal has happened, or a signal
  // has ended the run. `judge_corpus` is called with each type of device that joined nodes bring.
  int wait(caf::actor_system& system, caf::scoped_actor& supervisor, run_actors& actors,
           const std::function<void(const std::string&)>& judge_corpus) {
    const auto begin = std::chrono::steady_clock::now();
    std::optional<bool> finished;
    std::string fatal;
    bool stopping = false;
    std::uint64_t done = 0;  // steps of the policy's work
    auto give_up = std::chrono::steady_clock::time_point::max();
    while (!finished && fatal.empty() && std::chrono::steady_clock::now() < give_up) {
      supervisor->receive([&](finish_atom, bool complete) { finished = complete; },
                          [&](fatal_atom, const std::string& reason) { fatal = reason; },
                          [&](const caf::down_msg& down) {
                            if (!stopping)
                              fatal = "the run cannot go on: " + text_of(system, down.reason);
                          },
                          [&](done_atom) {},  // a corpus group is durable
                          [&](corpus_atom, const std::string& type) { judge_corpus(type); },
                          [&](const caf::error&) {},
                          caf::after(std::chrono::milliseconds(100)) >> [] {});
      if (was_asked_to_stop() && !stopping) {
        stopping = true;
        stop(actors);
        give_up = std::chrono::steady_clock::now() + stop_limit;
      }
      // An update may take longer than the limit.
      const std::uint64_t now_done = progress_of_process();
      if (stopping && now_done != done) give_up = std::chrono::steady_clock::now() + stop_limit;
      done = now_done;
    }
    if (!fatal.empty()) {
      view_.message("hone: " + fatal +
                    "\neverything that was acknowledged is on disk; resume with: " +
                    command_to_go_on(folder_->path(), false));
      return 1;
    }
    if (!finished || !*finished) {
      view_.message(
          "stopped; `hone report " + folder_->path().string() +
          "` shows the results so far; resume with: " + command_to_go_on(folder_->path(), false));
      return 3;
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    supervisor->request(actors.head.telemetry, timeouts::last_status_round, finish_atom_v)
        .receive([](done_atom) {}, [](const caf::error&) {});
    actors.head.door.reset();  // a node that came now would not hear of the end
    supervisor->request(actors.head.node, timeouts::goodbye, stop_atom_v)
        .receive([](done_atom) {}, [](const caf::error&) {});
    // A measurement that is still under way would change what the report has counted.
    supervisor->send_exit(actors.head.pool, caf::exit_reason::user_shutdown);
    supervisor->wait_for(actors.head.pool);
    return report(seconds);
  }

  void stop(const run_actors& actors) {
    view_.message(
        "stopping: what the policy has learned so far is committed after the current update; a "
        "second signal ends the run at once");
    caf::anon_send(actors.head.pool, stop_atom_v);
    for (const generator_actor& generator : actors.generators)
      caf::anon_send(generator, stop_atom_v);
    caf::anon_send(actors.learner, stop_atom_v);
  }

  int report(double seconds) {
    run_activity activity;
    {
      const std::lock_guard hold(snapshot_lock_);
      activity = activity_of(snapshot_);
    }
    const run_report made =
        make_report(folder_->pool(), describe_activity(activity, seconds, options_.resume),
                    // A resumed run's pool has results from before as well.
                    options_.resume ? 0 : seconds / 3600);
    folder_->write("report.txt", made.text);
    folder_->write("report.json",
                   made.json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    view_.message("\n" + made.text);
    return 0;
  }

  configuration c_;
  run_options options_;
  progress_view view_;
  std::unique_ptr<run_folder> folder_;
  std::shared_ptr<metrics_server> prometheus_;  // null unless node.metrics is set
  std::mutex snapshot_lock_;
  node_snapshot snapshot_;
  std::optional<history_file> history_;
};

}  // namespace

int run(const configuration& c, const run_options& options) {
  return run_process(c, options).execute();
}

}  // namespace hone
