#pragma once

// Serializes records for CAF and names every type of record that is sent in a message. Only
// actors/, launch/ and their tests include this header and interfaces.hpp; all other libraries use
// records without depending on CAF.

#include <caf/error.hpp>
#include <caf/meta/load_callback.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/sec.hpp>
#include <caf/type_id.hpp>

#include <vector>

#include "messages/record.hpp"
#include "messages/schema/node.capnp.h"
#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/task.capnp.h"
#include "messages/schema/training.capnp.h"
#include "messages/schema/variant.capnp.h"

namespace hone {

// Sends a record to another node as its bytes (none for an empty record). The bytes are validated
// on arrival; invalid ones end the load with caf::sec::invalid_argument. A message to an actor of
// the same node shares the record without a copy.
template <class Inspector, class Schema>
typename Inspector::result_type inspect(Inspector& f, record<Schema>& x) {
  std::vector<char> bytes = x ? x.bytes() : std::vector<char>{};
  auto load = caf::meta::load_callback([&]() -> caf::error {
    if (bytes.empty()) return caf::none;
    try {
      x = record<Schema>::from_bytes(std::move(bytes));
      return caf::none;
    } catch (const invalid_record& e) {
      return caf::make_error(caf::sec::invalid_argument, e.what());
    }
  });
  return f(caf::meta::type_name("record"), bytes, load);
}

using task_record = record<schema::Task>;
using draw_record = record<schema::Draw>;
using group_record = record<schema::RolloutGroup>;
using compile_job = record<schema::CompileJob>;
using verify_job = record<schema::VerifyJob>;
using benchmark_job = record<schema::BenchmarkJob>;
using verdict_record = record<schema::Verdict>;
using measurement_record = record<schema::Measurement>;
using evaluation_record = record<schema::Evaluation>;
using batch_record = record<schema::TrainingBatch>;
using step_record = record<schema::TrainingStep>;
using version_record = record<schema::PolicyVersion>;
using comparison_record = record<schema::ComparisonRequest>;
using scored_group_record = record<schema::ScoredGroup>;
using judgement_record = record<schema::Judgement>;
using device_type_record = record<schema::DeviceType>;
using join_record = record<schema::JoinRequest>;
using generator_setup_record = record<schema::GeneratorSetup>;
using actor_status_record = record<schema::ActorStatus>;
using run_status_record = record<schema::RunStatus>;
using node_status_record = record<schema::NodeStatus>;

}  // namespace hone
