#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "messages/caf_records.hpp"
#include "tasks/task_file.hpp"

namespace hone {

// Thrown for a request that cannot be served. The message is a sentence for the client.
class bad_request : public std::runtime_error {
 public:
  bad_request(unsigned status, std::string code, const std::string& message)
      : std::runtime_error(message), status_(status), code_(std::move(code)) {}
  unsigned status() const { return status_; }
  const std::string& code() const { return code_; }

 private:
  unsigned status_;
  std::string code_;
};

// Returns the refusal of a request for a task that the server does not have.
bad_request no_such_task(const std::string& name);

// Parses a body of JSON. Throws bad_request, also for objects that are nested too deeply.
nlohmann::json parse_body(const std::string& body);

// Which task a request means: one that the server has, by its name or id; a task file; or a PyTorch
// module that becomes one.
struct task_reference {
  std::string named;
  std::string toml;
  std::string module;
  std::string precision = "strict";  // of a module: as `hone task import --precision`
  std::string dtype;                 // of a module
  bool varies_constants = false;     // of a module
  bool fixes_sizes = false;          // of a module
};

// A program of a request.
struct asked_program {
  std::string text;
  bool is_python = false;  // a file with a ModelNew, which is translated into a document

  // What came of the translation.
  std::string document{};
  std::string problem{};        // empty: it was translated
  bool is_unsupported = false;  // with a problem: the program may be right
};

// POST /v1/judge.
struct judge_request {
  task_reference task;
  std::vector<asked_program> programs;
  std::string device_type;    // or its beginning; empty: any
  bool wants_score = true;    // false: only a verdict
  std::uint8_t priority = 1;  // 0 to 2
  double deadline_s = 0;      // after which nobody waits; 0: never
  std::string id;             // the client's own; empty: none
  double wait_s = 0;          // for the results, before the answer
  bool has_details = false;   // whether the answer has all measurements
};

inline constexpr std::size_t max_programs = 256;
inline constexpr double max_wait_s = 60;

// Parse a request. Throw bad_request, which names the key.
judge_request parse_judge_request(const nlohmann::json& body);
task_reference parse_task_reference(const nlohmann::json& body);

// Returns the id of the group that a client's request becomes if the client has chosen an id.
group_id group_of(const std::string& client, const std::string& id);

// Returns the group of a request. Its id follows from the client and the client's own id, so that a
// repeated request is the same group; without such an id it is random.
group_record make_group(const judge_request& request, const std::string& client, const task& t,
                        const std::string& device_type);

}  // namespace hone
