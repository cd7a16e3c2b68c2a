#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <future>
#include <sstream>
#include <stdexcept>

#include "launch/cluster/detached_process.hpp"
#include "launch/cluster/launchers.hpp"
#include "launch/cluster/pool_folder.hpp"
#include "launch/cluster/programs.hpp"
#include "launch/cluster/ssh_scripts.hpp"
#include "network/identity.hpp"
#include "process/unique_fd.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_connections = 8;         // made at a time
constexpr std::chrono::seconds connect_limit{15};  // also in the arguments of ssh
constexpr std::chrono::seconds start_limit{60};    // from the call of ssh until the node runs
constexpr int max_script_bytes = 1 << 18;

// The stored record of a node.
struct ssh_record {
  std::string host;
  std::string folder;            // on the host
  process_mark client;           // the ssh process on this machine
  std::uintmax_t log_bytes = 0;  // size of the node's log before that
};

std::string print(const ssh_record& record) {
  return record.host + "\n" + record.folder + "\n" + print(record.client) + "\n" +
         std::to_string(record.log_bytes) + "\n";
}

ssh_record parse_ssh_record(const std::string& text) {
  std::istringstream in(text);
  ssh_record record;
  std::string client;
  std::getline(in, record.host);
  std::getline(in, record.folder);
  std::getline(in, client);
  record.client = parse_process_mark(client).value_or(process_mark{});
  in >> record.log_bytes;
  return record;
}

std::vector<std::string> ssh_command(const std::string& host) {
  return {"ssh", "-T", "-a", "-x",  // no terminal, no forwarding
          "-o", "BatchMode=yes", "-o", "ConnectTimeout=" + std::to_string(connect_limit.count()),
          // A connection that has broken silently is noticed after two minutes.
          "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=8",
          // A connection that others share would end with the node's.
          "-o", "ControlMaster=no", "-o", "ControlPath=none", host, "sh", "-s"};
}

std::string new_folder_on_host() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    throw std::runtime_error("no random numbers are to be had");
  std::ostringstream name;
  name << "/tmp/hone-" << std::hex << number;
  return name.str();
}

// Returns a descriptor that holds the text for a reader and does not end after it: who inherits it
// as standard input holds both ends of the pipe.
unique_fd endless_input(const std::string& text) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  const unique_fd reader(ends[0]);
  const unique_fd writer(ends[1]);
  unique_fd both(
      open(("/proc/self/fd/" + std::to_string(reader.get())).c_str(), O_RDWR | O_CLOEXEC));
  // The text must fit, because nobody reads yet.
  (void)fcntl(writer.get(), F_SETPIPE_SZ, max_script_bytes);
  (void)fcntl(writer.get(), F_SETFL, O_NONBLOCK);
  const ssize_t written = write(writer.get(), text.data(), text.size());
  if (!both || written != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("cannot hand a script of " + std::to_string(text.size()) +
                             " bytes to ssh");
  return both;
}

// Returns true if the file holds `text` at or after `offset`.
bool has_since(const fs::path& file, std::uintmax_t offset, const std::string& text) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return bytes.find(text) != std::string::npos;
}

// An ssh client whose node may not run yet.
struct beginning {
  ssh_record record;
  fs::path log;
  std::string notice;  // that the node runs
  bool has_begun() const { return has_since(log, record.log_bytes, notice); }
  bool is_over() const { return has_begun() || !is_running(record.client); }
};

class ssh_launcher : public launcher {
 public:
  ssh_launcher(const node_pool& pool, const launch_context& context)
      : pool_(pool), context_(context), folder_(context.run, pool.name) {}

  void scale(std::int64_t count) override {
    if (count > pool_.max_nodes())
      throw std::runtime_error("pool " + pool_.name + " has room for " +
                               std::to_string(pool_.max_nodes()) + " nodes, not for " +
                               std::to_string(count));
    folder_.set_count(count);
    problem_list problems;
    // The remains of a node whose client has ended are removed before the node is started again.
    std::vector<std::int64_t> unwanted;
    for (const auto& [node, record] : folder_.records()) {
      if (node >= count || !is_running(parse_ssh_record(record).client)) unwanted.push_back(node);
    }
    stop(unwanted, problems);
    start_missing(count, problems);
    if (count == 0 && folder_.records().empty()) folder_.remove();
    problems.throw_if_any();
  }

  std::vector<launched_node> list() override {
    std::vector<launched_node> nodes;
    for (const auto& [node, text] : folder_.records()) {
      const ssh_record record = parse_ssh_record(text);
      launched_node one;
      one.name = folder_.node_name(node);
      one.where = "host " + record.host;
      one.phase = is_running(record.client) ? node_phase::running : node_phase::ended;
      if (one.phase == node_phase::ended) one.detail = last_lines(folder_.log(node));
      nodes.push_back(one);
    }
    return nodes;
  }

