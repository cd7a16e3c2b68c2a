#include "launch/cluster/cluster.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "launch/cluster/cluster_head.hpp"
#include "launch/cluster/programs.hpp"
#include "network/address.hpp"
#include "network/identity.hpp"
#include "process/file_lock.hpp"
#include "process/replace_file.hpp"
#include "process/unique_fd.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr const char* head_identity = "head";

fs::path cluster_folder(const fs::path& run) { return run / "cluster"; }
fs::path plan_of(const fs::path& run) { return cluster_folder(run) / "cluster.toml"; }
fs::path authority_of(const fs::path& run) { return cluster_folder(run) / "authority"; }
fs::path identity_of(const fs::path& run, const std::string& name) {
  return authority_of(run) / "identities" / name;
}

// Keeps other commands from changing the cluster, as long as it lives.
class cluster_lock {
 public:
  explicit cluster_lock(const fs::path& run) {
    if (!fs::is_directory(cluster_folder(run)))
      throw std::runtime_error(run.string() +
                               ": is not the folder of a run that `hone up` started");
    lock_ = try_lock_file(cluster_folder(run) / "lock");
    if (!lock_) throw std::runtime_error("another command changes the cluster of " + run.string());
  }

 private:
  unique_fd lock_;
};

std::string read_join(const fs::path& run) {
  std::ifstream in(cluster_folder(run) / "join");
  std::string address;
  std::getline(in, address);
  return address;
}

// Returns the address that nodes connect to as far as it is known before the head listens.
std::string planned_join(const cluster_plan& plan) {
  if (!plan.head.advertise.empty()) return plan.head.advertise;
  return plan.head.listen.ends_with(":0") ? "" : plan.head.listen;
}

launch_context context_of(const fs::path& run, const std::string& join, bool has_identity,
                          const node_pool& pool, const cluster_options& options) {
  launch_context context;
  context.run = run;
  context.join = join;
  if (has_identity) context.identity = identity_of(run, pool.name);
  context.program = options.program;
  context.grace = options.grace;
  return context;
}

std::unique_ptr<launcher> launcher_of(const fs::path& run, const cluster_plan& plan,
                                      const node_pool& pool, const cluster_options& options) {
  return make_launcher(pool,
                       context_of(run, read_join(run), needs_identities(plan), pool, options));
}

// `hone scale` leaves the number of nodes here, and the number in the cluster file at that time.
fs::path scaled_of(const fs::path& run, const node_pool& pool) {
  return cluster_folder(run) / (pool.name + ".scaled");
}

// Returns the number of nodes that a pool starts with: that of the last `hone scale` if the cluster
// is resumed and its file has not been given another number since.
std::int64_t first_count(const fs::path& run, const node_pool& pool, bool resume) {
  if (!resume) return pool.count;
  std::ifstream in(scaled_of(run, pool));
  std::int64_t count = 0;
  std::int64_t planned = 0;
  const bool is_known = static_cast<bool>(in >> count >> planned);
  return is_known && planned == pool.count && count <= pool.max_nodes() ? count : pool.count;
}

// Stops the nodes of a pool as it was started.
void stop_pool(const fs::path& run, const cluster_plan& plan, const node_pool& pool,
               const cluster_options& options, problem_list& problems) {
  // A pool without a folder has no nodes, and its launcher's programs need not be there.
  if (!fs::exists(cluster_folder(run) / pool.name)) return;
  try {
    launcher_of(run, plan, pool, options)->scale(0);
  } catch (const std::exception& e) {
    problems.add(e.what());
  }
}

// Stops the nodes of pools that the cluster file no longer describes as it did when they were
// started, apart from their number: otherwise nobody would know of them, or they would go on as
// they were.
void stop_changed_pools(const fs::path& run, const cluster_plan& now,
                        const cluster_options& options) {
  if (!is_cluster(run)) return;
  const cluster_plan before = load_started(run);
  problem_list problems;
  for (const node_pool& old : before.pools) {
    const bool stays = std::any_of(now.pools.begin(), now.pools.end(), [&](node_pool pool) {
      pool.count = old.count;
      return pool == old;
    });
    if (!stays || needs_identities(now) != needs_identities(before))
      stop_pool(run, before, old, options, problems);
  }
  problems.throw_if_any();
}

void make_identities(const cluster_plan& plan) {
  const fs::path authority = authority_of(plan.directory);
  if (!fs::exists(authority / "ca.key")) make_authority(authority);
  const auto make = [&](const std::string& name, identity_role role) {
    const fs::path folder = identity_of(plan.directory, name);
    if (fs::exists(folder / "ca.pem")) return;
    if (fs::exists(folder)) revoke_identity(authority, name);  // it was not finished
    make_identity(authority, name, role);
  };
  make(head_identity, identity_role::head);
  for (const node_pool& pool : plan.pools) make(pool.name, identity_role::node);
}

void make_cluster_folder(const fs::path& run) {
  fs::create_directories(cluster_folder(run));
  fs::permissions(cluster_folder(run), fs::perms::owner_all);
}

std::string number_of_nodes(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " node" : " nodes");
}

}  // namespace

bool is_cluster(const fs::path& run) { return fs::exists(plan_of(run)); }

cluster_plan load_started(const fs::path& run_folder) {
  const fs::path run = fs::absolute(run_folder).lexically_normal();
  if (!is_cluster(run))
    throw std::runtime_error(run.string() + ": is not the folder of a run that `hone up` started");
  cluster_plan plan = load_cluster(plan_of(run));
  plan.directory = run;
  plan.config = run / "config.toml";
  return plan;
}

void require_configuration(const cluster_plan& plan) {
  if (!fs::is_regular_file(plan.config))
    throw std::runtime_error(plan.config.string() +
                             ": there is no such file; `config` of the cluster file names it");
}

