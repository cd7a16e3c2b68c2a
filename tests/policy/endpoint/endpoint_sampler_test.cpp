#include "policy/endpoint/endpoint_sampler.hpp"
#include "policy/endpoint/endpoint_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "policy/files.hpp"
#include "tests/support/fake_http_server.hpp"
#include "tests/support/refusal.hpp"

namespace hone {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::fake_http_server;
using steady = std::chrono::steady_clock;

constexpr const char* key = "sk-secret-0123456789";

std::string chat(const std::string& text, int tokens = 5) {
  return fake_http_server::reply(
      200, json{{"choices", {{{"message", {{"content", text}}}, {"finish_reason", "stop"}}}},
                {"usage", {{"prompt_tokens", tokens}, {"completion_tokens", tokens}}}}
               .dump());
}

class EndpointSampler : public testing::Test {
 protected:
  EndpointSampler() { setenv("HONE_TEST_KEY", key, 1); }
  ~EndpointSampler() override { unsetenv("HONE_TEST_KEY"); }

  // Options that do not wait for long.
  endpoint_options at(const std::string& url) const {
    endpoint_options o;
    o.url = url;
    o.model = "m";
    o.key = "HONE_TEST_KEY";
    o.timeout_s = 5;
    o.retries = 3;
    o.first_pause_s = 0.02;
    return o;
  }
  std::unique_ptr<completion_sampler> make(
      const std::map<std::string, endpoint_options>& endpoints) {
    generation_options generation;
    generation.sampling.temperature = 0.7;
    return make_endpoint_sampler(endpoints, generation, [this](const std::string& line) {
      const std::lock_guard hold(lock_);
      said_ += line + "\n";
    });
  }
  // Has one prompt answered. Returns the texts, or why there are none.
  std::vector<std::string> answers(completion_sampler& sampler, std::uint32_t samples) {
    sampler.submit({.ticket = 7, .text = "a prompt", .samples = samples});
    try {
      const auto end = steady::now() + 20s;
      while (steady::now() < end) {
        for (const auto& done : sampler.step()) {
          std::vector<std::string> texts;
          for (const auto& one : done.completions) texts.push_back(one.text);
          return texts;
        }
      }
      return {"no answer in time"};
    } catch (const policy_error& e) {
      return {e.what()};
    }
  }
  std::string said() {
    const std::lock_guard hold(lock_);
    return said_;
  }

