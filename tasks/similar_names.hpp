#pragma once

#include <functional>
#include <set>
#include <string>

namespace hone {

using choice_set = std::set<std::string, std::less<>>;

// Returns the name that takes the fewest insertions and deletions of characters to become `wrong`,
// or an empty string if none is near.
std::string find_similar(const std::string& wrong, const choice_set& names);

// Returns the end of a message about a name that is not one of `names`: " (did you mean max_lag?),
// expected one of: a, b, c". Of many names, only the first are listed and the others are counted.
std::string describe_choices(const std::string& wrong, const choice_set& names);

}  // namespace hone