bool needs_identities(const cluster_plan& plan) {
  return !is_loopback(parse_address(plan.head.listen, /*allows_any_port=*/true)) ||
         std::any_of(plan.pools.begin(), plan.pools.end(),
                     [](const node_pool& pool) { return pool.launcher != launcher_kind::local; });
}

std::string plan_cluster(const cluster_plan& plan, const cluster_options& options) {
  require_configuration(plan);
  const fs::path& run = plan.directory;
  const bool has_identities = needs_identities(plan);
  std::string text;
  if (has_identities) {
    text += "# identities of the head and of each pool, in " + authority_of(run).string() + ": " +
            head_identity;
    for (const node_pool& pool : plan.pools) text += ", " + pool.name;
    text += "\n\n";
  }
  const fs::path identity = has_identities ? identity_of(run, head_identity) : fs::path();
  text += "# the head\n" +
          shell_line(head_command(plan, options.program, identity, options.resume)) + " >>" +
          shell_quoted(head_log(run).string()) + " 2>&1 &\n";
  std::string join = planned_join(plan);
  if (join.empty()) join = "ADDRESS";
  for (const node_pool& pool : plan.pools) {
    text += "\n# pool " + pool.name + ": " + number_of_nodes(pool.count) + ", by " +
            std::string(name_of(pool.launcher));
    if (join == "ADDRESS")
      text += "; ADDRESS is what the head writes to " + run.string() + "/address";
    text +=
        "\n" +
        make_launcher(pool, context_of(run, join, has_identities, pool, options))->plan(pool.count);
  }
  return text;
}

void start_cluster(const cluster_plan& plan, const cluster_options& options) {
  require_configuration(plan);
  const fs::path& run = plan.directory;
  make_cluster_folder(run);
  const cluster_lock lock(run);
  require_own_machine(run);
  const launched_node head = describe_head(run);
  if (head.phase == node_phase::running)
    throw std::runtime_error("the cluster of " + run.string() + " is up already (its head is " +
                             head.where + ")");
  if (!options.resume && fs::exists(run / "pool"))
    throw std::runtime_error(run.string() + ": there is a run already; go on with `hone up " +
                             run.string() + " --resume`, or name another directory in the file");
  stop_changed_pools(run, plan, options);
  replace_file(plan_of(run), plan.text, 0600);
  const bool has_identities = needs_identities(plan);
  if (has_identities) make_identities(plan);
  const std::string address = start_head(
      run,
      head_command(plan, options.program,
                   has_identities ? identity_of(run, head_identity) : fs::path(), options.resume),
      options.head_limit);
  std::string join = planned_join(plan);
  if (join.empty()) join = address;
  const std::string old_join = read_join(run);
  replace_file(cluster_folder(run) / "join", join + "\n", 0600);
  problem_list problems;
  for (const node_pool& pool : plan.pools) {
    try {
      const auto one = launcher_of(run, plan, pool, options);
      // Nodes of a head that was killed join the new one by themselves, if they can find it.
      if (old_join != join && fs::exists(cluster_folder(run) / pool.name)) one->scale(0);
      one->scale(first_count(run, pool, options.resume));
    } catch (const std::exception& e) {
      problems.add(e.what());
    }
  }
  if (!problems.empty())
    problems.add("the rest of the cluster is up; `hone scale` tries again, `hone down` stops it");
  problems.throw_if_any();
}

void scale_pool(const fs::path& run_folder, const std::string& pool, std::int64_t count,
                const cluster_options& options) {
  const fs::path run = fs::absolute(run_folder).lexically_normal();
  const cluster_plan plan = load_started(run);
  const cluster_lock lock(run);
  require_own_machine(run);
  const node_pool& one = plan.pool(pool);
  if (count < 0 || count > one.max_nodes())
    throw std::runtime_error("pool " + pool + " cannot have " + std::to_string(count) +
                             " nodes, only 0 to " + std::to_string(one.max_nodes()));
  if (count > 0 && describe_head(run).phase != node_phase::running)
    throw std::runtime_error("the head of " + run.string() +
                             " does not run, so there is nothing to join; hone up " + run.string() +
                             " --resume starts it again");
  launcher_of(run, plan, one, options)->scale(count);
  replace_file(scaled_of(run, one), std::to_string(count) + " " + std::to_string(one.count) + "\n",
               0600);
}

void stop_cluster(const fs::path& run_folder, const cluster_options& options) {
  const fs::path run = fs::absolute(run_folder).lexically_normal();
  const cluster_plan plan = load_started(run);
  const cluster_lock lock(run);
  require_own_machine(run);
  problem_list problems;
  for (const node_pool& pool : plan.pools) stop_pool(run, plan, pool, options, problems);
  stop_head(run);
  problems.throw_if_any();
}

std::vector<std::string> pool_names(const fs::path& run) {
  std::vector<std::string> names;
  for (const node_pool& pool : load_started(run).pools) names.push_back(pool.name);
  return names;
}

cluster_state list_cluster(const fs::path& run_folder) {
  const fs::path run = fs::absolute(run_folder).lexically_normal();
  const cluster_plan plan = load_started(run);
  require_own_machine(run);
  cluster_state state;
  state.head = describe_head(run);
  for (const node_pool& pool : plan.pools) {
    node_pool_state one;
    one.name = pool.name;
    one.launcher = pool.launcher;
    try {
      if (fs::exists(cluster_folder(run) / pool.name))
        one.nodes = launcher_of(run, plan, pool, {})->list();
    } catch (const std::exception& e) {
      one.problem = e.what();
    }
    state.pools.push_back(one);
  }
  return state;
}

}  // namespace hone
