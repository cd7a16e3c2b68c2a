// LibTorch looks for its CUDA back end once, when an operator first asks for it. The tests of a GPU
// need it even if tests without one came before, so it is loaded before all tests.

#include <gtest/gtest.h>

#include <stdexcept>

#include "cuda/gpus.hpp"
#include "policy/policy_device.hpp"

namespace hone {
namespace {

class gpu_first : public testing::Environment {
 public:
  void SetUp() override {
    try {
      if (find_gpus().empty()) return;
    } catch (const std::runtime_error&) {  // there is no driver
      return;
    }
    prepare_policy_device("cuda");
  }
};

const testing::Environment* const registered =
    testing::AddGlobalTestEnvironment(new gpu_first);  // GoogleTest owns it

}  // namespace
}  // namespace hone
