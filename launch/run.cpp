#include "launch/run.hpp"

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <mutex>
#include <set>
#include <utility>

#include "actors/generator.hpp"
#include "actors/learner.hpp"
#include "actors/node.hpp"
#include "actors/pool.hpp"
#include "actors/telemetry.hpp"
#include "actors/work_queue.hpp"
#include "evaluation/devices.hpp"
#include "launch/report.hpp"
#include "launch/run_folder.hpp"
#include "launch/system.hpp"
#include "launch/view.hpp"
#include "messages/clock.hpp"
#include "messages/versions.hpp"
#include "policy/policy_device.hpp"
#include "tasks/corpus.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

volatile sig_atomic_t signals = 0;

void on_signal(int /*number*/) {
  signals = signals + 1;
  if (signals > 1) _exit(130);  // asked twice: at once
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error to report like a full disk
}

task_table load_tasks(const configuration& c) {
  task_table table;
  const std::filesystem::path folder = c.tasks.folder;
  std::vector<std::filesystem::path> files;
  for (const std::string& name : c.tasks.names) files.push_back(folder / (name + ".toml"));
  if (c.tasks.names.empty()) {
    if (!std::filesystem::is_directory(folder))
      throw format_error(c.file.string(), 0, "tasks.folder", folder.string() + " is no folder");
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".toml") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  }
  for (const auto& file : files) table.add(load_task(file));
  if (table.all().empty())
    throw format_error(c.file.string(), 0, "tasks", "there are no tasks in " + folder.string());
  return table;
}

std::vector<corpus_document> load_documents(const configuration& c, const task_table& tasks) {
  std::vector<corpus_document> documents;
  if (c.corpus.folder.empty()) return documents;
  std::map<std::string, std::vector<corpus_document>> by_task;
  std::set<std::pair<std::string, std::string>> seen;  // the same text twice is one document
  for (auto& document : load_corpus(c.corpus.folder)) {
    if (tasks.find(document.task) != nullptr && seen.emplace(document.task, document.text).second)
      by_task[document.task].push_back(std::move(document));
  }
  for (auto& [name, list] : by_task) {
    const std::size_t kept =
        c.corpus.per_task > 0 ? std::min(list.size(), static_cast<std::size_t>(c.corpus.per_task))
                              : list.size();
    for (std::size_t i = 0; i < kept; ++i)
      documents.push_back(std::move(list[i * list.size() / kept]));
  }
  return documents;
}

// A group of one document. Its id follows from its contents, so that a resumed run records it only
// once.
group_record corpus_group(const corpus_document& document, const task& t,
                          const std::string& device_type) {
  record_builder<schema::RolloutGroup> group;
  content_id<group_id>({"corpus", to_string(t.id), device_type, document.text})
      .store(group->initId());
  group->setOrigin(schema::RolloutGroup::Origin::CORPUS);
  group->setFinishedMs(unix_ms());
  auto draw = group->initDraw();
  content_id<draw_id>({"corpus", to_string(t.id), device_type, document.text}).store(draw.initId());
  t.id.store(draw.initTaskId());
  draw.setDeviceType(device_type);
  draw.setStage(Stage::SFT);
  draw.setSamples(1);
  const auto variant = make_variant(t.id, document.text);
  auto rollout = group->initRollouts(1)[0];
  content_id<rollout_id>({"corpus", to_string(t.id), device_type, document.text})
      .store(rollout.initId());
  rollout.setVariantId(variant->getId());
  rollout.setText(document.text);
  group->initVariants(1).setWithCaveats(0, *variant);
  return group.finish();
}

// One document of each task in turn, so that every task has exemplars early.
std::vector<group_record> corpus_groups(const std::vector<corpus_document>& documents,
                                        const task_table& tasks,
                                        const std::vector<planned_device>& devices) {
  std::set<std::string> types;
  for (const planned_device& device : devices) types.emplace(view(device.type->getName()));
  std::map<std::string, std::vector<const corpus_document*>> by_task;
  for (const corpus_document& document : documents) by_task[document.task].push_back(&document);
  std::vector<group_record> groups;
  for (std::size_t round = 0; groups.size() < documents.size() * types.size(); ++round) {
    for (const auto& [name, list] : by_task) {
      // A stride spreads a sweep's neighbours over time.
      const std::size_t stride = list.size() % 7 != 0 ? 7 : 1;
      if (round >= list.size()) continue;
      for (const std::string& type : types)
        groups.push_back(
            corpus_group(*list[round * stride % list.size()], *tasks.find(name), type));
    }
  }
  return groups;
}

