#include "launch/cluster/cluster_file.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <stdexcept>

#include "messages/value_names.hpp"
#include "network/address.hpp"
#include "network/identity.hpp"
#include "tasks/reading_toml.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr const char* letters_and_digits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr std::int64_t max_per_pool = 10000;
constexpr std::array<std::string_view, 4> launcher_names = {"local", "ssh", "slurm", "kubernetes"};

bool consists_of(const std::string& text, const std::string& others) {
  return text.find_first_not_of(letters_and_digits + others) == std::string::npos;
}

// Returns a string of one line; empty if the key is absent.
std::string find_line(toml_view& view, const char* key) {
  std::string text = view.find_string(key).value_or("");
  if (text.find('\n') != std::string::npos || text.find('\0') != std::string::npos)
    view.refuse(key, "has several lines, expected one");
  return text;
}

std::string find_word(toml_view& view, const char* key, const std::string& others) {
  std::string word = find_line(view, key);
  if (!consists_of(word, others) || word.starts_with('-'))
    view.refuse(key, "is '" + word + "', expected letters, digits and any of " + others);
  return word;
}

std::vector<std::string> find_lines(toml_view& view, const char* key) {
  std::vector<std::string> lines = view.find_strings(key).value_or(std::vector<std::string>{});
  for (const std::string& line : lines) {
    if (line.empty() || line.find_first_of(std::string("\n\0", 2)) != std::string::npos)
      view.refuse(key, "holds '" + line + "', expected texts of one line");
  }
  return lines;
}

std::int64_t find_count(toml_view& view, const char* key, std::int64_t otherwise,
                        std::int64_t least, std::int64_t most) {
  const std::int64_t count = view.find_integer(key).value_or(otherwise);
  if (count < least || count > most)
    view.refuse(key, "is " + std::to_string(count) + ", expected " + std::to_string(least) +
                         " to " + std::to_string(most));
  return count;
}

std::string find_address(toml_view& view, const char* key) {
  std::string address = find_line(view, key);
  if (address.empty()) return address;
  // The address becomes a word of command lines, so it has no other characters than these.
  const bool is_word = consists_of(address, ".:-_[]") && address[0] != '-';
  try {
    if (is_word) (void)parse_address(address, /*allows_any_port=*/true);
  } catch (const network_error&) {
    view.refuse(key, "is '" + address + "', expected HOST:PORT");
  }
  if (!is_word) view.refuse(key, "is '" + address + "', expected HOST:PORT");
  return address;
}

launcher_kind launcher_of(toml_view& view) {
  const std::string name = view.string("launcher");
  const auto kind = value_named<launcher_kind>(launcher_names, name);
  if (!kind) view.refuse("launcher", "is '" + name + "', expected local, ssh, slurm or kubernetes");
  return *kind;
}

void read_ssh(toml_view& view, node_pool& pool) {
  pool.setup = find_line(view, "setup");
  pool.hosts = find_lines(view, "hosts");
  pool.per_host = find_count(view, "per_host", 1, 1, max_per_pool);
  if (pool.hosts.empty()) view.refuse("hosts", "is missing or empty, expected names of hosts");
  for (const std::string& host : pool.hosts) {
    if (!consists_of(host, "._-@:%[]") || host.starts_with('-'))
      view.refuse("hosts", "holds '" + host + "', expected a name that ssh knows");
  }
  const std::set<std::string> different(pool.hosts.begin(), pool.hosts.end());
  if (different.size() < pool.hosts.size())
    view.refuse("hosts", "names a host twice, expected per_host for several nodes on one host");
}

void read_slurm(toml_view& view, node_pool& pool) {
  pool.setup = find_line(view, "setup");
  pool.slurm.partition = find_word(view, "partition", "_-.,");
  pool.slurm.account = find_word(view, "account", "_-.@");
  pool.slurm.gres = find_word(view, "gres", "_-.:,=/");
  pool.slurm.time = find_word(view, "time", "-:");
  pool.slurm.extra = find_lines(view, "extra");
  for (const std::string& line : pool.slurm.extra) {
    if (!line.starts_with("#SBATCH "))
      view.refuse("extra", "holds '" + line + "', expected lines that begin with #SBATCH");
  }
}

