#pragma once

#include <cstdint>

#include "tasks/task_file.hpp"

namespace hone {

class toml_view;

// The largest extent of a tensor's dimension, and the largest number of elements of a tensor.
constexpr std::int64_t max_dimension = std::int64_t{1} << 40U;

// Parse one section of a task file each. They check the section by itself; task_checks.hpp compares
// sections with each other. All throw format_error, with the file, the line and the key.

// Parses an [[input]] table, or a [[parameter]] table if `is_parameter`. Refuses unknown keys.
tensor_spec parse_tensor(toml_view view, bool is_parameter);
// Parses a [[case]] table. Refuses unknown keys.
task_case parse_case(toml_view view);
// Reads the table [tolerance] of the file into `parsed.tolerances`, which stays empty without it.
void parse_tolerances(toml_view& view, task& parsed);
// Reads the list `distributions` of the file into `parsed.distributions`; all without it.
void parse_distributions(toml_view& view, task& parsed);

}  // namespace hone
