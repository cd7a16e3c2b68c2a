#include "launch/serve/judge_api.hpp"

#include <algorithm>
#include <utility>

#include "actors/device_shares.hpp"
#include "launch/serve/answers.hpp"
#include "launch/serve/kernelgym.hpp"
#include "launch/serve/kernrl.hpp"
#include "launch/serve/paths.hpp"
#include "launch/version.hpp"
#include "messages/parse_number.hpp"
#include "messages/versions.hpp"
#include "network/identity.hpp"

namespace hone {
namespace {

using nlohmann::ordered_json;

constexpr const char* anonymous = "anonymous";
constexpr auto follow_for = std::chrono::seconds(30);
constexpr std::size_t max_listed = 1000;

bad_request unavailable(const std::string& why) { return {503, "unavailable", why}; }
bad_request not_found(const std::string& what) { return {404, "not_found", what}; }

// Answers a request of HTTP with a refusal.
auto refusing(const http_server::reply& reply) {
  return [reply](const bad_request& why) { reply(refusal(why)); };
}

group_id parse_group_id(const std::string& text) {
  const auto parsed = parse_hex_id(text);
  if (!parsed) throw not_found("there is no judgement '" + text + "'");
  return {(*parsed)[0], (*parsed)[1]};
}

double seconds_of(const http_request& request, const std::string& name) {
  const auto given = request.query.find(name);
  if (given == request.query.end()) return 0;
  const auto value = parse_number<double>(given->second);
  if (!value || *value < 0 || *value > max_wait_s)
    throw bad_request(400, "bad_request",
                      name + " is '" + given->second + "', expected seconds from 0 to " +
                          std::to_string(static_cast<int>(max_wait_s)));
  return *value;
}

std::uint32_t milliseconds(double seconds) { return static_cast<std::uint32_t>(seconds * 1000); }

// A page in a browser can send requests to this machine, under a name that it has made lead here.
void refuse_other_hosts(const http_request& request) {
  try {
    if (is_loopback(
            parse_address(request.host.find(':', request.host.rfind(']') + 1) == std::string::npos
                              ? request.host + ":80"
                              : request.host)))
      return;
  } catch (const network_error&) {
  }
  throw bad_request(403, "forbidden",
                    "a server without clients' tokens answers requests to this machine's loopback "
                    "address, and not to '" +
                        request.host + "'");
}

}  // namespace

// A path's part "*" matches any text.
struct judge_api::route {
  const char* method;
  std::vector<std::string> path;
  void (judge_api::*serve)(const call&);
};

const std::vector<judge_api::route>& judge_api::routes() {
  static const std::vector<route> all = {
      {"POST", {"v1", "judge"}, &judge_api::judge},
      {"GET", {"v1", "judge", "*"}, &judge_api::find_judgement},
      {"DELETE", {"v1", "judge", "*"}, &judge_api::withdraw},
      {"GET", {"v1", "tasks"}, &judge_api::list_tasks},
      {"PUT", {"v1", "tasks"}, &judge_api::put_task},
      {"GET", {"v1", "tasks", "*"}, &judge_api::show_task},
      {"GET", {"v1", "status"}, &judge_api::show_status},
      {"POST", {"evaluate"}, &judge_api::evaluate},
      {"GET", {"status", "*"}, &judge_api::find_evaluation},
      {"GET", {"results", "*"}, &judge_api::find_evaluation_result},
      {"DELETE", {"tasks", "*"}, &judge_api::withdraw_evaluation},
  };
  return all;
}

judge_api::judge_api(caf::actor_system& system, pool_actor pool, served_tasks& tasks,
                     bearer_tokens* tokens, service_limits limits)
    : system_(system),
      pool_(std::move(pool)),
      tasks_(tasks),
      tokens_(tokens),
      admissions_(limits) {}

void judge_api::add_device_type(const std::string& name) {
  const std::lock_guard hold(lock_);
  if (std::find(device_types_.begin(), device_types_.end(), name) == device_types_.end())
    device_types_.push_back(name);
}

std::string judge_api::choose_device_type(const std::string& wanted) const {
  const std::lock_guard hold(lock_);
  for (const std::string& type : device_types_) {
    if (wanted.empty() || is_type_named(type, wanted)) return type;
  }
  if (device_types_.empty()) throw unavailable("the server has no device yet");
  std::string known;
  for (const std::string& type : device_types_) known += (known.empty() ? "" : ", ") + type;
  throw bad_request(422, "no_such_device",
                    "the server has no device '" + wanted + "'; it has " + known);
}

std::string judge_api::client_of(const http_request& request) const {
  if (tokens_ == nullptr) {
    refuse_other_hosts(request);
    return anonymous;
  }
  const auto client = tokens_->find_client(request.token);
  if (!client)
    throw bad_request(401, "unauthorized", "the bearer token is missing or not a client's");
  return *client;
}

http_server::conversation judge_api::open_conversation(const http_request& request) {
  if (request.path != "/ws") return nullptr;
  kernrl_episode::services of;
  try {
    const std::string client = client_of(request);
    of.device_type = choose_device_type("");
    of.find = [self = shared_from_this()](const std::string& wanted) {
      return self->tasks_.find_like(wanted);
    };
    of.judge = [self = shared_from_this(), client](const judge_request& asked, const taker& done,
                                                   const refuser& refused) {
      self->serve(asked, client, done, refused);
    };
  } catch (const bad_request&) {
    return nullptr;  // handle() says why
  }
  return [episode = std::make_shared<kernrl_episode>(std::move(of))](
             const std::string& message, const http_server::message_reply& reply) {
    episode->handle(message, reply);
  };
}

void judge_api::handle(const http_request& request, const http_server::reply& reply) {
  try {
    if (request.path == "/healthz" || request.path == "/health")
      return reply(response(200, {{"status", "ok"}}));
    call c{request, client_of(request), {}, reply};
    if (!request.body.empty() && request.content_type != "application/json")
      throw bad_request(415, "bad_request", "the body has to be of type application/json");
    const std::vector<std::string> path = split_path(request.path);
    bool is_known = false;
    for (const route& one : routes()) {
      auto open = match_path(one.path, path);
      is_known = is_known || open.has_value();
      if (!open || request.method != one.method) continue;
      c.parts = *std::move(open);
      return (this->*one.serve)(c);
    }
    if (is_known)
      throw bad_request(405, "bad_method", request.method + " is not for " + request.path);
    throw not_found("there is nothing at " + request.path);
  } catch (const bad_request& refused) {
    reply(refusal(refused));
  } catch (const std::exception& e) {
    reply(refusal(bad_request(500, "internal", e.what())));
  }
}

void judge_api::with_task(const task_reference& reference, const refuser& refuse,
                          const std::function<void(const served_tasks::late_task&)>& use) {
  const auto guarded = [=](const served_tasks::late_task& found) {
    try {
      use(found);
    } catch (const bad_request& refused) {
      refuse(refused);
    }
  };
  if (!reference.named.empty()) {
    const found_task t = tasks_.find(reference.named);
    if (t == nullptr) throw no_such_task(reference.named);
    return guarded({t, {}});
  }
  const auto self = shared_from_this();
  tasks_.make(reference, [=](const served_tasks::late_task& made, const bad_request* refused) {
    if (refused != nullptr) return refuse(*refused);
    if (self->tasks_.find(to_string(made.made->id)) != nullptr) return guarded(made);
    self->system_.spawn([=](caf::event_based_actor* storing) {
      storing
          ->request(self->pool_, caf::infinite, submit_atom_v,
                    to_record(*made.made, task_role::late))
          .then(
              [=](done_atom) {
                self->tasks_.keep(made.made);
                guarded(made);
              },
              [=](const caf::error&) { refuse(unavailable("the server is ending")); });
    });
  });
}

judge_api::presenter judge_api::present(bool has_details) {
  const auto self = shared_from_this();
  return [=](const judgement_record& known) {
    return judgement_response(known, self->name_of_task(known), has_details);
  };
}

void judge_api::judge(const call& c) {
  const judge_request asked = parse_judge_request(parse_body(c.request.body));
  const http_server::reply reply = c.reply;
  const presenter show = present(asked.has_details);
  const taker take = [=](const judgement_record& known) { reply(show(known)); };
  serve(asked, c.client, take, refusing(reply));
}

void judge_api::serve(const judge_request& asked, const std::string& client, const taker& take,
                      const refuser& refuse) {
  const auto self = shared_from_this();
  with_task(asked.task, refuse, [=](const served_tasks::late_task& found) {
    self->tasks_.translate(
        found.made, asked.programs,
        [=](const std::vector<asked_program>& programs, const bad_request* refused) {
          if (refused != nullptr) return refuse(*refused);
          judge_request readable = asked;
          readable.programs = programs;
          try {
            self->submit(readable, client, found.made, take, refuse);
          } catch (const bad_request& why) {
            refuse(why);
          }
        });
  });
}

void judge_api::submit(const judge_request& asked, const std::string& client, const found_task& t,
                       const taker& take, const refuser& refuse) {
  const group_record group = make_group(asked, client, *t, choose_device_type(asked.device_type));
  const std::size_t programs = asked.programs.size();
  admissions_.admit(client, programs);
  const auto fail = [refuse](const caf::error&) { refuse(unavailable("the server is ending")); };
  const auto self = shared_from_this();
  const std::uint32_t wait = milliseconds(asked.wait_s);
  system_.spawn([=](caf::event_based_actor* asking) {
    asking->request(self->pool_, caf::infinite, submit_atom_v, group)
        .then(
            [=](done_atom) {
              const group_id id(group->getId());
              self->follow(id, client, programs);
              asking->request(self->pool_, caf::infinite, judge_atom_v, id.high, id.low, wait)
                  .then(take, fail);
            },
            [=](const caf::error& error) {
              self->admissions_.release(client, programs);
              fail(error);
            });
  });
}

void judge_api::follow(const group_id& group, const std::string& client, std::size_t programs) {
  const auto wait = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(follow_for).count());
  const auto self = shared_from_this();
  system_.spawn([=](caf::event_based_actor* following) {
    following->request(self->pool_, caf::infinite, judge_atom_v, group.high, group.low, wait)
        .then(
            [=](const judgement_record& known) {
              if (known->getState() == schema::Judgement::State::WAITING)
                return self->follow(group, client, programs);
              self->admissions_.release(client, programs);
            },
            [=](const caf::error&) { self->admissions_.release(client, programs); });
  });
}

