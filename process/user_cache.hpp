#pragma once

#include <filesystem>

namespace hone {

// Returns the folder in which this user's processes of Hone keep what can be made again:
// $XDG_CACHE_HOME/hone, or else $HOME/.cache/hone. It need not exist. Empty if neither variable is
// set.
std::filesystem::path user_cache();

}  // namespace hone
