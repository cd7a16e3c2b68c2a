#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "messages/measurements.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"

namespace hone {

// Return a record as a JSON object for programs (doc/api.md). The keys have a fixed order. Seeds
// are strings, because programs that read JSON numbers as doubles round them.
nlohmann::ordered_json to_json(const schema::Measurement::Reader& m);
nlohmann::ordered_json to_json(const schema::Evaluation::Reader& e, const std::string& task_name);

std::string text(capnp::Text::Reader t);

// Returns a JSON value as text without line breaks. Bytes that are not UTF-8, which a policy may
// write, become U+FFFD.
std::string one_line(const nlohmann::ordered_json& value);

// Returns "run", "comparison", "screening" or "screened_comparison".
std::string scope_text(std::uint32_t scope);

// Returns the speed-up of an ok evaluation with its uncertainty: "2.53x  [2.41, 2.73]", the 95 %
// interval, if it was measured once; otherwise "2.53x  median of 3 measurements (2.41x to 2.73x)".
std::string headline_text(const schema::Evaluation::Reader& e);

// Returns the number of a variant's measurements with their range, for tables: "once" or
// "3: 2.41 to 2.73".
std::string range_text(const headline& score);

// Returns the text of an evaluation for people: a line with the outcome, the speed-up with its
// interval, and the times, followed by lines with the message, the baselines and the kernels, if
// there are any.
std::string describe(const schema::Evaluation::Reader& e);

// Returns the value with `digits` digits after the decimal point.
std::string fixed(double value, int digits);
// Returns a count with its noun: "1 task", "3 tasks".
std::string counted(std::size_t count, const std::string& noun);
// Returns lines that say the same of one task each: the first few, and how many tasks there are
// besides. A run may have thousands of tasks.
std::vector<std::string> shortened(std::vector<std::string> lines);
// Returns a share as "12.3 %".
std::string percent(double share);
// Returns what share of their sum the counts are, as "ok 12.3 %  unparsable 87.7 %".
std::string shares_text(const std::map<std::string, double>& counts);
// Returns the text filled up to `width` with blanks behind it, or before it if `right` is true.
std::string pad(std::string text, std::size_t width, bool right = false);

}  // namespace hone
