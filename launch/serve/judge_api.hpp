#pragma once

#include <caf/all.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "launch/serve/admissions.hpp"
#include "launch/serve/judge_request.hpp"
#include "launch/serve/served_tasks.hpp"
#include "messages/interfaces.hpp"
#include "network/http/bearer_tokens.hpp"
#include "network/http/http_server.hpp"

namespace hone {

// Answers the requests of `hone serve` (doc/serving.md): turns them into groups for the pool and
// judgements into JSON. The functions may be called by several threads, and do not block.
class judge_api : public std::enable_shared_from_this<judge_api> {
 public:
  // `tokens` may be null: every client is "anonymous" then, and must be on this machine. The
  // referenced objects must outlive this one.
  judge_api(caf::actor_system& system, pool_actor pool, served_tasks& tasks, bearer_tokens* tokens,
            service_limits limits);

  void handle(const http_request& request, const http_server::reply& reply);
  // Begins an episode of kernrl for a WebSocket at /ws; null for any other request.
  http_server::conversation open_conversation(const http_request& request);
  // A device of this type can judge from now on.
  void add_device_type(const std::string& name);

 private:
  struct route;
  static const std::vector<route>& routes();

  // One request with its way back.
  struct call {
    const http_request& request;
    std::string client;
    std::vector<std::string> parts;  // of the path that the route leaves open
    http_server::reply reply;
  };
  void judge(const call& c);
  void find_judgement(const call& c);
  void withdraw(const call& c);
  void list_tasks(const call& c);
  void show_task(const call& c);
  void put_task(const call& c);
  void show_status(const call& c);
  void evaluate(const call& c);  // KernelGYM's interface
  void find_evaluation(const call& c);
  void find_evaluation_result(const call& c);
  void withdraw_evaluation(const call& c);

  using found_task = served_tasks::found_task;
  using presenter = std::function<http_response(const judgement_record&)>;
  using taker = std::function<void(const judgement_record&)>;
  using refuser = std::function<void(const bad_request&)>;
  // Judges a request of a client, and calls one of the two.
  void serve(const judge_request& asked, const std::string& client, const taker& take,
             const refuser& refuse);
  // Returns the name of the client. Throws bad_request.
  std::string client_of(const http_request& request) const;
  // Passes the task of a reference on, which is stored then, or refuses the request.
  void with_task(const task_reference& reference, const refuser& refuse,
                 const std::function<void(const served_tasks::late_task&)>& use);
  // Submits a request whose programs in Python are translated.
  void submit(const judge_request& asked, const std::string& client, const found_task& t,
              const taker& take, const refuser& refuse);
  // Gives the client its programs back when the group is judged.
  void follow(const group_id& group, const std::string& client, std::size_t programs);
  // Answers with a judgement of this client: after a request for it, or after it was withdrawn.
  void answer(const group_id& group, const call& c, bool withdraws, const presenter& show);
  presenter present(bool has_details);
  std::string choose_device_type(const std::string& wanted) const;
  std::string name_of_task(const judgement_record& known) const;

  caf::actor_system& system_;
  pool_actor pool_;
  served_tasks& tasks_;
  bearer_tokens* tokens_;
  admissions admissions_;
  mutable std::mutex lock_;                // guards the next one
  std::vector<std::string> device_types_;  // in the order in which they came
};

}  // namespace hone
