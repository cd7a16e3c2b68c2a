#pragma once

#include <cstdint>
#include <string>

#include "messages/caf_records.hpp"
#include "messages/ids.hpp"

namespace hone {

// Return the job with its attempt count incremented.
compile_job next_attempt(const compile_job& job);
verify_job next_attempt(const verify_job& job);
benchmark_job next_attempt(const benchmark_job& job);

// Returns the evaluation of a job that ended with a failure before or without its last stage.
evaluation_record close_job(const schema::JobHeader::Reader& header, schema::Outcome outcome,
                            const std::string& kind, const std::string& message);

// Return the evaluation of a job that ended at its verdict, or at its measurement.
evaluation_record close_job(const schema::JobHeader::Reader& header,
                            const schema::Artifact::Reader& artifact,
                            const schema::Verdict::Reader& verdict);
evaluation_record close_job(const schema::BenchmarkJob::Reader& job,
                            const schema::Measurement::Reader& measurement);

}  // namespace hone