std::string judge_api::name_of_task(const judgement_record& known) const {
  const found_task t = tasks_.find(to_string(task_id(known->getTaskId())));
  return t == nullptr ? "" : t->name;
}

void judge_api::answer(const group_id& group, const call& c, bool withdraws,
                       const presenter& show) {
  const std::uint32_t wait = withdraws ? 0 : milliseconds(seconds_of(c.request, "wait_s"));
  const auto self = shared_from_this();
  const std::string client = c.client;
  const http_server::reply reply = c.reply;
  system_.spawn([=](caf::event_based_actor* asking) {
    const auto fail = [=](const caf::error&) {
      reply(refusal(not_found("there is no judgement '" + to_string(group) + "'")));
    };
    const auto answer_with = [=](const judgement_record& known) {
      if (view(known->getClient()) != client) return fail({});
      reply(show(known));
    };
    asking->request(self->pool_, caf::infinite, judge_atom_v, group.high, group.low, wait)
        .then(
            [=](const judgement_record& known) {
              if (!withdraws || view(known->getClient()) != client) return answer_with(known);
              asking->request(self->pool_, caf::infinite, cancel_atom_v, group.high, group.low)
                  .then(answer_with, fail);
            },
            fail);
  });
}

void judge_api::find_judgement(const call& c) {
  answer(parse_group_id(c.parts.front()), c, false, present(c.request.query.contains("details")));
}

