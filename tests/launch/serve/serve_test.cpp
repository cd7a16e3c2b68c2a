// Tests of `hone serve`, through the program, with simulated devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/http_exchange.hpp"
#include "tests/support/nodes.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::HasSubstr;

constexpr const char* serving = R"(
directory = "served"
[node]
devices = ["simulated:a"]
[tasks]
folder = "%TASKS%"
names = ["softmax", "layer_norm"]
[policy]
kind = "none"
[serve]
listen = "127.0.0.1:0"
[simulated.a]
verify_us = 100
measure_us = 300
ok_share = 1
)";

std::string document(int number) {
  return "## Performance Analysis\nNone.\n## Code Implementation\n```python\ndef forward(x: "
         "Tensor) -> Tensor:\n    return torch.softmax(x, dim=1) * " +
         std::to_string(number) + "\n```\n";
}

constexpr const char* late_task = R"(
name = "handed_in"
summary = "twice x"
reference = '''
def forward(x: Tensor) -> Tensor:
    return x * 2
'''
[[input]]
name = "x"
shape = ["N", "M"]
[[case]]
sizes = { N = 64, M = 32 }
timed = true
)";

class Serve : public testing::Test {
 protected:
  Serve() {
    std::string text = serving;
    text.replace(text.find("%TASKS%"), 7, std::string(HONE_SOURCE_DIR) + "/configs/tasks");
    write_file(folder_ / "serve.toml", text);
  }
  ~Serve() override {
    if (server_) expect_plain_messages(server_->err());
  }

  std::filesystem::path directory() const { return folder_ / "served"; }
  std::vector<std::string> command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {hone_program(), "serve", (folder_ / "serve.toml").string(),
                                    "--dir", directory().string()};
    for (const std::string& one : more) {
      all.emplace_back("--set");
      all.push_back(one);
    }
    return all;
  }
  void start(const std::vector<std::string>& more = {}) {
    std::filesystem::remove(directory() / "serving");
    server_.emplace(command(more));
    ASSERT_TRUE(eventually(
        [&] { return std::filesystem::exists(directory() / "serving") || server_->has_ended(); }));
    const std::string url = read_file(directory() / "serving");
    ASSERT_FALSE(url.empty()) << server_->err();
    port_ = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }
  http_answer ask(const std::string& method, const std::string& target, const json& body = nullptr,
                  const std::string& token = "") const {
    return fetch(port_, method, target, body.is_null() ? "" : body.dump(), token);
  }
  json judge(const json& body) const {
    const http_answer answer = ask("POST", "/v1/judge", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body);
  }
  std::string error_of(const std::string& method, const std::string& target, int status,
                       const json& body = nullptr) const {
    const http_answer answer = ask(method, target, body);
    EXPECT_EQ(answer.status, status) << method << " " << target << ": " << answer.body;
    return json::parse(answer.body)["error"]["message"];
  }
  // Returns the judgement when it is no longer waited for.
  json wait_for(const std::string& id) const {
    json known;
    EXPECT_TRUE(eventually([&] {
      known = json::parse(ask("GET", "/v1/judge/" + id + "?wait_s=5").body);
      return known["state"] != "waiting";
    }));
    return known;
  }

  temporary_folder folder_;
  std::optional<program> server_;
  std::uint16_t port_ = 0;
};

TEST_F(Serve, JudgesProgramsAndAnswersKnownOnesAtOnce) {
  start();
  const json asked = {{"task", "softmax"},
                      {"programs", {document(1), "no document", document(2), document(1)}},
                      {"wait_s", 30}};
  const json first = judge(asked);
  EXPECT_EQ(first["state"], "done");
  ASSERT_EQ(first["results"].size(), 4U);
  EXPECT_EQ(first["results"][0]["outcome"], "ok");
  EXPECT_GT(first["results"][0]["speedup"], 0);
  EXPECT_EQ(first["results"][0]["variant"], first["results"][3]["variant"]);
  EXPECT_EQ(first["results"][1]["outcome"], "unparsable");
  EXPECT_FALSE(first["results"][0]["cached"]);
  EXPECT_FALSE(first["results"][0].contains("measurements"));
  json again_asked = asked;
  again_asked["details"] = true;
  again_asked["wait_s"] = 0;
  const json again = judge(again_asked);
  EXPECT_TRUE(again["results"][0]["cached"]);
  EXPECT_GT(again["results"][0]["measurements"].size(), 0U);
  const json later = json::parse(ask("GET", "/v1/judge/" + first["id"].get<std::string>()).body);
  EXPECT_EQ(later["state"], "done");
  EXPECT_EQ(later["results"][0]["outcome"], "ok");
  EXPECT_FALSE(later["results"][0]["cached"]) << "it was not known when this was asked";
  const json verdict = judge(
      {{"task", "softmax"}, {"programs", {document(3)}}, {"want", "verdict"}, {"wait_s", 30}});
  EXPECT_EQ(verdict["results"][0]["outcome"], "ok");
  EXPECT_TRUE(verdict["results"][0]["speedup"].is_null());
}

