#include "launch/joining.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <vector>

#include "actors/error_text.hpp"
#include "launch/task_copies.hpp"
#include "messages/versions.hpp"
#include "network/connecting.hpp"

namespace hone {
namespace {

constexpr auto answer_limit = std::chrono::seconds(10);

// Asks for what the node's generators need. Throws as join_run() does.
void ask_for_generators(caf::actor_system& system, const join_options& o, joined_run& joined) {
  caf::error problem;
  caf::scoped_actor self(system);
  self->request(joined.wiring.uplink, answer_limit, generate_atom_v, std::uint64_t{o.generators})
      .receive(
          [&](const learner_actor& learner, const generator_setup_record& setup) {
            joined.learner = learner;
            joined.setup = setup;
          },
          [&](const caf::error& e) { problem = e; });
  if (problem == caf::sec::runtime_error)
    throw refused_by_head(o.head.address + ": " + text_of(system, problem));
  if (problem) throw connection_failed(o.head.address + ": " + text_of(system, problem));
}

join_record request_of(const join_options& o) {
  record_builder<schema::JoinRequest> request;
  request->setSchemaVersion(schema_version);
  request->setJudgeVersion(judge_version);
  request->setNode(o.name);
  request->setHasRealDevices(o.devices.has_real);
  request->setHasSimulatedDevices(o.devices.has_simulated);
  request->setTimesBaselines(o.times_baselines);
  return request.finish();
}

}  // namespace

joined_run join_run(caf::actor_system& system, const join_options& o, std::chrono::seconds wait,
                    const task_table* earlier,
                    const std::function<std::filesystem::path()>& cache) {
  joined_run joined;
  joined.wiring.uplink = connect(system, o.head, join_purpose, o.name, wait);
  std::vector<task_record> known;
  std::string problem;
  bool is_refused = false;
  caf::scoped_actor self(system);
  self->request(joined.wiring.uplink, answer_limit, join_atom_v, request_of(o))
      .receive(
          [&](const compile_queue_actor& compiles, const verify_queue_actor& verifies,
              const benchmark_queue_actor& benchmarks, const pool_actor& pool,
              const std::vector<task_record>& tasks, const std::string& configuration) {
            joined.wiring.compiles = compiles;
            joined.wiring.verifies = verifies;
            joined.wiring.benchmarks = benchmarks;
            joined.wiring.pool = pool;
            known = tasks;
            joined.configuration = configuration;
          },
          [&](const caf::error& e) {
            is_refused = e == caf::sec::runtime_error;  // of node_state::answer()
            problem = text_of(system, e);
          });
  if (is_refused) throw refused_by_head(o.head.address + ": the run refused the node: " + problem);
  if (!problem.empty()) throw connection_failed(o.head.address + ": " + problem);
  joined.tasks = copy_tasks(
      known, earlier, [&] { return connect_for_files(o.head, o.name); }, cache);
  if (o.generators > 0) ask_for_generators(system, o, joined);
  return joined;
}

}  // namespace hone
