#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hone {

// Returns the reason why a shared object must not be loaded into a sandbox, or nullopt. The reason
// is a predicate whose subject is the block, such as "needs another library". Loading a shared
// object that passes runs none of its code: it has no constructors, no IFUNC and no needed
// libraries, and its undefined symbols are from a short list of functions on numbers and memory.
// The bytes are not trusted: nothing outside them is read. Safe on any thread.
std::optional<std::string> find_loading_problem(std::string_view shared_object);

}  // namespace hone
