#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Returns the part of an assembly text that its roots reach, in a form that two texts share if they
// differ only in names, comments, unreachable definitions, or the order of definitions. Definitions
// follow one another in the order in which they are first referred to, and names are numbered in
// that order. Strings that are one of `kernels` are numbered by their place in the list. Accepts
// PTX as NVRTC prints it, and the GNU assembler's language as g++ prints it. Takes time linear in
// the text's length, which is not trusted. Safe on any thread.
std::string normal_form(std::string_view assembly, const std::vector<std::string>& roots,
                        const std::vector<std::string>& kernels);

}  // namespace hone