TEST_F(Serve, RefusesWhatItCannotServe) {
  start();
  const json good = {{"task", "softmax"}, {"programs", {document(1)}}};
  json unknown = good;
  unknown["task"] = "nothing";
  EXPECT_THAT(error_of("POST", "/v1/judge", 404, unknown), HasSubstr("'nothing'"));
  json elsewhere = good;
  elsewhere["device_type"] = "h100";
  EXPECT_THAT(error_of("POST", "/v1/judge", 422, elsewhere), HasSubstr("simulated-a"));
  EXPECT_THAT(error_of("GET", "/v1/judge", 405), HasSubstr("GET"));
  EXPECT_THAT(error_of("GET", "/v2", 404), HasSubstr("/v2"));
  EXPECT_THAT(error_of("GET", "/v1/judge/0123456789abcdef0123456789abcdef", 404),
              HasSubstr("no judgement"));
  EXPECT_THAT(error_of("GET", "/v1/judge/x", 404), HasSubstr("'x'"));
  EXPECT_THAT(error_of("PUT", "/v1/tasks", 422, {{"toml", "name = 3"}}), HasSubstr("name"));
  const std::string body = good.dump();
  EXPECT_EQ(fetch(port_, "POST", "/v1/judge", "", "",
                  "Content-Type: text/plain\r\nContent-Length: " + std::to_string(body.size()) +
                      "\r\n\r\n" + body)
                .status,
            415)
      << "a page in a browser may send such requests without asking";
  raw_connection rebound(port_);
  rebound.send("GET /v1/tasks HTTP/1.1\r\nHost: evil.example:80\r\n\r\n");
  EXPECT_THAT(rebound.receive(), HasSubstr("403"));
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(Serve, TakesTasksAndListsThem) {
  start();
  const http_answer put = ask("PUT", "/v1/tasks", {{"toml", late_task}});
  ASSERT_EQ(put.status, 200) << put.body;
  const std::string id = json::parse(put.body)["id"];
  for (const std::string& named : {std::string("handed_in"), id}) {
    const json done = judge({{"task", named}, {"programs", {document(1)}}, {"wait_s", 30}});
    EXPECT_EQ(done["task"], "handed_in");
    EXPECT_EQ(done["results"][0]["outcome"], "ok");
  }
  const json listed = json::parse(ask("GET", "/v1/tasks").body)["tasks"];
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[0]["name"], "handed_in");
  const json after = json::parse(ask("GET", "/v1/tasks?after=layer_norm").body)["tasks"];
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0]["name"], "softmax");
  EXPECT_THAT(json::parse(ask("GET", "/v1/tasks/" + id).body)["toml"].get<std::string>(),
              HasSubstr("twice x"));
  server_->send(SIGTERM);
  EXPECT_EQ(server_->wait(), 0);
  start();
  const json again = judge({{"task", "handed_in"}, {"programs", {document(5)}}, {"wait_s", 30}});
  EXPECT_EQ(again["results"][0]["outcome"], "ok");
}

