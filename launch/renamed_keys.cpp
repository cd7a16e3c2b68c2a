#include "launch/renamed_keys.hpp"

#include <array>
#include <iostream>
#include <string_view>
#include <utility>

#include "tasks/format_error.hpp"

namespace hone {
namespace {

using old_and_new = std::pair<std::string_view, std::string_view>;
// Old names, to be removed with version 0.3.
constexpr std::array<old_and_new, 4> renamed = {
    {{"optimiser", "optimizer"},
     {"contrastive.most_groups", "contrastive.max_groups"},
     {"pool.acknowledgements", "pool.acknowledgments"},  // codespell:ignore
     {"stream.most_judged", "stream.max_judged"}}};

void announce(const std::string& where, std::string_view before, std::string_view now) {
  std::cerr << "hone: " << where << ": " << before << " is now " << now
            << "; the old name works until version 0.3\n";
}

// Returns the table that holds a key, and the last part of the key's name; null if there is none.
std::pair<toml::table*, std::string_view> holder_of(toml::table& root, std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {&root, key};
  return {root[key.substr(0, dot)].as_table(), key.substr(dot + 1)};
}

}  // namespace

void rename_keys(toml::table& configuration, const std::string& file) {
  for (const auto& [before, now] : renamed) {
    const auto [holder, old_key] = holder_of(configuration, before);
    if (holder == nullptr || !holder->contains(old_key)) continue;
    const std::string_view new_key = holder_of(configuration, now).second;
    const toml::node& value = *holder->get(old_key);
    if (holder->contains(new_key))
      throw format_error(file, value.source().begin.line, std::string(before),
                         "is the old name of " + std::string(now) + ", which is there as well");
    announce(file, before, now);
    value.visit([&, to = holder](const auto& node) { to->insert_or_assign(new_key, node); });
    holder->erase(old_key);
  }
}

std::string with_new_key(const std::string& override_text) {
  for (const auto& [before, now] : renamed) {
    if (!override_text.starts_with(before) || override_text.size() == before.size()) continue;
    const char next = override_text[before.size()];
    if (next != '.' && next != '=') continue;
    announce("--set " + override_text, before, now);
    return std::string(now) + override_text.substr(before.size());
  }
  return override_text;
}

}  // namespace hone
