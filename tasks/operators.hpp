#pragma once

#include <string_view>

namespace hone {

// The allowlist: operators of ATen and of TorchScript that compute, view, allocate and index. Other
// operators may not run in a reference or a host program. `name` is qualified without its
// overload: "aten::add", "prim::If".
bool is_allowed_operator(std::string_view name);

// Operators whose result holds a number read out of a tensor, or whose shape depends on a tensor's
// contents.
bool reads_contents(std::string_view name);

}  // namespace hone
