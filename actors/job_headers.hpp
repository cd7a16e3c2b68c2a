#pragma once

#include <cstdint>
#include <string>

#include "messages/caf_records.hpp"
#include "messages/ids.hpp"

namespace hone {

// Returns the name that a benchmarker of one device adds to its device type in a pull. It includes
// the node, because names of devices are unique within a node only.
inline std::string single_device(std::string_view node, std::string_view device) {
  return "device " + std::string(node) + " " + std::string(device);
}

// Return the job with its attempt count incremented.
compile_job next_attempt(const compile_job& job);
verify_job next_attempt(const verify_job& job);
benchmark_job next_attempt(const benchmark_job& job);

// Returns the evaluation of a job that failed without a verdict and without a measurement.
evaluation_record close_job(const schema::JobHeader::Reader& header, schema::Outcome outcome,
                            const std::string& kind, const std::string& message);

// Returns the evaluation of a job that ended with this verdict.
evaluation_record close_job(const schema::JobHeader::Reader& header,
                            const schema::Artifact::Reader& artifact,
                            const schema::Verdict::Reader& verdict);
// Returns the evaluation of a job that ended with this measurement.
evaluation_record close_job(const schema::BenchmarkJob::Reader& job,
                            const schema::Measurement::Reader& measurement);

}  // namespace hone
