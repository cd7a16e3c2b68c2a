#include "tasks/reading_toml.hpp"

namespace hone {

std::string describe(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

toml::table parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& e) {
    throw format_error(file, e.source().begin.line, "",
                       "not valid TOML: " + std::string(e.description()));
  }
}

const toml::node* toml_view::take(std::string_view key) {
  asked_.emplace(key);
  return table_->get(key);
}

const toml::node* toml_view::find(std::string_view key) { return take(key); }

const toml::node& toml_view::need(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) {
    choice_set others;  // perhaps misspelt
    for (const auto& [name, value] : *table_) {
      if (!asked_.contains(std::string_view(name.str()))) others.emplace(name.str());
    }
    const std::string similar = find_similar(std::string(key), others);
    throw format_error(
        file_, table_->source().begin.line, prefix_ + std::string(key),
        "is missing" + (similar.empty() ? "" : "; did you mean it by " + similar + "?"));
  }
  return *node;
}

template <class T>
std::optional<T> toml_view::find_value(std::string_view key, const char* expected) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  const bool is_right = [&] {
    if constexpr (std::is_same_v<T, double>) return node->is_number();
    return node->is<T>();
  }();
  if (!is_right) refuse(key, "is " + describe(*node) + ", expected " + expected);
  return node->value<T>();
}

std::optional<std::string> toml_view::find_string(std::string_view key) {
  return find_value<std::string>(key, "a string");
}
std::optional<std::int64_t> toml_view::find_integer(std::string_view key) {
  return find_value<std::int64_t>(key, "an integer");
}
std::optional<double> toml_view::find_number(std::string_view key) {
  return find_value<double>(key, "a number");
}
std::optional<bool> toml_view::find_bool(std::string_view key) {
  return find_value<bool>(key, "true or false");
}

std::optional<std::vector<std::string>> toml_view::find_strings(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  const toml::array* array = node->as_array();
  if (array == nullptr) {
    const auto text = node->value_exact<std::string>();
    refuse(key, "is " + describe(*node) + ", expected an array of strings" +
                    (text ? ", as in [\"" + *text + "\"]" : ""));
  }
  std::vector<std::string> values;
  for (const toml::node& element : *array) {
    if (!element.is_string())
      refuse(element, key, "holds " + describe(element) + ", expected strings only");
    values.push_back(element.as_string()->get());
  }
  return values;
}

std::optional<toml_view> toml_view::find_table(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) return std::nullopt;
  const toml::table* inner = node->as_table();
  if (inner == nullptr) refuse(key, "is " + describe(*node) + ", expected a table");
  return toml_view(*inner, file_, prefix_ + std::string(key) + ".");
}

std::vector<toml_view> toml_view::tables(std::string_view key) {
  const toml::node* node = take(key);
  if (node == nullptr) return {};
  const toml::array* array = node->as_array();
  if (array == nullptr)
    refuse(key, "is " + describe(*node) + ", expected [[" + std::string(key) + "]] tables");
  std::vector<toml_view> views;
  for (const toml::node& element : *array) {
    const toml::table* inner = element.as_table();
    if (inner == nullptr)
      refuse(element, key,
             "holds " + describe(element) + ", expected [[" + std::string(key) + "]] tables");
    views.emplace_back(*inner, file_,
                       prefix_ + std::string(key) + "[" + std::to_string(views.size()) + "].");
  }
  return views;
}

std::string toml_view::string(std::string_view key) {
  need(key);
  return *find_string(key);
}

double toml_view::number(std::string_view key) {
  need(key);
  return *find_number(key);
}

void toml_view::finish() const {
  format_problems problems;
  for (const auto& [key, node] : *table_) {
    if (asked_.contains(std::string_view(key.str()))) continue;
    problems.add({file_, key.source().begin.line, prefix_ + std::string(key.str()),
                  "unknown key" + describe_choices(std::string(key.str()), asked_)});
  }
  problems.throw_if_any();
}

void toml_view::refuse(std::string_view key, const std::string& problem) const {
  throw format_error(file_, line_of(key), prefix_ + std::string(key), problem);
}

void toml_view::refuse(const toml::node& at, std::string_view key,
                       const std::string& problem) const {
  throw format_error(file_, at.source().begin.line, prefix_ + std::string(key), problem);
}

std::size_t toml_view::line_of(std::string_view key) const {
  const toml::node* node = table_->get(key);
  return node != nullptr ? node->source().begin.line : table_->source().begin.line;
}

}  // namespace hone