  std::mutex lock_;
  std::string said_;
};

TEST_F(EndpointSampler, HasEverySampleWrittenByTheServer) {
  std::atomic<int> number = 0;
  std::string request;
  std::mutex lock;
  fake_http_server server([&](const std::string& asked) {
    const std::lock_guard hold(lock);
    request = asked;
    return chat("answer " + std::to_string(number++));
  });
  const auto sampler = make({{"a", at(server.url())}});
  sampler->load("", 3);
  EXPECT_EQ(sampler->free_slots(), 4U);
  EXPECT_THAT(answers(*sampler, 3),
              testing::UnorderedElementsAre("answer 0", "answer 1", "answer 2"));
  EXPECT_EQ(sampler->unfinished_samples(), 0U);
  EXPECT_EQ(sampler->tokens_generated(), 15U);
  EXPECT_EQ(sampler->version(), 3U);
  EXPECT_THAT(request, AllOf(HasSubstr("POST /v1/chat/completions"),
                             HasSubstr(std::string("Authorization: Bearer ") + key),
                             HasSubstr("a prompt"), HasSubstr("\"temperature\":0.7")));
}

TEST_F(EndpointSampler, AsksAsManyAtOnceAsItMay) {
  // The first five requests are answered once all of them are there.
  std::atomic<int> present = 0;
  fake_http_server server([&](const std::string&) {
    ++present;
    const auto end = steady::now() + 10s;
    while (present < 5 && steady::now() < end) std::this_thread::sleep_for(1ms);
    return chat("slow");
  });
  endpoint_options o = at(server.url());
  o.concurrency = 5;
  o.timeout_s = 20;
  const auto sampler = make({{"a", o}});
  EXPECT_EQ(answers(*sampler, 20).size(), 20U);
  EXPECT_EQ(server.max_at_once(), 5);
}

TEST_F(EndpointSampler, NoSampleIsLostToAServerThatTakesFewAtATime) {
  // Of twelve requests one is answered, and there are many more than ten tries for a sample.
  std::atomic<int> requests = 0;
  fake_http_server server([&](const std::string&) {
    return ++requests % 12 == 0 ? chat("x") : fake_http_server::reply(429, "");
  });
  endpoint_options o = at(server.url());
  o.concurrency = 8;
  o.retries = 100;
  o.first_pause_s = 0.001;
  const auto sampler = make({{"a", o}});
  EXPECT_THAT(answers(*sampler, 12), testing::Each(std::string("x")));
}

TEST_F(EndpointSampler, GreedyPromptsAreAskedForAtTemperatureZero) {
  std::string request;
  fake_http_server server([&](const std::string& asked) {
    request = asked;
    return chat("x");
  });
  const auto sampler = make({{"a", at(server.url())}});
  sampler->submit({.ticket = 1, .text = "p", .samples = 1, .is_greedy = true});
  while (sampler->step().empty())
    ;
  EXPECT_THAT(request, HasSubstr("\"temperature\":0"));
  EXPECT_THAT(request, Not(HasSubstr("\"temperature\":0.7")));
}

TEST_F(EndpointSampler, KeepsToALimitOfRequests) {
  fake_http_server server([](const std::string&) { return chat("x"); });
  endpoint_options o = at(server.url());
  o.requests_per_minute = 1200;  // one in 50 ms
  const auto sampler = make({{"a", o}});
  const auto begin = steady::now();
  EXPECT_EQ(answers(*sampler, 7).size(), 7U);
  EXPECT_GE(steady::now() - begin, 6 * 50ms);
}

TEST_F(EndpointSampler, WaitsAsLongAsAServerAsksWhateverRetriesIs) {
  for (const int retries : {3, 0}) {
    std::atomic<int> requests = 0;
    fake_http_server server([&](const std::string&) {
      return requests++ == 0 ? fake_http_server::reply(429, "{}", "Retry-After: 1\r\n") : chat("x");
    });
    endpoint_options o = at(server.url());
    o.concurrency = 1;
    o.retries = retries;
    const auto sampler = make({{"a", o}});
    const auto begin = steady::now();
    EXPECT_THAT(answers(*sampler, 1), testing::ElementsAre("x"));
    EXPECT_GE(steady::now() - begin, 1s);
  }
}

// Temporary faults of a server. Each is asked again, and the right answer counts.
TEST_F(EndpointSampler, TriesAgainAfterFailuresThatMayPass) {
  const std::string whole = chat("right");
  const std::vector<std::string> failures = {
      fake_http_server::reply(500, "out of memory"),
      fake_http_server::reply(503, ""),
      fake_http_server::reply(200, "<html>busy</html>"),
      fake_http_server::reply(200, "{\"choices\":[{\"text\":\"\xff\"}]}"),
      whole.substr(0, whole.size() - 10),  // dies in mid-answer
      "HTTP/1.1 200 X\r\nContent-Le",
      "no HTTP at all\r\n\r\n",
      "",
      fake_http_server::reply(200, std::string(9U << 20U, ' ')),
  };
  for (const std::string& failure : failures) {
    std::atomic<int> requests = 0;
    fake_http_server server([&](const std::string&) { return requests++ == 0 ? failure : whole; });
    const auto sampler = make({{"a", at(server.url())}});
    EXPECT_THAT(answers(*sampler, 1), testing::ElementsAre("right")) << failure.substr(0, 60);
  }
  EXPECT_THAT(said(), HasSubstr("out of memory")) << "the reason is logged at the first failure";
  EXPECT_THAT(said(), HasSubstr("; the next request follows after 1 s\n"));
}

TEST_F(EndpointSampler, LogsAReasonOnceThatRepeats) {
  std::atomic<int> requests = 0;
  fake_http_server server([&](const std::string&) {
    return requests++ < 3 ? fake_http_server::reply(503, "busy") : chat("x");
  });
  endpoint_options o = at(server.url());
  o.retries = 5;
  const auto sampler = make({{"a", o}});
  EXPECT_THAT(answers(*sampler, 1), testing::ElementsAre("x"));
  const std::string lines = said();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
}

TEST_F(EndpointSampler, GivesUpAServerThatDoesNotAnswer) {
  fake_http_server server([](const std::string&) {
    std::this_thread::sleep_for(500ms);
    return chat("too late");
  });
  endpoint_options o = at(server.url());
  o.timeout_s = 0.1;
  o.retries = 2;
  const auto sampler = make({{"slow", o}});
  EXPECT_THAT(
      answers(*sampler, 1),
      testing::ElementsAre(AllOf(HasSubstr("no endpoint is left"), HasSubstr("slow does not"),
                                 HasSubstr("Timeout"),
                                 HasSubstr("3 times in a row; endpoint.slow.retries is 2"))));
  EXPECT_THAT(said(), HasSubstr("it is asked no more"));
}

TEST_F(EndpointSampler, GivesUpAtOnceWhatIsRefusedForGood) {
  fake_http_server server([](const std::string&) {
    return fake_http_server::reply(
        401, json{{"error",
                   {{"message", std::string("Incorrect API key: ") + key + ' ' +
                                    std::string(260, '.') + key}}}}
                 .dump());
  });
  const auto sampler = make({{"cloud", at(server.url())}});
  const auto refused = answers(*sampler, 1);
  EXPECT_THAT(refused.at(0),
              AllOf(HasSubstr("cloud answers with status 401: Incorrect API key: ***"),
                    Not(HasSubstr(key))));
  EXPECT_THAT(said(), Not(HasSubstr(key)));
  EXPECT_LE(server.requests(), 4);
}

TEST_F(EndpointSampler, ASampleThatAServerDoesNotTakeIsLostAlone) {
  std::atomic<int> requests = 0;
  fake_http_server server([&](const std::string&) {
    return requests++ == 0 ? fake_http_server::reply(400, R"({"error":"the prompt is too long"})")
                           : chat("x");
  });
  const auto sampler = make({{"a", at(server.url())}});
  EXPECT_THAT(answers(*sampler, 4), testing::UnorderedElementsAre("", "x", "x", "x"));
  EXPECT_THAT(said(), HasSubstr("the prompt is too long; this sample stays empty"));
}

TEST_F(EndpointSampler, ASampleThatAlwaysFailsIsLostWithoutTheOthers) {
  // Of the two prompts the server never answers the first.
  fake_http_server server([](const std::string& asked) {
    return asked.find("poison") != std::string::npos ? fake_http_server::reply(500, "") : chat("x");
  });
  endpoint_options o = at(server.url());
  o.first_pause_s = 0.001;
  o.retries = 100;
  const auto sampler = make({{"a", o}});
  sampler->submit({.ticket = 1, .text = "poison", .samples = 1});
  sampler->submit({.ticket = 2, .text = "honest", .samples = 3});
  std::size_t finished = 0;
  const auto end = steady::now() + 20s;
  while (finished < 2 && steady::now() < end) finished += sampler->step().size();
  EXPECT_EQ(finished, 2U);
  EXPECT_THAT(said(), HasSubstr("this sample stays empty"));
}

TEST_F(EndpointSampler, DoesNotFollowRedirectionsWithItsKey) {
  fake_http_server other([](const std::string&) { return chat("stolen"); });
  fake_http_server server([&](const std::string&) {
    return fake_http_server::reply(307, "", "Location: " + other.url() + "/chat/completions\r\n");
  });
  const auto sampler = make({{"a", at(server.url())}});
  EXPECT_THAT(answers(*sampler, 1).at(0), HasSubstr("status 307"));
  EXPECT_EQ(other.requests(), 0);
}

TEST_F(EndpointSampler, OthersTakeTheWorkOfAServerThatDies) {
  fake_http_server dying([](const std::string&) { return chat("a"); });
  fake_http_server living([](const std::string&) { return chat("b"); });
  endpoint_options o = at(dying.url());
  o.retries = 1;
  const auto sampler = make({{"a", o}, {"b", at(living.url())}});
  dying.stop();
  const auto texts = answers(*sampler, 40);
  ASSERT_EQ(texts.size(), 40U);
  EXPECT_THAT(texts, testing::Each(std::string("b")));
}

TEST_F(EndpointSampler, EndsWithItsBudget) {
  fake_http_server server([](const std::string&) { return chat("x", 10); });
  endpoint_options o = at(server.url());
  o.concurrency = 1;
  o.token_budget = 50;  // 20 tokens an answer
  const auto sampler = make({{"a", o}});
  EXPECT_THAT(answers(*sampler, 9).at(0), HasSubstr("has spent its budget of 50 tokens"));
  EXPECT_EQ(server.requests(), 3);
}

TEST_F(EndpointSampler, ItsBudgetIsChargedForAnswersThatCannotBeRead) {
  fake_http_server server([](const std::string&) {
    return fake_http_server::reply(
        200, R"({"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":10}})");
  });
  endpoint_options o = at(server.url());
  o.concurrency = 1;
  o.retries = 100;
  o.first_pause_s = 0.001;
  o.token_budget = 50;
  o.prompt_price = 1e6;
  o.answer_price = 2e6;
  const auto sampler = make({{"a", o}});
  EXPECT_THAT(answers(*sampler, 9).at(0), HasSubstr("has spent its budget of 50 tokens"));
  EXPECT_EQ(server.requests(), 3);
  const auto used = sampler->usage().at("a");
  EXPECT_EQ(used.requests, 3);
  EXPECT_EQ(used.failures, 3);
  EXPECT_EQ(used.prompt_tokens, 30);
  EXPECT_EQ(used.answer_tokens, 30);
  EXPECT_EQ(used.cost, 90);
}

TEST_F(EndpointSampler, FailuresOfRequestsThatWereUnderWayCostOnePause) {
  // The first four requests are under way at once, and fail one after another, each after the pause
  // for the one before has ended.
  std::atomic<int> present = 0;
  fake_http_server server([&](const std::string&) {
    const int number = ++present;
    if (number > 4) return chat("x");
    const auto end = steady::now() + 10s;
    while (present < 4 && steady::now() < end) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(number * 60ms);
    return fake_http_server::reply(500, "");
  });
  endpoint_options o = at(server.url());
  o.first_pause_s = 0.3;
  o.retries = 1;
  const auto sampler = make({{"a", o}});
  EXPECT_THAT(answers(*sampler, 4), testing::Each(std::string("x")));
}

TEST_F(EndpointSampler, ItsServerIsCheckedWithOneRequest) {
  fake_http_server server([](const std::string& request) {
    return request.find("Bearer right") != std::string::npos
               ? chat("hello")
               : fake_http_server::reply(401, R"({"error":"the key is wrong"})");
  });
  EXPECT_THAT(check_endpoint("a", at(server.url()), "right"), HasSubstr("endpoint a: answers in"));
  EXPECT_EQ(server.requests(), 1);
  try {
    check_endpoint("a", at(server.url()), "other");
    ADD_FAILURE() << "no exception";
  } catch (const policy_error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("endpoint.a: " + server.url()),
                                HasSubstr("status 401: the key is wrong")));
  }
  server.stop();
  EXPECT_THROW(check_endpoint("a", at(server.url()), "right"), policy_error);
}

