#include <optional>
#include <stdexcept>

#include "launch/cluster/detached_process.hpp"
#include "launch/cluster/launchers.hpp"
#include "launch/cluster/pool_folder.hpp"
#include "launch/cluster/programs.hpp"

namespace hone {
namespace {

// A node's record is its process mark.
class local_launcher : public launcher {
 public:
  local_launcher(const node_pool& pool, const launch_context& context)
      : pool_(pool), context_(context), folder_(context.run, pool.name) {}

  void scale(std::int64_t count) override {
    folder_.set_count(count);
    stop_from(count);
    const auto records = folder_.records();
    problem_list problems;
    for (std::int64_t node = 0; node < count; ++node) {
      const auto found = records.find(node);
      if (found != records.end() && is_node_running(found->second)) continue;
      try {
        const process_mark mark = start_detached(command_of(node), folder_.log(node));
        record_start(mark, [&] { folder_.write_record(node, print(mark) + "\n"); });
      } catch (const std::runtime_error& e) {
        problems.add(folder_.node_name(node) + ": " + e.what());
      }
    }
    if (count == 0) folder_.remove();
    problems.throw_if_any();
  }

  std::vector<launched_node> list() override {
    std::vector<launched_node> nodes;
    for (const auto& [node, record] : folder_.records()) {
      const auto mark = parse_process_mark(record);
      launched_node one;
      one.name = folder_.node_name(node);
      one.where = mark ? "process " + std::to_string(mark->pid) : "no process";
      one.phase = is_node_running(record) ? node_phase::running : node_phase::ended;
      if (one.phase == node_phase::ended) one.detail = last_lines(folder_.log(node));
      nodes.push_back(one);
    }
    return nodes;
  }

  std::string plan(std::int64_t count) const override {
    std::string text;
    for (std::int64_t node = 0; node < count; ++node)
      text += shell_line(command_of(node)) + " >>" + shell_quoted(folder_.log(node).string()) +
              " 2>&1 &\n";
    return text;
  }

 private:
  std::vector<std::string> command_of(std::int64_t node) const {
    return node_command(pool_, context_, folder_.node_name(node), context_.identity.string());
  }

  static bool is_node_running(const std::string& record) {
    const auto mark = parse_process_mark(record);
    return mark && is_running(*mark);
  }

  void stop_from(std::int64_t first) {
    std::vector<process_mark> marks;
    std::vector<std::int64_t> nodes;
    for (const auto& [node, record] : folder_.records()) {
      if (node < first) continue;
      if (const auto mark = parse_process_mark(record)) marks.push_back(*mark);
      nodes.push_back(node);
    }
    stop_processes(marks, context_.grace);
    for (const std::int64_t node : nodes) folder_.remove_record(node);
  }

  node_pool pool_;
  launch_context context_;
  pool_folder folder_;
};

}  // namespace

std::unique_ptr<launcher> make_local_launcher(const node_pool& pool,
                                              const launch_context& context) {
  return std::make_unique<local_launcher>(pool, context);
}

}  // namespace hone
