#include <algorithm>
#include <set>

#include "results/printing.hpp"
#include "ui/pages/page.hpp"
#include "ui/parts/run_parts.hpp"

namespace hone {
namespace {

using html::element;

constexpr std::size_t max_listed = 50;
constexpr std::size_t min_id_digits = 8;  // of an id, if names contain them as well

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// Returns the address of the variant or the group whose id begins so, or an empty text.
std::string address_of_id(const snapshot& of, const std::string& prefix) {
  try {
    return parts::variant_link(of.pool.find_variant(prefix)).str();
  } catch (const pool_error&) {
  }
  try {
    return html::url("/group").segment(to_string(of.pool.find_group(prefix))).str();
  } catch (const pool_error&) {
    return "";
  }
}

}  // namespace

page find_page(const snapshot& of, const std::string& given, std::string& target) {
  const std::string text = trimmed(given);
  if (text.empty())
    throw not_found(
        "nothing was asked for: give a part of a task's name, or the first digits of "
        "the id of a variant or a group");
  std::set<std::string> names;
  for (const auto& place : of.rows.places) {
    if (place.name == text) names = {text};
    if (place.name == text) break;
    if (place.name.find(text) != std::string::npos) names.insert(place.name);
  }
  if (names.size() == 1) target = html::url("/task").segment(*names.begin()).str();
  // The first digits of an id may be a part of a name.
  if (target.empty() && (names.empty() || text.size() >= min_id_digits))
    target = address_of_id(of, text);
  if (!target.empty()) return {};
  if (names.empty())
    throw not_found("no task's name contains '" + text.substr(0, 100) +
                    "', and no variant's or group's id alone begins with it");
  element list("ul", {}, {});
  std::size_t listed = 0;
  for (const std::string& name : names) {
    if (listed++ == max_listed) break;
    list.add({"li",
              {},
              {element("a", {html::href(html::url("/task").segment(name))}, {html::text(name)})}});
  }
  element body;
  body.add(parts::paragraph(counted(names.size(), "task") + " with '" + text + "' in the name:"));
  body.add(std::move(list));
  return {"Found", std::move(body)};
}

}  // namespace hone