TEST_F(EndpointSampler, ACheckTriesAgainAndReportsAPauseThatAServerAsksFor) {
  std::atomic<int> failures = 2;
  std::string head = "Retry-After: 0\r\n";
  fake_http_server server([&](const std::string&) {
    return failures-- > 0 ? fake_http_server::reply(429, R"({"error":"busy"})", head)
                          : chat("hello");
  });
  EXPECT_THAT(check_endpoint("a", at(server.url()), ""), HasSubstr("answers in"));
  EXPECT_EQ(server.requests(), 3);
  failures = 100;
  head = "Retry-After: 600\r\n";
  EXPECT_THAT(check_endpoint("a", at(server.url()), ""),
              AllOf(HasSubstr("status 429: busy"), HasSubstr("asks for a pause of 600 s")));
  EXPECT_EQ(server.requests(), 4) << "it does not wait for so long";
}

TEST_F(EndpointSampler, AnswersUnderWayCountWhenTheBudgetIsSpent) {
  // All four requests are there before the first is answered, which spends the budget.
  std::atomic<int> present = 0;
  fake_http_server server([&](const std::string&) {
    const int number = ++present;
    const auto end = steady::now() + 10s;
    while (present < 4 && steady::now() < end) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(number * 50ms);
    return chat("x", 10);
  });
  endpoint_options o = at(server.url());
  o.token_budget = 1;
  const auto sampler = make({{"a", o}});
  EXPECT_EQ(answers(*sampler, 4).size(), 4U);
  EXPECT_THAT(answers(*sampler, 1).at(0), HasSubstr("no endpoint is left"));
}

