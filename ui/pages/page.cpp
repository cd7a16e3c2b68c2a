#include "ui/pages/page.hpp"

#include <algorithm>

#include "messages/names.hpp"
#include "messages/parse_number.hpp"
#include "ui/html/numbers.hpp"

namespace hone {

std::size_t page_request::number(const std::string& key, std::size_t otherwise,
                                 std::size_t most) const {
  const auto parsed = parse_number<std::size_t>(value(key));
  return parsed ? std::min(*parsed, most) : otherwise;
}

html::url page_request::with(html::url_prefix path, const std::string& key,
                             const std::string& value) const {
  html::url made(path);
  for (const std::string& segment : segments) made = made.segment(segment);
  std::map<std::string, std::string> values = query;
  values.erase("from");  // other rows begin with their first one
  values[key] = value;
  for (const auto& [at, content] : values) {
    if (!content.empty()) made = made.query(at, content);
  }
  return made;
}

choice counted_choice(Outcome outcome, std::uint64_t count) {
  const std::string name(name_of(outcome));
  return {name, name + " (" + count_text(count) + ")"};
}

html::element choices(std::string_view title, const page_request& request, html::url_prefix path,
                      const std::string& key, const std::string& chosen,
                      const std::vector<choice>& all) {
  html::element made("p", {{"class", "choices"}}, {html::text(std::string(title) + ": ")});
  for (const auto& [value, shown] : all) {
    if (value == chosen) {
      made.add({"strong", {}, {html::text(shown)}});
    } else {
      made.add({"a", {html::href(request.with(path, key, value))}, {html::text(shown)}});
    }
    made.add(html::text(" "));
  }
  return made;
}

html::element next_page(const page_request& request, html::url_prefix path, std::size_t next,
                        std::size_t count, std::string_view what) {
  if (next >= count) return {};
  return {
      "p",
      {},
      {html::element("a", {html::href(request.with(path, "from", std::to_string(next)))},
                     {html::text("The next of " + count_text(count) + " " + std::string(what))})}};
}

std::uint32_t place_named(const catalogue& rows, const std::string& task, const std::string& on) {
  for (std::uint32_t i = 0; i < rows.places.size(); ++i) {
    const auto& place = rows.places[i];
    if ((place.name == task || to_string(place.task) == task) &&
        (on.empty() || place.device_type == on))
      return i;
  }
  throw not_found("no variant of the task '" + task + "' was judged" +
                  (on.empty() ? "" : " on the device type '" + on + "'"));
}

record<schema::Variant> variant_named(const pool_inspector& pool, const std::string& prefix) {
  try {
    const auto found = pool.variant(pool.find_variant(prefix));
    if (found) return *found;
  } catch (const pool_error& e) {
    throw not_found(e.what());
  }
  throw not_found("the variant '" + prefix + "' is gone");
}

record<schema::RolloutGroup> group_named(const pool_inspector& pool, const std::string& id) {
  const auto halves = parse_hex_id(id);
  if (!halves) throw not_found("'" + id + "' is not the id of a group");
  const auto found = pool.group(group_id{(*halves)[0], (*halves)[1]});
  if (!found) throw not_found("the pool has no group " + id);
  return *found;
}

}  // namespace hone
