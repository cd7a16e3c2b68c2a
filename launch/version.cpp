#include "launch/version.hpp"

#include "evaluation/devices.hpp"
#include "messages/versions.hpp"
#include "policy/policy_device.hpp"
#include "storage/pool.hpp"

namespace hone {

build_versions versions_of_build() { return {HONE_VERSION, HONE_REVISION}; }

std::string describe_version() {
  return "hone " HONE_VERSION " (revision " HONE_REVISION
         ")\n"
         "schema " +
         std::to_string(schema_version) + ", judge " + std::to_string(judge_version) +
         ", pool format " + std::to_string(pool_format) + "\nLibTorch " + torch_version() +
         ", CUDA " + cuda_toolkit_version;
}

}  // namespace hone