TEST_F(Serve, TranslatesProgramsInPythonAlsoForClientsOfKernelGym) {
  start();
  const std::string module = R"(
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1.0
def get_inputs():
    return [torch.randn(64, 32)]
def get_init_inputs():
    return []
)";
  const std::string program = R"(
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x).add_(1.0)
)";
  const auto python = [](const std::string& text) {
    return json{{"text", text}, {"kind", "python"}};
  };
  const json done = judge({{"task", {{"module", module}}},
                           {"programs", {python(program), python("x = ("), python("import torch")}},
                           {"wait_s", 30}});
  EXPECT_EQ(done["results"][0]["outcome"], "ok");
  EXPECT_EQ(done["results"][1]["outcome"], "unparsable");
  EXPECT_TRUE(done["results"][1]["conclusive"]);
  EXPECT_THAT(done["results"][2]["message"].get<std::string>(), HasSubstr("no ModelNew"));
  const json unsupported =
      judge({{"task", "softmax"}, {"programs", {python(program)}}, {"wait_s", 30}});
  EXPECT_EQ(unsupported["results"][0]["kind"], "unsupported");
  EXPECT_FALSE(unsupported["results"][0]["conclusive"]);
  const http_answer accepted = ask("POST", "/evaluate",
                                   {{"task_id", "gym 1"},
                                    {"reference_code", module},
                                    {"kernel_code", program},
                                    {"backend", "cuda"}});
  EXPECT_EQ(accepted.status, 200) << accepted.body;
  EXPECT_TRUE(eventually(
      [&] { return json::parse(ask("GET", "/status/gym%201").body)["status"] == "completed"; }));
  const json result = json::parse(ask("GET", "/results/gym%201").body);
  EXPECT_EQ(result["task_id"], "gym 1");
  EXPECT_EQ(result["correctness"], true);
  EXPECT_GT(result["speedup"], 0);
}

TEST_F(Serve, IsAnEnvironmentForClientsOfKernrl) {
  start({"simulated.a.median_speedup=3.0", "simulated.a.spread=0"});
  web_socket_client client(port_, "/ws");
  EXPECT_THAT(client.greeting(), HasSubstr("101"));
  const auto say = [&](const json& message) {
    client.send(message.dump());
    return json::parse(client.receive());
  };
  EXPECT_EQ(say({{"type", "step"}, {"data", {{"code", "x"}}}})["type"], "error");
  EXPECT_EQ(say({{"type", "reset"}, {"data", {{"problem_id", "nothing"}}}})["type"], "error");
  const json begun = say({{"type", "reset"}, {"data", {{"problem_id", "soft"}}}});
  EXPECT_EQ(begun["type"], "observation");
  EXPECT_EQ(begun["data"]["observation"]["problem_id"], "softmax");
  EXPECT_EQ(begun["data"]["done"], false);
  const json wrong = say({{"type", "step"}, {"data", {{"code", "x = ("}}}})["data"];
  EXPECT_EQ(wrong["observation"]["turn"], 1);
  EXPECT_TRUE(wrong["reward"].is_null()) << "the task has no module to translate programs for";
  const json right = say({{"type", "step"}, {"data", {{"code", document(1)}}}})["data"];
  EXPECT_EQ(right["observation"]["correctness_pass"], true);
  EXPECT_NEAR(right["reward"], 2.0, 0.1) << "3 times as fast";
  EXPECT_EQ(right["done"], true);
  const json state = say({{"type", "state"}})["data"];
  EXPECT_EQ(state["turn"], 2);
  EXPECT_EQ(state["solved"], true);
  client.send("{");
  EXPECT_EQ(json::parse(client.receive())["type"], "error");
  client.send(R"({"type": "close"})");
  EXPECT_EQ(client.receive(), "");
  web_socket_client elsewhere(port_, "/other");
  EXPECT_THAT(elsewhere.greeting(), HasSubstr("404"));
}

TEST_F(Serve, LosesNoAcceptedRequestWhenItIsKilled) {
  // Nobody compiles, so that all requests wait.
  start({"node.compilers=0"});
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    const http_answer answer =
        ask("POST", "/v1/judge", {{"task", "softmax"}, {"programs", {document(i)}}});
    ASSERT_EQ(answer.status, 202) << answer.body;
    ids.push_back(json::parse(answer.body)["id"]);
  }
  server_->send(SIGKILL);
  (void)server_->wait();
  start();
  for (const std::string& id : ids) EXPECT_EQ(wait_for(id)["results"][0]["outcome"], "ok");
}

