#include "tasks/similar_names.hpp"

#include <cstdlib>
#include <dtl/dtl.hpp>

namespace hone {
namespace {

constexpr std::size_t max_listed = 40;

}  // namespace

std::string find_similar(const std::string& wrong, const choice_set& names) {
  std::string nearest;
  auto least = static_cast<long long>(wrong.size()) / 2 + 1;
  for (const std::string& name : names) {
    const auto longer = static_cast<long long>(name.size()) - static_cast<long long>(wrong.size());
    if (std::abs(longer) >= least) continue;
    dtl::Diff<char, std::string> difference(wrong, name);
    difference.compose();
    if (difference.getEditDistance() >= least) continue;
    least = difference.getEditDistance();
    nearest = name;
  }
  return nearest;
}

std::string describe_choices(const std::string& wrong, const choice_set& names) {
  const std::string nearest = find_similar(wrong, names);
  std::string text = nearest.empty() ? "" : " (did you mean " + nearest + "?)";
  if (names.empty()) return text;
  text += ", expected one of: ";
  std::size_t listed = 0;
  for (const std::string& name : names) {
    if (listed == max_listed) break;
    text += (listed++ == 0 ? "" : ", ") + name;
  }
  if (names.size() > listed) text += " and " + std::to_string(names.size() - listed) + " more";
  return text;
}

}  // namespace hone