TEST_F(EndpointSampler, UsesNoProxyToThisMachine) {
  fake_http_server proxy([](const std::string&) { return chat("overheard"); });
  fake_http_server server([](const std::string&) { return chat("x"); });
  setenv("http_proxy", proxy.url().c_str(), 1);
  const auto sampler = make({{"a", at(server.url())}});
  EXPECT_THAT(answers(*sampler, 1), testing::ElementsAre("x"));
  unsetenv("http_proxy");
  EXPECT_EQ(proxy.requests(), 0);
}

TEST_F(EndpointSampler, EndsSoonWhileServersAreSlow) {
  std::atomic<bool> ended = false;
  fake_http_server server([&](const std::string&) {
    for (int i = 0; i < 300 && !ended; ++i) std::this_thread::sleep_for(100ms);
    return chat("x");
  });
  auto sampler = make({{"a", at(server.url())}});
  sampler->submit({.ticket = 1, .text = "p", .samples = 4});
  sampler->step();
  const auto begin = steady::now();
  sampler.reset();
  EXPECT_LT(steady::now() - begin, 20s) << "the server would take 30 s";
  ended = true;
}

TEST_F(EndpointSampler, RefusesOptionsThatCannotWork) {
  const auto refusal = [&](const std::function<void(endpoint_options&)>& change) {
    endpoint_options o = at("https://example.org/v1");
    change(o);
    return testing_support::refusal_of<policy_error>([&] { read_endpoint_keys({{"cloud", o}}); });
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_THAT(refusal([](auto& o) { o.url = "ftp://example.org"; }),
              HasSubstr("endpoint.cloud.url"));
  EXPECT_THAT(refusal([](auto& o) { o.model = ""; }), HasSubstr("endpoint.cloud.model"));
  EXPECT_THAT(refusal([](auto& o) { o.api = "edits"; }), HasSubstr("expected chat or completions"));
  EXPECT_THAT(refusal([](auto& o) { o.key = "HONE_TEST_NO_KEY"; }), HasSubstr("is not set"));
  EXPECT_THAT(refusal([](auto& o) { o.extra = "{"; }), HasSubstr("endpoint.cloud.extra"));
  EXPECT_THAT(refusal([](auto& o) { o.url = "http://example.org/v1"; }), HasSubstr("use https"));
  for (const char* url : {"http://127.example.com/v1", "http://localhost:x@example.org/v1",
                          "http://127.0.0.1@example.org/v1", "http://10.0.0.1/v1"})
    EXPECT_THAT(refusal([&](auto& o) { o.url = url; }), HasSubstr("endpoint.cloud.")) << url;
  for (const char* url :
       {"http://localhost:8000/v1", "http://127.0.0.2/v1", "http://[::1]:8000/v1"})
    EXPECT_EQ(refusal([&](auto& o) { o.url = url; }), "") << url;
  EXPECT_EQ(refusal([](auto& o) {
              o.url = "http://example.org/v1";
              o.key = "";
            }),
            "");
}

}  // namespace
}  // namespace hone
