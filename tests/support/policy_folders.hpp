#pragma once

#include <filesystem>

namespace hone::testing_support {

// Small models and the outputs that other programs have computed with them.
inline const std::filesystem::path golden =
    std::filesystem::path(HONE_SOURCE_DIR) / "tests/policy/golden";
// The policy of a few thousand weights that comes with Hone.
inline const std::filesystem::path tiny = HONE_SOURCE_DIR "/configs/policies/tiny";

}  // namespace hone::testing_support
