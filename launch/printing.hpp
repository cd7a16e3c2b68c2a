#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"

namespace hone {

// Records as people and programs read them. JSON objects keep the order in which fields are named
// here.
nlohmann::ordered_json to_json(const schema::Measurement::Reader& m);
nlohmann::ordered_json to_json(const schema::Evaluation::Reader& e, const std::string& task_name);

// A JSON value without line breaks. What a policy has written need not be UTF-8: such bytes become
// U+FFFD.
std::string one_line(const nlohmann::ordered_json& value);

// The measurement whose interval and times stand beside an evaluation's score, which is the median
// of several: of the ok ones the nearest to it; the last where the evaluation is not ok. Without
// cases where nothing was timed.
schema::Measurement::Reader measurement_of_score(const schema::Evaluation::Reader& e);

// One line: outcome, speed-up with its interval, times; the message on a second where there is one.
std::string describe(const schema::Evaluation::Reader& e);

// Geometric mean over timed cases, microseconds; 0 where nothing was timed.
double reference_us(const schema::Measurement::Reader& m);
double candidate_us(const schema::Measurement::Reader& m);

std::string fixed(double value, int digits);
std::string percent(double share);  // "12.3 %"
std::string pad(std::string text, std::size_t width,
                bool right = false);  // with blanks behind, or before for `right`

}  // namespace hone