  std::string plan(std::int64_t count) const override {
    std::string text;
    std::map<std::string, std::string> identity;
    if (!context_.identity.empty()) {
      for (const char* name : identity_files)
        identity[name] = "(contents of " + (context_.identity / name).string() + ")";
    }
    for (std::int64_t node = 0; node < count; ++node) {
      text += shell_line(ssh_command(host_of(node))) + " >>" +
              shell_quoted(folder_.log(node).string()) + " 2>&1 &\n";
      for (std::istringstream script(
               print_start_script(start_of(node, "/tmp/hone-NUMBER", identity), context_.grace));
           script.good();) {
        std::string line;
        if (std::getline(script, line)) text += "    " + line + "\n";
      }
    }
    return text;
  }

 private:
  const std::string& host_of(std::int64_t node) const {
    return pool_.hosts[static_cast<std::size_t>(node) % pool_.hosts.size()];
  }

  ssh_start start_of(std::int64_t node, const std::string& folder,
                     const std::map<std::string, std::string>& identity) const {
    ssh_start start;
    start.node = folder_.node_name(node);
    start.folder = folder;
    start.identity = identity;
    start.setup = pool_.setup;
    start.command =
        node_command(pool_, context_, start.node, identity.empty() ? "" : identity_on_host(folder));
    return start;
  }

  beginning begun(std::int64_t node, const ssh_record& record) const {
    return {record, folder_.log(node), start_notice(folder_.node_name(node))};
  }

  beginning start(std::int64_t node, const std::map<std::string, std::string>& identity) {
    ssh_record record;
    record.host = host_of(node);
    record.folder = new_folder_on_host();
    std::error_code is_new;
    record.log_bytes = fs::file_size(folder_.log(node), is_new);
    if (is_new) record.log_bytes = 0;
    const unique_fd input =
        endless_input(print_start_script(start_of(node, record.folder, identity), context_.grace));
    record.client = start_detached(ssh_command(record.host), folder_.log(node), input.get());
    record_start(record.client, [&] { folder_.write_record(node, print(record)); });
    return begun(node, record);
  }

  void start_missing(std::int64_t count, problem_list& problems) {
    const auto identity = context_.identity.empty() || count == 0
                              ? std::map<std::string, std::string>{}
                              : read_identity(context_.identity);
    const auto records = folder_.records();
    std::vector<beginning> starting;
    const auto end_what_is_over = [&starting] {
      std::erase_if(starting, std::mem_fn(&beginning::is_over));
    };
    for (std::int64_t node = 0; node < count; ++node) {
      if (records.contains(node)) continue;  // it runs, or could not be cleaned up
      const auto has_room = [&] {
        end_what_is_over();
        return starting.size() < max_connections;
      };
      if (!wait_until(has_room, start_limit)) starting.clear();
      try {
        starting.push_back(start(node, identity));
      } catch (const std::runtime_error& e) {
        problems.add(folder_.node_name(node) + ": " + e.what());
      }
    }
    (void)wait_until(
        [&] {
          end_what_is_over();
          return starting.empty();
        },
        start_limit);
    for (const beginning& late : starting)
      problems.add(late.record.host + ": a node has not begun within " +
                   std::to_string(start_limit.count()) + " s; " + late.log.string() +
                   " may say why");
  }

  // Ends a node and removes its folder on the host. Returns the problem; empty: none.
  std::string stop_one(std::int64_t node, const ssh_record& record) const {
    // A client that has ended before the node ran has left nothing on the host, which may be one
    // that cannot be reached.
    if (!is_running(record.client) && fs::exists(folder_.log(node)) &&
        !begun(node, record).has_begun())
      return "";
    try {
      const auto limit = context_.grace + start_limit;
      run_program(ssh_command(record.host), print_stop_script(record.folder, context_.grace),
                  limit);
    } catch (const std::runtime_error& e) {
      stop_processes({record.client}, context_.grace);
      return e.what();
    }
    // The client ends when the script on the host does.
    (void)wait_until([&] { return !is_running(record.client); }, connect_limit);
    stop_processes({record.client}, connect_limit);
    return "";
  }

  void stop(const std::vector<std::int64_t>& nodes, problem_list& problems) {
    const auto records = folder_.records();
    for (std::size_t first = 0; first < nodes.size(); first += max_connections) {
      const std::size_t last = std::min(nodes.size(), first + max_connections);
      std::vector<std::future<std::string>> stopping;
      for (std::size_t i = first; i < last; ++i)
        stopping.push_back(
            std::async(std::launch::async,
                       [this, node = nodes[i], record = parse_ssh_record(records.at(nodes[i]))] {
                         return stop_one(node, record);
                       }));
      for (std::size_t i = first; i < last; ++i) {
        const std::string problem = stopping[i - first].get();
        if (problem.empty()) {
          folder_.remove_record(nodes[i]);
        } else {
          problems.add(folder_.node_name(nodes[i]) + " could not be stopped: " + problem);
        }
      }
    }
  }

  node_pool pool_;
  launch_context context_;
  pool_folder folder_;
};

}  // namespace

std::unique_ptr<launcher> make_ssh_launcher(const node_pool& pool, const launch_context& context) {
  return std::make_unique<ssh_launcher>(pool, context);
}

}  // namespace hone