// The run's own file of metrics: a line a step, under the stage that it was made in.
class metrics_file {
 public:
  explicit metrics_file(const std::filesystem::path& path) : out_(path, std::ios::app) {}
  void write(const version_record& version, const learned_step& learned) {
    nlohmann::ordered_json line = {{"time_ms", version->getCreatedMs()},
                                   {"version", version->getVersion()},
                                   {"parent", version->getParent()},
                                   {"stage", name_of(learned.stage)},
                                   {"step", learned.step}};
    for (const auto& [name, value] : learned.numbers) line[name] = value;
    out_ << line.dump() << std::endl;
  }

 private:
  std::ofstream out_;
};

std::shared_ptr<const prompt_template> load_prompts(const configuration& c) {
  if (c.prompt.prompt_template.empty())
    return std::make_shared<const prompt_template>(prompt_template::parse("{{task}}\n", "default"));
  return std::make_shared<const prompt_template>(prompt_template::load(c.prompt.prompt_template));
}

std::unique_ptr<trainer> make_trainer(const configuration& c) {
  if (c.policy.kind == "scripted") return nullptr;
  trainer::options o;
  o.device = c.policy.device;
  o.optimiser = c.optimiser;
  o.seed = c.seed;
  return std::make_unique<trainer>(c.policy.folder, c.policy.random_weights, o);
}

// Everything that a run is made of, wired in the order in which a variant passes through it.
struct assembly {
  pool_actor pool;
  std::vector<generator_actor> generators;
  learner_actor learner;
  telemetry_actor watching;
  node_actor first;
};

class run_session {
 public:
  run_session(const configuration& c, const run_options& o) : c_(c), options_(o) {
    if (!o.directory.empty()) c_.directory = o.directory.string();
  }

  int execute() {
    tasks_ = std::make_shared<const task_table>(load_tasks(c_));
    documents_ = load_documents(c_, *tasks_);
    prompts_ = load_prompts(c_);
    if (options_.dry_run) return describe();
    folder_ = std::make_unique<run_folder>(c_.directory, options_.resume);
    folder_->write("config.toml", print_configuration(c_));
    run_folder::resume_point from;
    if (options_.resume)
      from = folder_->find_resume_point([this](const std::string& line) { view_.message(line); });
    catch_signals();
    devices_ = plan_devices(c_.node.devices, c_.node.share_cores, c_.simulated, "node 0");
    set_policy_threads(static_cast<int>(c_.policy.threads));
    auto& system = start_actor_system();
    assembly built = assemble(system, from);
    if (c_.node.compilers == 0)
      view_.message(
          "nothing compiles on this node (node.compilers = 0): programs wait for one that joins "
          "with compilers");
    const int code = wait(system, built);
    std::cout.flush();
    _exit(code);  // here: the folder stays locked until the pool's files close with the process
  }

 private:
  int describe() {
    const auto trains = make_trainer(c_);
    std::cout << "configuration " << c_.file.string() << " is good\n";
    std::cout << "  " << tasks_->all().size() << " tasks, " << documents_.size()
              << " corpus documents\n";
    std::cout << "  devices:";
    for (const std::string& device : c_.node.devices) std::cout << " " << device;
    std::cout << "\n  directory " << c_.directory << "\n\n" << print_configuration(c_);
    return 0;
  }

