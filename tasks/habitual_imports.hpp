#pragma once

#include <string>

namespace hone {

// Blanks the imports that people write out of habit in front of a host program or a reference,
// because the imported names are defined anyway. Lines keep their numbers.
std::string without_habitual_imports(const std::string& python);

}  // namespace hone