TEST_F(Serve, GivesUpWhatIsWithdrawnOrLate) {
  start({"node.compilers=0"});
  const json asked = {{"task", "softmax"}, {"programs", {document(1)}}, {"id", "mine"}};
  const json waiting = json::parse(ask("POST", "/v1/judge", asked).body);
  const std::string id = waiting["id"];
  EXPECT_EQ(json::parse(ask("POST", "/v1/judge", asked).body)["id"], id) << "the same request";
  EXPECT_EQ(json::parse(ask("DELETE", "/v1/judge/" + id).body)["state"], "withdrawn");
  EXPECT_EQ(wait_for(id)["state"], "withdrawn");
  const json late =
      json::parse(ask("POST", "/v1/judge",
                      {{"task", "softmax"}, {"programs", {document(2)}}, {"deadline_s", 0.5}})
                      .body);
  EXPECT_EQ(wait_for(late["id"])["state"], "withdrawn");
  EXPECT_TRUE(eventually(
      [&] { return json::parse(ask("GET", "/v1/status").body)["programs_waiting"] == 0; }));
}

TEST_F(Serve, NodesThatJoinJudgeLateTasks) {
  start({"node.devices=[]", "node.compilers=0"});
  EXPECT_THAT(error_of("POST", "/v1/judge", 503, {{"task", "softmax"}, {"programs", {"x"}}}),
              HasSubstr("no device"));
  std::string address = read_file(directory() / "address");
  address.pop_back();
  program node(
      {hone_program(), "node", "--join", address, "--devices", "simulated:a", "--name", "helper"});
  ASSERT_TRUE(eventually([&] {
    return !json::parse(ask("GET", "/v1/status").body)["device_types"].empty();
  })) << node.err();
  const json done = judge(
      {{"task", {{"toml", late_task}}}, {"programs", {document(1), document(2)}}, {"wait_s", 30}});
  for (const json& one : done["results"]) EXPECT_EQ(one["outcome"], "ok") << one["message"];
}

TEST_F(Serve, ClientsNeedTheirTokensAndSeeTheirOwnJudgements) {
  const std::string file = "serve.tokens=" + (folder_ / "clients").string();
  std::vector<std::string> tokens;
  for (const char* name : {"first", "second"}) {
    auto added = command({file});
    added.erase(added.begin());
    added.insert(added.end(), {"--add-client", name});
    const auto ended = run_hone(added);
    ASSERT_EQ(ended.code, 0) << ended.err;
    tokens.push_back(ended.out.substr(0, ended.out.find('\n')));
  }
  start({file});
  const json asked = {{"task", "softmax"}, {"programs", {document(1)}}, {"wait_s", 30}};
  EXPECT_EQ(ask("POST", "/v1/judge", asked).status, 401);
  EXPECT_EQ(ask("POST", "/v1/judge", asked, tokens[0] + "x").status, 401);
  const http_answer done = ask("POST", "/v1/judge", asked, tokens[0]);
  ASSERT_EQ(done.status, 200) << done.body;
  const std::string target = "/v1/judge/" + json::parse(done.body)["id"].get<std::string>();
  EXPECT_EQ(ask("GET", target, nullptr, tokens[0]).status, 200);
  EXPECT_EQ(ask("GET", target, nullptr, tokens[1]).status, 404);
  EXPECT_EQ(ask("DELETE", target, nullptr, tokens[1]).status, 404);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(Serve, LimitsWhatClientsLeaveWaiting) {
  start({"node.compilers=0", "serve.client_programs=4"});
  json asked = {{"task", "softmax"}, {"programs", {document(1), document(2), document(3)}}};
  EXPECT_EQ(ask("POST", "/v1/judge", asked).status, 202);
  const http_answer refused = ask("POST", "/v1/judge", asked);
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.head, HasSubstr("Retry-After"));
}

TEST_F(Serve, DoesNotStartWhereStrangersCouldAskOrARunIs) {
  auto open_to_all = command({"serve.listen=0.0.0.0:0"});
  open_to_all.erase(open_to_all.begin());
  const auto refused = run_hone(open_to_all);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--set serve.listen=0.0.0.0:0"));
  EXPECT_THAT(refused.err, HasSubstr("serve.tokens"));
  start();
  auto second = command();
  second.erase(second.begin());
  EXPECT_THAT(run_hone(second).err, HasSubstr("another process runs in this directory"));
  const auto run =
      run_hone({"run", (folder_ / "serve.toml").string(), "--dir", (folder_ / "run").string()});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("policy.kind"));
}

}  // namespace
}  // namespace hone