  assembly assemble(caf::actor_system& system, const run_folder::resume_point& from) {
    assembly built;
    supervisor_ = std::make_unique<caf::scoped_actor>(system);
    const caf::actor supervisor(supervisor_->ptr());

    pool_actor_options pool_settings;
    pool_settings.storage.folder = folder_->pool();
    pool_settings.storage.exemplars = c_.pool.exemplars;
    pool_settings.storage.judge_version = judge_version;
    pool_settings.storage.job_deadline_ms =
        static_cast<std::uint64_t>(c_.pool.job_deadline_s * 1000);
    pool_settings.storage.max_lag = static_cast<std::uint32_t>(c_.pool.max_lag);
    pool_settings.draws.max_groups = static_cast<std::size_t>(c_.pool.max_groups);
    pool_settings.draws.step_groups = static_cast<std::size_t>(
        std::max(c_.plan.self_supervised.groups, c_.plan.contrastive.groups));
    pool_settings.draws.samples = static_cast<std::uint32_t>(c_.generation.group_size);
    if (!c_.pool.acknowledgements.empty())
      pool_settings.acknowledgements = (folder_->path() / c_.pool.acknowledgements).string();
    built.pool = system.spawn<caf::detached>(pool_shell, pool_settings, tasks_, supervisor);

    node_wiring wiring;
    wiring.pool = built.pool;
    wiring.compiles = system.spawn(work_queue<compile_job>, std::string("compile"), built.pool);
    wiring.verifies = system.spawn(work_queue<verify_job>, std::string("verify"), built.pool);
    wiring.benchmarks =
        system.spawn(work_queue<benchmark_job>, std::string("benchmark"), built.pool);
    caf::anon_send(built.pool, connect_atom_v, wiring.compiles);

    telemetry_options watch;
    watch.node = "node 0";
    for (const planned_device& device : devices_) watch.device_types.push_back(device.type);
    if (c_.trace) watch.trace = folder_->path() / "trace.json";
    watch.show = [this](const node_snapshot& snapshot) {
      const std::lock_guard hold(snapshot_lock_);
      snapshot_ = snapshot;
      view_.show(snapshot);
    };
    built.watching = system.spawn(telemetry, watch, built.pool, node_actor());

    planned_device* const lent =
        c_.policy.kind == "scripted" ? nullptr : find_device_on_gpu(devices_, c_.policy.device);
    if (lent != nullptr) {
      // Jobs wait for turns as well: one of each generator's and one of the learner's.
      lent->job_limit += (c_.generation.replicas + 1) * gpu_turns::longest_turn;
      view_.message("policy and judge take turns on " + lent->name);
    }
    node_options own;
    own.name = "node 0";
    own.devices = devices_;
    own.compilers = static_cast<std::size_t>(c_.node.compilers);
    own.compiler_credits = is_fast() ? 64 : 2;
    own.log = [this](const std::string& line) { view_.message(line); };
    built.first = system.spawn(node, own, wiring, tasks_, built.watching);
    const auto port = system.middleman().publish(built.first, c_.node.port, "127.0.0.1");
    if (!port)
      throw std::runtime_error("the node cannot listen on 127.0.0.1:" +
                               std::to_string(c_.node.port) + ": " + system.render(port.error()));
    const std::string address = "127.0.0.1:" + std::to_string(*port);
    folder_->write("address", address + "\n");
    view_.message("listening on " + address + " (hone status --connect " + address + ")");

    shared_gpu shared;
    if (lent != nullptr)
      shared = {built.first, lent->name,
                [of_policy = c_.policy.device] { finish_policy_work(of_policy); }};
    for (std::int64_t i = 0; i < c_.generation.replicas; ++i) {
      generator_options g;
      g.run_folder = folder_->path();
      g.prompts = prompts_;
      g.gpu = shared;
      g.make_writer = [this, i]() -> std::unique_ptr<writer> {
        if (c_.policy.kind == "scripted")
          return make_scripted_writer(c_.seed + static_cast<std::uint64_t>(i));
        generation_options written = c_.generation.options;
        written.seed += static_cast<std::uint64_t>(i);
        return make_model_writer(c_.policy.folder, c_.policy.device, written);
      };
      built.generators.push_back(system.spawn<caf::detached>(
          generator, "generator " + std::to_string(i), g, tasks_, built.pool));
    }
    const auto groups = corpus_groups(documents_, *tasks_, devices_);
    learner_options l;
    l.run_folder = folder_->path();
    l.plan = c_.plan;
    l.corpus_groups = groups.size();
    l.keep_checkpoints = static_cast<std::size_t>(c_.pool.keep_checkpoints);
    l.chain = from.chain;
    l.leaves_branch = from.leaves_branch;
    l.next_version = from.next_version;
    l.gpu = shared;
    l.log = [this](const std::string& line) { view_.message(line); };
    metrics_ = std::make_unique<metrics_file>(folder_->path() / "metrics.jsonl");
    l.metrics = [this](const version_record& version, const learned_step& learned) {
      metrics_->write(version, learned);
    };
    l.make_curriculum = [this] {
      return std::make_unique<curriculum>(c_.plan, make_trainer(c_), prompts_, *tasks_, c_.seed);
    };
    built.learner =
        system.spawn<caf::detached>(learner, l, built.pool, built.generators, supervisor);

    for (const auto& one : {caf::actor_cast<caf::strong_actor_ptr>(built.pool),
                            caf::actor_cast<caf::strong_actor_ptr>(wiring.compiles),
                            caf::actor_cast<caf::strong_actor_ptr>(wiring.verifies),
                            caf::actor_cast<caf::strong_actor_ptr>(wiring.benchmarks),
                            caf::actor_cast<caf::strong_actor_ptr>(built.learner)}) {
      caf::anon_send(built.watching, watch_atom_v, one);
    }
    for (const generator_actor& g : built.generators) {
      caf::anon_send(built.watching, watch_atom_v, caf::actor_cast<caf::strong_actor_ptr>(g));
      (*supervisor_)->monitor(g);
    }
    (*supervisor_)->monitor(built.learner);
    for (const group_record& group : groups) (*supervisor_)->send(built.pool, submit_atom_v, group);
    return built;
  }

