#include "launch/serve/answers.hpp"

#include "messages/ids.hpp"
#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

// Further measurements may have been made since.
bool was_known_before(const schema::Evaluation::Reader& e, std::uint64_t ms) {
  const auto measurements = e.getMeasurements();
  const bool is_timed = measurements.size() > 0 && measurements[0].getStartedMs() > 0;
  return (is_timed ? measurements[0].getStartedMs() : e.getClosedMs()) < ms;
}

ordered_json to_json(const schema::Evaluation::Reader& e, const std::string& task,
                     std::uint64_t submitted_ms, bool has_details) {
  ordered_json result = hone::to_json(e, task);
  result["judge_version"] = e.getJudgeVersion();
  result["measured"] = e.getMeasurements().size();
  result["cached"] = was_known_before(e, submitted_ms);
  result["conclusive"] = is_conclusive(e);
  result["speedup_over"] = speedups_over_baselines(e);
  if (!has_details) result.erase("measurements");
  return result;
}

}  // namespace

bool is_conclusive(const schema::Evaluation::Reader& e) {
  return !is_inconclusive(e.getOutcome()) && view(e.getKind()) != unsupported_kind;
}

http_response response(unsigned status, const ordered_json& body) {
  return {status, one_line(body) + "\n"};
}

http_response refusal(const bad_request& why) {
  http_response answer = response(
      why.status(), {{"error", {{"code", why.code()}, {"message", std::string(why.what())}}}});
  if (why.status() == 429 || why.status() == 503) answer.headers.emplace_back("Retry-After", "5");
  if (why.status() == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

http_response judgement_response(const judgement_record& known, const std::string& task,
                                 bool has_details) {
  using State = schema::Judgement::State;
  const State state = known->getState();
  ordered_json body = {{"id", to_string(group_id(known->getGroupId()))},
                       {"state", state == State::DONE      ? "done"
                                 : state == State::WAITING ? "waiting"
                                                           : "withdrawn"},
                       {"task", task},
                       {"submitted_ms", known->getSubmittedMs()}};
  if (state == State::DONE) {
    ordered_json results = ordered_json::array();
    for (const auto one : known->getResults())
      results.push_back(to_json(one, task, known->getSubmittedMs(), has_details));
    body["results"] = results;
  }
  return response(state == State::WAITING ? 202 : 200, body);
}

ordered_json describe_task(const task& t) {
  ordered_json cases = ordered_json::array();
  for (const task_case& one : t.cases)
    cases.push_back({{"sizes", one.sizes}, {"timed", one.timed}});
  return {{"name", t.name}, {"id", to_string(t.id)}, {"summary", t.summary}, {"cases", cases}};
}

}  // namespace hone
