#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hone {

// Why a shared object must not be loaded into a sandbox, or nothing. Loading one that passes runs
// none of its code: no constructors, no IFUNC, no needed libraries, undefined symbols only from a
// short list of functions on numbers and memory. The bytes are not trusted: nothing outside them is
// read.
std::optional<std::string> find_loading_problem(std::string_view shared_object);

}  // namespace hone