  bool is_fast() const {
    return std::all_of(devices_.begin(), devices_.end(),
                       [](const planned_device& d) { return d.credits > 2; });
  }

  std::string resume_command() const {
    return options_.command + (options_.resume ? "" : " --resume");
  }

  // Until the learner has finished, something fatal happens, or a signal asks for the end.
  int wait(caf::actor_system& system, const assembly& built) {
    const auto begin = std::chrono::steady_clock::now();
    std::optional<bool> finished;
    std::string fatal;
    bool stopping = false;
    auto give_up = std::chrono::steady_clock::time_point::max();
    while (!finished && fatal.empty() && std::chrono::steady_clock::now() < give_up) {
      (*supervisor_)
          ->receive([&](finish_atom, bool complete) { finished = complete; },
                    [&](fatal_atom, const std::string& reason) { fatal = reason; },
                    [&](const caf::down_msg& down) {
                      if (!stopping)
                        fatal = "an actor that the run cannot do without has failed: " +
                                system.render(down.reason);
                    },
                    [&](done_atom) {},  // a corpus group is durable
                    [&](const caf::error&) {}, caf::after(std::chrono::milliseconds(100)) >> [] {});
      if (signals > 0 && !stopping) {
        stopping = true;
        view_.message(
            "stopping: the current step is finished and committed; a second signal ends at once");
        give_up = std::chrono::steady_clock::now() + std::chrono::seconds(9);
        caf::anon_send(built.pool, stop_atom_v);
        for (const generator_actor& g : built.generators) caf::anon_send(g, stop_atom_v);
        caf::anon_send(built.learner, stop_atom_v);
      }
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!fatal.empty()) {
      view_.message("hone: " + fatal +
                    "\nwhat was acknowledged is on disk; resume with: " + resume_command());
      return 1;
    }
    if (!finished || !*finished) {
      view_.message("stopped; resume with: " + resume_command());
      return 3;
    }
    (*supervisor_)
        ->request(built.watching, std::chrono::seconds(5), finish_atom_v)
        .receive([](done_atom) {}, [](const caf::error&) {});
    return report(seconds);
  }

  int report(double seconds) {
    std::map<std::string, double> busy;
    {
      const std::lock_guard hold(snapshot_lock_);
      busy = busy_shares(snapshot_);
    }
    const run_report made = make_report(folder_->pool(), busy, seconds, options_.resume);
    folder_->write("report.txt", made.text);
    folder_->write("report.json",
                   made.json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    view_.message("\n" + made.text);
    return 0;
  }

  configuration c_;
  run_options options_;
  progress_view view_;
  std::shared_ptr<const task_table> tasks_;
  std::vector<corpus_document> documents_;
  std::shared_ptr<const prompt_template> prompts_;
  std::unique_ptr<run_folder> folder_;
  std::vector<planned_device> devices_;
  std::unique_ptr<caf::scoped_actor> supervisor_;
  std::unique_ptr<metrics_file> metrics_;
  std::mutex snapshot_lock_;
  node_snapshot snapshot_;
};

}  // namespace

int run(const configuration& c, const run_options& options) {
  return run_session(c, options).execute();
}

}  // namespace hone
