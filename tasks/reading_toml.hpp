#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/format_error.hpp"
#include "tasks/similar_names.hpp"

namespace hone {

// Typed, strict access to one TOML table. Every getter throws format_error, with the file, the line
// and the key, if a value has the wrong type; finish() refuses keys that no getter has asked for.
// The table must outlive the view. Include this header in sources only, because it includes the
// TOML library.
class toml_view {
 public:
  // `prefix` precedes the table's own keys in messages: "" or "section.".
  toml_view(const toml::table& table, std::string file, std::string prefix = "")
      : table_(&table), file_(std::move(file)), prefix_(std::move(prefix)) {}

  bool has(std::string_view key) const { return table_->contains(key); }

  // The find functions return an empty value if the key is absent.
  std::optional<std::string> find_string(std::string_view key);
  std::optional<std::int64_t> find_integer(std::string_view key);
  std::optional<double> find_number(std::string_view key);  // accepts integers as well
  std::optional<bool> find_bool(std::string_view key);
  std::optional<std::vector<std::string>> find_strings(std::string_view key);
  std::optional<toml_view> find_table(std::string_view key);
  // Returns the tables of an array of tables; empty if the key is absent.
  std::vector<toml_view> tables(std::string_view key);
  // Returns a node of any type, or nullptr if the key is absent.
  const toml::node* find(std::string_view key);

  // These getters throw format_error if the key is absent.
  const toml::node& need(std::string_view key);
  std::string string(std::string_view key);
  double number(std::string_view key);

  // Throws format_error for the keys that no getter has asked for.
  void finish() const;

  // Throw format_error for a value that is wrong, with the line of the key or of the node `at`.
  [[noreturn]] void refuse(std::string_view key, const std::string& problem) const;
  [[noreturn]] void refuse(const toml::node& at, std::string_view key,
                           const std::string& problem) const;
  // Returns the line of a key, or the line of the table if the key is absent.
  std::size_t line_of(std::string_view key) const;
  const toml::table& table() const { return *table_; }
  const std::string& file() const { return file_; }

 private:
  const toml::node* take(std::string_view key);
  template <class T>
  std::optional<T> find_value(std::string_view key, const char* expected);

  const toml::table* table_;
  std::string file_;
  std::string prefix_;
  choice_set asked_;
};

// Parses TOML. Throws format_error, with the file and the line, for a syntax error.
toml::table parse_toml(std::string_view text, const std::string& file);

// Returns the type of a node for use in messages: "a string", "an integer", ...
std::string describe(const toml::node& node);

}  // namespace hone