void read_kubernetes(toml_view& view, node_pool& pool) {
  constexpr std::size_t max_name = 40;  // a pod's name and its labels have at most 63
  const bool has_upper =
      std::any_of(pool.name.begin(), pool.name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (has_upper || pool.name.starts_with('-') || pool.name.ends_with('-') ||
      pool.name.size() > max_name)
    view.refuse("name", "is '" + pool.name +
                            "', expected at most 40 lower-case letters, digits and inner '-' for "
                            "Kubernetes");
  pool.kubernetes.image = find_word(view, "image", "._-/:@");
  if (pool.kubernetes.image.empty()) view.refuse("image", "is missing, expected a container image");
  pool.kubernetes.name_space = find_word(view, "namespace", "-");
  pool.kubernetes.service_account = find_word(view, "service_account", "-.");
  pool.kubernetes.gpus = find_count(view, "gpus", 0, 0, 64);
  if (const auto selector = view.find_table("selector")) {
    for (const auto& [label, value] : selector->table()) {
      if (!value.is_string())
        selector->refuse(value, label.str(), "is " + describe(value) + ", expected a string");
      pool.kubernetes.selector[std::string(label.str())] = value.as_string()->get();
    }
  }
}

node_pool read_pool(toml_view view) {
  node_pool pool;
  pool.name = view.string("name");
  if (pool.name.empty() || pool.name.size() > 60 || !consists_of(pool.name, "-") ||
      pool.name.starts_with('-'))
    view.refuse("name", "is '" + pool.name + "', expected up to 60 letters, digits and '-'");
  // Names of files and folders of the same place (launch/cluster/cluster.hpp), and the head's.
  if (pool.name == "head" || pool.name == "authority" || pool.name == "lock" || pool.name == "join")
    view.refuse("name", "is '" + pool.name + "', which has another meaning");
  pool.launcher = launcher_of(view);
  pool.count = find_count(view, "count", 1, 0, max_per_pool);
  pool.devices = find_lines(view, "devices");
  pool.compilers = find_count(view, "compilers", 1, 0, 256);
  pool.generators = find_lines(view, "generators");
  if (pool.devices.empty() && pool.generators.empty() && pool.compilers == 0)
    view.refuse("compilers", "is 0, expected at least 1 for nodes without devices and generators");
  pool.hone = find_line(view, "hone");
  pool.options = find_lines(view, "options");
  if (pool.launcher == launcher_kind::ssh) read_ssh(view, pool);
  if (pool.launcher == launcher_kind::slurm) read_slurm(view, pool);
  if (pool.launcher == launcher_kind::kubernetes) read_kubernetes(view, pool);
  if (pool.count > pool.max_nodes())
    view.refuse("count", "is " + std::to_string(pool.count) + ", expected at most " +
                             std::to_string(pool.max_nodes()) + ": hosts times per_host");
  view.finish();
  return pool;
}

// Reads what the head binds, and what nodes connect to.
void read_head(toml_view& view, cluster_plan& plan) {
  plan.head.listen = find_address(view, "listen");
  plan.head.advertise = find_address(view, "advertise");
  plan.head.set = find_lines(view, "set");
  const bool binds_all = plan.head.listen.starts_with("0.0.0.0:") ||
                         plan.head.listen.starts_with("[::]:") ||
                         plan.head.listen.starts_with(":::");
  if (binds_all && plan.head.advertise.empty())
    view.refuse("advertise",
                "is missing, expected HOST:PORT that nodes connect to, because the "
                "head binds all addresses");
  if (plan.head.listen.ends_with(":0") && !plan.head.advertise.empty())
    view.refuse("listen", "has port 0, expected the number of a port, as advertise has one");
  view.finish();
}

}  // namespace

std::string_view name_of(launcher_kind kind) {
  return launcher_names[static_cast<std::size_t>(kind)];
}

std::int64_t node_pool::max_nodes() const {
  if (launcher != launcher_kind::ssh) return max_per_pool;
  return std::min(max_per_pool, static_cast<std::int64_t>(hosts.size()) * per_host);
}

const node_pool& cluster_plan::pool(const std::string& name) const {
  std::string known;
  for (const node_pool& one : pools) {
    if (one.name == name) return one;
    known += (known.empty() ? "" : ", ") + one.name;
  }
  throw std::runtime_error("there is no pool '" + name + "', only " +
                           (known.empty() ? "the head" : known));
}

cluster_plan load_cluster(const fs::path& file) {
  cluster_plan plan;
  plan.text = read_source_file(file);
  const std::string name = file.string();
  const toml::table table = parse_toml(plan.text, name);
  toml_view view(table, name);
  const fs::path config = view.string("config");
  plan.config = (fs::absolute(file).parent_path() / config).lexically_normal();
  const std::string directory = view.string("directory");
  if (directory.empty() || directory.find('\n') != std::string::npos)
    view.refuse("directory", "is '" + directory + "', expected the path of a folder");
  plan.directory = fs::absolute(directory).lexically_normal();
  if (auto head = view.find_table("head")) read_head(*head, plan);
  if (plan.head.listen.empty()) plan.head.listen = "127.0.0.1:0";
  std::set<std::string> names;
  for (const toml_view& pool : view.tables("pool")) {
    plan.pools.push_back(read_pool(pool));
    if (!names.insert(plan.pools.back().name).second)
      pool.refuse("name", "is '" + plan.pools.back().name + "', as of an earlier pool");
  }
  view.finish();
  return plan;
}

}  // namespace hone
