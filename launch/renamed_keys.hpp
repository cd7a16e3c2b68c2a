#pragma once

#include <toml++/toml.h>

#include <string>

namespace hone {

// Keys and sections of configurations keep their old names for one release.

// Gives the keys of a configuration their new names, and says so on standard error. Throws
// format_error if a key is there under both names. `file`: for messages.
void rename_keys(toml::table& configuration, const std::string& file);

// Returns "section.key=value" with the new name of the key, and says so on standard error if it has
// changed.
std::string with_new_key(const std::string& override_text);

}  // namespace hone
