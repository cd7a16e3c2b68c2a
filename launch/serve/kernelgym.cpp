#include "launch/serve/kernelgym.hpp"

#include "launch/serve/answers.hpp"
#include "messages/measurements.hpp"
#include "messages/names.hpp"

namespace hone {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double us_per_ms = 1000;

std::string string_of(const json& body, const char* key, const std::string& otherwise) {
  const auto found = body.find(key);
  if (found == body.end() || found->is_null()) return otherwise;
  if (!found->is_string())
    throw bad_request(400, "bad_request", "'" + std::string(key) + "' is not a string");
  return found->get<std::string>();
}

std::string required(const json& body, const char* key) {
  const std::string text = string_of(body, key, "");
  if (text.empty()) throw bad_request(400, "bad_request", "'" + std::string(key) + "' is missing");
  return text;
}

// Lets a class also be found by the name that Hone expects.
std::string with_alias(const std::string& code, const std::string& name, const std::string& of) {
  return name == of ? code : code + "\n\n" + name + " = " + of + "\n";
}

std::string status_of(const judgement_record& known) {
  using State = schema::Judgement::State;
  if (known->getState() == State::WAITING) return "processing";
  if (known->getState() == State::WITHDRAWN) return "cancelled";
  const auto result = known->getResults()[0];
  if (result.getOutcome() == Outcome::TIMEOUT) return "timeout";
  return is_conclusive(result) ? "completed" : "failed";
}

// Returns KernelGYM's code for what went wrong; null if nothing did.
ordered_json error_code_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::OK:
      return nullptr;
    case Outcome::UNPARSABLE:
    case Outcome::REJECTED:
    case Outcome::COMPILE_ERROR:
      return "COMPILATION_ERROR";
    case Outcome::WRONG_RESULT:
    case Outcome::CHEATING:
      return "CORRECTNESS_ERROR";
    case Outcome::LAUNCH_ERROR:
    case Outcome::CRASH:
      return "RUNTIME_ERROR";
    case Outcome::TIMEOUT:
      return "TIMEOUT_ERROR";
    case Outcome::UNSTABLE:
    case Outcome::INFRASTRUCTURE:
      break;
  }
  return "SYSTEM_ERROR";
}

}  // namespace

judge_request parse_evaluation(const json& body) {
  if (!body.is_object()) throw bad_request(400, "bad_request", "the request is not an object");
  const std::string entry = string_of(body, "entry_point", "Model");
  judge_request request;
  request.id = required(body, "task_id");
  request.task.fixes_sizes = true;  // KernelGYM's programs may be right for the file's sizes alone
  request.task.module = with_alias(required(body, "reference_code"), "Model", entry);
  const std::string kernel = required(body, "kernel_code");
  const bool is_document = kernel.find("## Code Implementation") != std::string::npos;
  request.programs = {
      {is_document ? kernel : with_alias(kernel, "ModelNew", entry + "New"), !is_document}};
  const std::string priority = string_of(body, "priority", "normal");
  request.priority = priority == "high" ? 2 : priority == "low" ? 0 : 1;
  const auto measures = body.find("measure_performance");
  request.wants_score = measures == body.end() || measures->is_null() || *measures != false;
  return request;
}

http_response evaluation_status(const judgement_record& known, const std::string& id) {
  ordered_json body = {{"task_id", id}, {"status", status_of(known)}};
  if (known->getResults().size() > 0 && known->getResults()[0].getMessage().size() > 0)
    body["error_message"] = view(known->getResults()[0].getMessage());
  return response(200, body);
}

http_response evaluation_result(const judgement_record& known, const std::string& id) {
  if (known->getResults().size() == 0) return evaluation_status(known, id);
  const auto e = known->getResults()[0];
  const ordered_json code = error_code_of(e.getOutcome());
  const auto measured = measurement_of_score(e);
  const bool is_timed = has_score(e);
  const auto time = [&](double us) {
    return is_timed ? ordered_json(us / us_per_ms) : ordered_json(nullptr);
  };
  ordered_json metadata = {{"outcome", name_of(e.getOutcome())},
                           {"kind", view(e.getKind())},
                           {"device_type", view(e.getDeviceType())},
                           {"judge_version", e.getJudgeVersion()}};
  if (is_timed) metadata["interval"] = {measured.getIntervalLow(), measured.getIntervalHigh()};
  return response(200,
                  {{"task_id", id},
                   {"status", status_of(known)},
                   {"compiled", code != "COMPILATION_ERROR"},
                   {"correctness", e.getOutcome() == Outcome::OK},
                   {"decoy_kernel", e.getOutcome() == Outcome::CHEATING},
                   {"reference_runtime", time(reference_us(measured))},
                   {"kernel_runtime", time(candidate_us(measured))},
                   {"speedup", is_timed ? ordered_json(e.getScore()) : ordered_json(nullptr)},
                   {"metadata", metadata},
                   {"error_message", e.getMessage().size() > 0 ? ordered_json(view(e.getMessage()))
                                                               : ordered_json(nullptr)},
                   {"error_code", code}});
}

}  // namespace hone
