#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

// Requests to a server since the start of the process, and the tokens that it charged.
struct endpoint_usage {
  double requests = 0;
  double failures = 0;
  double prompt_tokens = 0;
  double answer_tokens = 0;
  double answer_s = 0;  // from requests to their answers, summed over those that did not fail
  double cost = 0;      // in the currency of the endpoint's prices; 0 without them
};

// Returns the numbers by the names of the members, in their order.
std::vector<std::pair<std::string, double>> numbers_of(const endpoint_usage& usage);

// Returns the numbers of an endpoint under the names by which actors report them.
std::map<std::string, double> named_numbers(const std::string& endpoint,
                                            const endpoint_usage& usage);

// Adds a number that named_numbers() has named to the known usage by endpoint. Returns false for
// any other number.
bool add_number(std::map<std::string, endpoint_usage>& known, std::string_view name, double value);

// Returns "28 requests (1 failed), 1.2 s an answer, 12345 tokens read, 6789 written, cost 0.04".
std::string describe(const endpoint_usage& usage);

}  // namespace hone
