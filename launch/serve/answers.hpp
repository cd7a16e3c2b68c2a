#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "launch/serve/judge_request.hpp"
#include "messages/caf_records.hpp"
#include "network/http/http_server.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// What `hone serve` answers (doc/serving.md).

// False of a result that says nothing of the program, so that nobody should learn from it.
bool is_conclusive(const schema::Evaluation::Reader& e);

http_response response(unsigned status, const nlohmann::ordered_json& body);
http_response refusal(const bad_request& why);
// `task`: the name of the judged task. `has_details`: with all measurements.
http_response judgement_response(const judgement_record& known, const std::string& task,
                                 bool has_details);
nlohmann::ordered_json describe_task(const task& t);

}  // namespace hone
