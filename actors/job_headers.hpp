#pragma once

#include <cstdint>
#include <string>

#include "messages/caf_records.hpp"
#include "messages/ids.hpp"

namespace hone {

// A job like this one, given out once more.
compile_job next_attempt(const compile_job& job);
verify_job next_attempt(const verify_job& job);
benchmark_job next_attempt(const benchmark_job& job);

// The result of a job that ended without one: what every stage sends to the pool.
evaluation_record close_job(const schema::JobHeader::Reader& header, schema::Outcome outcome,
                            const std::string& kind, const std::string& message);

// The result of a job's last stages.
evaluation_record close_job(const schema::JobHeader::Reader& header,
                            const schema::Artifact::Reader& artifact,
                            const schema::Verdict::Reader& verdict);
evaluation_record close_job(const schema::BenchmarkJob::Reader& job,
                            const schema::Measurement::Reader& measurement);

}  // namespace hone
