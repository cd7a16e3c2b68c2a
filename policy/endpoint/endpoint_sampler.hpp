#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "policy/endpoint/endpoint_options.hpp"
#include "policy/sampling/completion_sampler.hpp"

namespace hone {

// Makes a sampler whose completions are written by servers, one request each. They have texts and
// no tokens, so that nothing trains on them. Every endpoint takes the next sample that waits as
// soon as it has a free connection and its limit of requests allows it.
//
// A request that fails (no connection, a time-out, a status that may pass, an answer that is no
// completion) goes back to the samples that wait, and the endpoint pauses: for as long as the
// server asks, up to an hour, or from `first_pause_s` on, twice as long after each further failure.
// Requests that were under way at a failure cost no further pause when they fail as well.
// A sample that a server does not take, or that has failed ten times while the server was there,
// becomes an empty answer. An endpoint is given up when it has failed or refused samples more than
// `retries` times in a row (one that asks for pauses is kept for half an hour), takes no request at
// all, or has spent its budget; answers under way still count then. `log` receives all of this,
// from any thread. step() throws policy_error when every endpoint is given up and samples wait. No
// message contains a key.
//
// Of `generation`, temperature, top_p and max_new_tokens are read. step() waits for up to a tenth
// of a second for answers.
std::unique_ptr<completion_sampler> make_endpoint_sampler(
    const std::map<std::string, endpoint_options>& endpoints, const generation_options& generation,
    std::function<void(const std::string&)> log);

}  // namespace hone
