#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/format_error.hpp"

namespace hone {

// Typed, strict access to one TOML table: every getter names the file, the line and the key when
// the type is wrong, and finish() refuses keys that nobody asked for. Include this header in
// sources only: it brings the TOML library in. The table must outlive the view.
class toml_view {
 public:
  // `prefix` is what precedes the table's own keys in messages: "" or "section.".
  toml_view(const toml::table& table, std::string file, std::string prefix = "")
      : table_(&table), file_(std::move(file)), prefix_(std::move(prefix)) {}

  bool has(std::string_view key) const { return table_->contains(key); }

  std::optional<std::string> find_string(std::string_view key);
  std::optional<std::int64_t> find_integer(std::string_view key);
  std::optional<double> find_number(std::string_view key);  // an integer will do
  std::optional<bool> find_bool(std::string_view key);
  std::optional<std::vector<std::string>> find_strings(std::string_view key);
  std::optional<toml_view> find_table(std::string_view key);
  std::vector<toml_view> tables(
      std::string_view key);                     // an array of tables; empty where there is none
  const toml::node* find(std::string_view key);  // anything

  std::string string(std::string_view key);  // required, as the following
  double number(std::string_view key);

  // Throws for the first key that no getter has asked for.
  void finish() const;

  // For checks of values: a message that points at the key.
  [[noreturn]] void refuse(std::string_view key, const std::string& problem) const;
  [[noreturn]] void refuse(const toml::node& at, std::string_view key,
                           const std::string& problem) const;
  std::size_t line_of(std::string_view key) const;
  const toml::table& table() const { return *table_; }
  const std::string& file() const { return file_; }

 private:
  const toml::node* take(std::string_view key);
  const toml::node& need(std::string_view key);
  template <class T>
  std::optional<T> find_value(std::string_view key, const char* expected);

  const toml::table* table_;
  std::string file_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

// Parses TOML; syntax errors become format_error with the file and line.
toml::table parse_toml(std::string_view text, const std::string& file);

// "a string", "an integer", ...: what a node is, for messages.
std::string describe(const toml::node& node);

}  // namespace hone
