#include "launch/serve/kernrl.hpp"

#include <algorithm>

#include "launch/serve/answers.hpp"
#include "launch/serve/judge_request.hpp"
#include "messages/ids.hpp"
#include "messages/measurements.hpp"
#include "messages/names.hpp"
#include "results/printing.hpp"

namespace hone {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr double solved_speedup = 1.05;
constexpr double max_episode_s = 3600;

std::string error_message(const std::string& message, const std::string& code) {
  return one_line({{"type", "error"}, {"data", {{"message", message}, {"code", code}}}});
}

bool is_compiled(Outcome outcome) {
  return outcome != Outcome::UNPARSABLE && outcome != Outcome::REJECTED &&
         outcome != Outcome::COMPILE_ERROR;
}

// As kernrl_environment.py computes it.
double reward_of(const schema::Evaluation::Reader& e) {
  if (!is_compiled(e.getOutcome())) return -0.5;
  if (e.getOutcome() != Outcome::OK) return -0.25;
  if (!has_score(e)) return 0;
  return e.getScore() > 1 ? std::min(e.getScore() - 1, 2.0) : (e.getScore() - 1) * 0.5;
}

std::string text_of_task(const task& t) {
  return t.source_text.empty() ? t.reference : t.source_text;
}

}  // namespace

void kernrl_episode::handle(const std::string& message, const http_server::message_reply& reply) {
  try {
    const json body = parse_body(message);
    const std::string type = body.is_object() ? body.value("type", "") : "";
    const json data = body.is_object() ? body.value("data", json::object()) : json();
    if (type == "close") return reply("");
    if (type == "reset") return reset(data, reply);
    if (type == "step") return step(data, reply);
    const std::lock_guard hold(lock_);
    if (type == "state") return reply(state());
    reply(error_message("a message is of type reset, step, state or close", "UNKNOWN_TYPE"));
  } catch (const bad_request& refused) {
    reply(error_message(refused.what(), "VALIDATION_ERROR"));
  } catch (const json::exception&) {
    reply(error_message("a field of the message has another type", "VALIDATION_ERROR"));
  }
}

void kernrl_episode::reset(const json& data, const http_server::message_reply& reply) {
  const std::string wanted = data.contains("problem_id") && data["problem_id"].is_string()
                                 ? data["problem_id"].get<std::string>()
                                 : "";
  const found_task found = of_.find(wanted);
  if (found == nullptr)
    return reply(error_message(no_such_task(wanted).what(), "VALIDATION_ERROR"));
  const std::lock_guard hold(lock_);
  task_ = found;
  id_ = to_string(random_id<draw_id>());
  turn_ = 0;
  best_ = 0;
  is_solved_ = false;
  ordered_json seen = observation();
  seen["compilation_success"] = true;
  reply(one_line({{"type", "observation"},
                  {"data", {{"observation", seen}, {"reward", 0.0}, {"done", false}}}}));
}

void kernrl_episode::step(const json& data, const http_server::message_reply& reply) {
  judge_request asked;
  {
    const std::lock_guard hold(lock_);
    if (task_ == nullptr)
      return reply(error_message("an episode begins with reset", "VALIDATION_ERROR"));
    ++turn_;
    asked.task.named = to_string(task_->id);
  }
  std::string code = data.at("code").get<std::string>();
  const bool is_document = code.find("## Code Implementation") != std::string::npos;
  // Programs of kernrl replace a class by one of the same name.
  if (code.find("class ModelNew") == std::string::npos) code += "\n\nModelNew = Model\n";
  asked.programs = {is_document ? asked_program{data.at("code").get<std::string>()}
                                : asked_program{code, true}};
  asked.wait_s = max_episode_s;
  of_.judge(
      asked,
      [self = shared_from_this(), reply](const judgement_record& known) {
        if (known->getResults().size() == 0)
          return reply(error_message("the program is not judged yet", "EXECUTION_ERROR"));
        const std::lock_guard hold(self->lock_);
        reply(self->answer_with(known->getResults()[0]));
      },
      [reply](const bad_request& refused) {
        reply(error_message(refused.what(), "EXECUTION_ERROR"));
      });
}

ordered_json kernrl_episode::observation() const {
  return {{"problem_id", task_->name},
          {"problem_description", task_->summary},
          {"reference_code", text_of_task(*task_)},
          {"gpu_info", of_.device_type},
          {"turn", turn_},
          {"max_turns", max_turns},
          {"feedback", ""}};
}

std::string kernrl_episode::answer_with(const schema::Evaluation::Reader& result) {
  const bool is_right = result.getOutcome() == Outcome::OK;
  const bool compiles = is_compiled(result.getOutcome());
  const ordered_json message = view(result.getMessage());
  if (is_right && has_score(result)) {
    best_ = std::max(best_, result.getScore());
    is_solved_ = is_solved_ || result.getScore() > solved_speedup;
  }
  ordered_json seen = observation();
  seen["feedback"] = describe(result);
  seen["compilation_success"] = compiles;
  seen["compilation_error"] = compiles ? ordered_json(nullptr) : message;
  seen["correctness_pass"] = compiles ? ordered_json(is_right) : ordered_json(nullptr);
  seen["speedup"] =
      is_right && has_score(result) ? ordered_json(result.getScore()) : ordered_json(nullptr);
  seen["metadata"] = {{"step", turn_},
                      {"solved", is_solved_},
                      {"outcome", name_of(result.getOutcome())},
                      {"conclusive", is_conclusive(result)}};
  const ordered_json reward =
      is_conclusive(result) ? ordered_json(reward_of(result)) : ordered_json(nullptr);
  return one_line(
      {{"type", "observation"},
       {"data",
        {{"observation", seen}, {"reward", reward}, {"done", turn_ >= max_turns || is_solved_}}}});
}

std::string kernrl_episode::state() const {
  const ordered_json problem = task_ == nullptr ? ordered_json(nullptr) : ordered_json(task_->name);
  return one_line({{"type", "state"},
                   {"data",
                    {{"episode_id", id_},
                     {"step_count", turn_},
                     {"problem_id", problem},
                     {"turn", turn_},
                     {"max_turns", max_turns},
                     {"best_speedup", best_},
                     {"solved", is_solved_}}}});
}

}  // namespace hone
