#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "launch/serve/judge_request.hpp"
#include "network/http/http_server.hpp"

namespace hone {

// An episode of OpenEnv's environment kernrl (github.com/meta-pytorch/OpenEnv, envs/kernrl): a
// client chooses a task and hands in programs, one after the other, over a WebSocket. The rewards
// are the same as those of kernrl's server. Messages come one at a time, from any thread.
class kernrl_episode : public std::enable_shared_from_this<kernrl_episode> {
 public:
  using found_task = std::shared_ptr<const task>;
  // Services of the server for an episode.
  struct services {
    // Returns the task of this name or id, or one whose name has this text; any one if it is empty.
    // Null: there is none.
    std::function<found_task(const std::string& wanted)> find;
    // Judges a program for a task. Calls one of the two, once.
    std::function<void(const judge_request& asked,
                       const std::function<void(const judgement_record&)>& done,
                       const std::function<void(const bad_request&)>& refused)>
        judge;
    std::string device_type;
  };
  explicit kernrl_episode(services of) : of_(std::move(of)) {}

  // Answers a message; an empty answer ends the connection.
  void handle(const std::string& message, const http_server::message_reply& reply);

 private:
  static constexpr std::uint32_t max_turns = 10;

  void reset(const nlohmann::json& data, const http_server::message_reply& reply);
  void step(const nlohmann::json& data, const http_server::message_reply& reply);
  nlohmann::ordered_json observation() const;
  std::string answer_with(const schema::Evaluation::Reader& result);
  std::string state() const;

  services of_;
  std::mutex lock_;  // guards the rest
  found_task task_;
  std::string id_;
  std::uint32_t turn_ = 0;
  double best_ = 0;
  bool is_solved_ = false;
};

}  // namespace hone
