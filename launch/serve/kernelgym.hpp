#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "launch/serve/judge_request.hpp"
#include "network/http/http_server.hpp"

namespace hone {

// The interface of KernelGYM's server (github.com/hkust-nlp/KernelGYM, kernelgym/server/api), for
// its clients: POST /evaluate, then GET /status/ID and /results/ID under the client's own id.

// Returns the request of POST /evaluate: the reference is the module of a task, the kernel a
// program in Python. What says how to measure is ignored. Throws bad_request.
judge_request parse_evaluation(const nlohmann::json& body);

// Return the answers to GET /status/ID and GET /results/ID, and to POST /evaluate once the request
// is accepted. A result that is not conclusive has the status "failed".
http_response evaluation_status(const judgement_record& known, const std::string& id);
http_response evaluation_result(const judgement_record& known, const std::string& id);

}  // namespace hone