void judge_api::withdraw(const call& c) {
  answer(parse_group_id(c.parts.front()), c, true, present(false));
}

void judge_api::evaluate(const call& c) {
  const judge_request asked = parse_evaluation(parse_body(c.request.body));
  const http_server::reply reply = c.reply;
  const taker take = [=](const judgement_record& known) {
    reply(evaluation_result(known, asked.id));
  };
  serve(asked, c.client, take, refusing(reply));
}

void judge_api::find_evaluation(const call& c) {
  const std::string id = c.parts.front();
  answer(group_of(c.client, id), c, false,
         [id](const judgement_record& known) { return evaluation_status(known, id); });
}

void judge_api::find_evaluation_result(const call& c) {
  const std::string id = c.parts.front();
  answer(group_of(c.client, id), c, false,
         [id](const judgement_record& known) { return evaluation_result(known, id); });
}

void judge_api::withdraw_evaluation(const call& c) {
  const std::string id = c.parts.front();
  answer(group_of(c.client, id), c, true,
         [id](const judgement_record& known) { return evaluation_status(known, id); });
}

void judge_api::list_tasks(const call& c) {
  const auto after = c.request.query.find("after");
  ordered_json listed = ordered_json::array();
  for (const found_task& t :
       tasks_.list(after == c.request.query.end() ? "" : after->second, max_listed))
    listed.push_back({{"name", t->name}, {"id", to_string(t->id)}, {"summary", t->summary}});
  c.reply(response(200, {{"tasks", listed}}));
}

void judge_api::show_task(const call& c) {
  const found_task t = tasks_.find(c.parts.front());
  if (t == nullptr) throw no_such_task(c.parts.front());
  ordered_json body = describe_task(*t);
  body["toml"] = t->text;
  c.reply(response(200, body));
}

void judge_api::put_task(const call& c) {
  const task_reference reference = parse_task_reference(parse_body(c.request.body));
  with_task(reference, refusing(c.reply), [reply = c.reply](const served_tasks::late_task& found) {
    ordered_json body = describe_task(*found.made);
    body["notes"] = found.notes;
    reply(response(200, body));
  });
}

void judge_api::show_status(const call& c) {
  ordered_json types = ordered_json::array();
  {
    const std::lock_guard hold(lock_);
    types = device_types_;
  }
  system_.spawn(
      [self = shared_from_this(), reply = c.reply, types](caf::event_based_actor* asking) {
        asking->request(self->pool_, caf::infinite, status_atom_v, watch_atom_v)
            .then(
                [=](const run_status_record& status) {
                  reply(response(200, {{"version", describe_version()},
                                       {"judge_version", judge_version},
                                       {"device_types", types},
                                       {"programs_waiting", self->admissions_.waiting()},
                                       {"jobs_in_flight", status->getInFlight()},
                                       {"requests_waiting", status->getWaitingGroups()},
                                       {"requests_judged", status->getReadyGroups()}}));
                },
                [=](const caf::error&) { reply(refusal(unavailable("the server is ending"))); });
      });
}

}  // namespace hone
