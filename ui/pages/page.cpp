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

std::size_t page_request::first_row(std::size_t count, std::size_t per_page) const {
  const std::size_t last = count == 0 ? 0 : (count - 1) / per_page * per_page;
  return number("from", 0, last);
}

std::string page_request::outcome() const {
  std::string wanted = value("outcome");
  if (!wanted.empty() && !outcome_named(wanted))
    throw not_found("there is no outcome '" + wanted + "'");
  return wanted;
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

html::element page_links(const page_request& request, html::url_prefix path, const shown_rows& rows,
                         std::string_view what) {
  const auto link = [&](std::size_t from, const std::string& shown) {
    return html::element(
        "a", {html::href(request.with(path, "from", from > 0 ? std::to_string(from) : ""))},
        {html::text(shown)});
  };
  const std::string all = " of " + count_text(rows.count) + " " + std::string(what);
  html::element made("p", {}, {});
  if (rows.from > 0)
    made.add(link(rows.from - std::min(rows.from, rows.per_page), "The previous" + all));
  if (rows.from > 0 && rows.from + rows.per_page < rows.count) made.add(html::text(" · "));
  if (rows.from + rows.per_page < rows.count)
    made.add(link(rows.from + rows.per_page, "The next" + all));
  return made;
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

record<schema::RolloutGroup> group_named(const pool_inspector& pool, const std::string& prefix) {
  try {
    const auto found = pool.group(pool.find_group(prefix));
    if (found) return *found;
  } catch (const pool_error& e) {
    throw not_found(e.what());
  }
  throw not_found("the group '" + prefix + "' is gone");
}

}  // namespace hone
