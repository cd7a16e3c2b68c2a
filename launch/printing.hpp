#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"

namespace hone {

// Return a record as a JSON object for programs. The keys have a fixed order.
nlohmann::ordered_json to_json(const schema::Measurement::Reader& m);
nlohmann::ordered_json to_json(const schema::Evaluation::Reader& e, const std::string& task_name);

// Returns a JSON value as text without line breaks. Bytes that are not UTF-8, which a policy may
// write, become U+FFFD.
std::string one_line(const nlohmann::ordered_json& value);

// Returns the measurement whose interval and times are shown beside an evaluation's score, which
// may be the median of several measurements: the ok measurement whose score is nearest to it, and
// the last of several that are equally near. If the evaluation is not ok, returns its last
// measurement. If nothing was timed, the measurement has no cases.
schema::Measurement::Reader measurement_of_score(const schema::Evaluation::Reader& e);

// Returns the text of an evaluation for people: a line with the outcome, the speed-up with its
// interval, and the times, followed by lines with the message, the baselines and the kernels, if
// there are any.
std::string describe(const schema::Evaluation::Reader& e);

// Return the geometric mean over the timed cases in microseconds per call; 0 if nothing was timed.
double reference_us(const schema::Measurement::Reader& m);
double candidate_us(const schema::Measurement::Reader& m);
// Returns the same of each baseline that was timed in every case, by name.
std::map<std::string, double> baselines_us(const schema::Measurement::Reader& m);

// Returns the value with `digits` digits after the decimal point.
std::string fixed(double value, int digits);
// Returns a count with its noun: "1 task", "3 tasks".
std::string counted(std::size_t count, const std::string& noun);
// Returns a share as "12.3 %".
std::string percent(double share);
// Returns what share of their sum the counts are, as "ok 12.3 %  unparsable 87.7 %".
std::string shares_text(const std::map<std::string, double>& counts);
// Returns the text filled up to `width` with blanks behind it, or before it if `right` is true.
std::string pad(std::string text, std::size_t width, bool right = false);

}  // namespace hone
