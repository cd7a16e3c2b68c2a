#pragma once

#include <map>
#include <string>

#include "policy/endpoint/endpoint_options.hpp"

namespace hone {

// Reads the keys of all endpoints from the environment and checks the options. Returns the keys by
// the endpoints' names. Throws policy_error that names the endpoint and the setting: for a variable
// that is not set, for a key that would travel to another machine in plain HTTP, and for an URL or
// an invalid `extra`.
std::map<std::string, std::string> read_endpoint_keys(
    const std::map<std::string, endpoint_options>& endpoints);

// Asks an endpoint for a completion of a few tokens, up to three times within a minute if another
// try may help. Returns how long the answer takes, in words, or that the server asks for a pause.
// Throws policy_error with the reason if there is no completion.
std::string check_endpoint(const std::string& name, endpoint_options options,
                           const std::string& key);

}  // namespace hone
