#include "policy/endpoint/completion_protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "policy/files.hpp"

namespace hone {
namespace {

using nlohmann::json;
using testing::HasSubstr;

endpoint_options options(const std::string& api = "chat") {
  endpoint_options o;
  o.url = "http://127.0.0.1:1/v1/";
  o.model = "m";
  o.api = api;
  return o;
}

TEST(CompletionRequest, IsAChatWithOneMessage) {
  EXPECT_EQ(request_url(options()), "http://127.0.0.1:1/v1/chat/completions");
  const json body = json::parse(request_body(options(), {"a \"prompt\"\n", 64, 0.5, 0.9}));
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["messages"].size(), 1U);
  EXPECT_EQ(body["messages"][0]["role"], "user");
  EXPECT_EQ(body["messages"][0]["content"], "a \"prompt\"\n");
  EXPECT_EQ(body["max_tokens"], 64);
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["top_p"], 0.9);
}

TEST(CompletionRequest, MayContinuePlainText) {
  EXPECT_EQ(request_url(options("completions")), "http://127.0.0.1:1/v1/completions");
  const json body = json::parse(request_body(options("completions"), {"text", 64, 1, 1}));
  EXPECT_EQ(body["prompt"], "text");
  EXPECT_FALSE(body.contains("messages"));
}

TEST(CompletionRequest, TakesMoreKeysAndLeavesOthersOut) {
  endpoint_options o = options();
  o.extra = R"({"max_completion_tokens": 99, "max_tokens": null, "reasoning": {"effort": "low"}})";
  const json body = json::parse(request_body(o, {"text", 64, 1, 1}));
  EXPECT_EQ(body["max_completion_tokens"], 99);
  EXPECT_FALSE(body.contains("max_tokens"));
  EXPECT_EQ(body["reasoning"]["effort"], "low");
  o.extra = "[1]";
  EXPECT_THROW(request_body(o, {}), policy_error);
  o.extra = "{";
  EXPECT_THROW(request_body(o, {}), policy_error);
}

TEST(CompletionRequest, OfBytesThatAreNotUtf8IsStillJson) {
  EXPECT_NO_THROW(json::parse(request_body(options(), {"a\xff", 64, 1, 1})));
}

completion_answer answer_of(const std::string& body) {
  return std::get<completion_answer>(read_answer(200, body, 400));
}

TEST(CompletionAnswer, IsReadFromChatsAndCompletions) {
  const auto chat = answer_of(
      R"({"choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],
          "usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13}})");
  EXPECT_EQ(chat.text, "hello");
  EXPECT_FALSE(chat.truncated);
  EXPECT_EQ(chat.used.answer, 3);
  EXPECT_EQ(chat.used.prompt, 10);
  const auto plain = answer_of(R"({"choices":[{"text":"hello","finish_reason":"length"}]})");
  EXPECT_EQ(plain.text, "hello");
  EXPECT_TRUE(plain.truncated);
  EXPECT_EQ(plain.used.prompt, 100) << "estimated from 400 bytes";
  EXPECT_EQ(plain.used.answer, 1);
}

TEST(CompletionAnswer, MayConsistOfPartsOrOfNothing) {
  EXPECT_EQ(answer_of(R"({"choices":[{"message":{"content":[{"type":"reasoning","text":"hm"},
      {"type":"text","text":"a"},{"type":"text","text":"b"}]}}]})")
                .text,
            "ab");
  EXPECT_EQ(answer_of(R"({"choices":[{"message":{"content":null}}]})").text, "");
}

TEST(CompletionAnswer, TakesAnAbsentKeyForNull) {
  for (const char* body :
       {R"({"choices":[{"message":{}}]})",
        R"({"choices":[{"message":{"role":"assistant"},"finish_reason":null}],"usage":null})",
        R"({"choices":[{"message":{"content":[]},"finish_reason":"stop"}],
            "usage":{"prompt_tokens":null}})",
        R"({"choices":[{"message":null,"text":""}]})"})
    EXPECT_EQ(answer_of(body).text, "") << body;
}

TEST(CompletionAnswer, IsOneOnlyIfItStoppedOrReachedTheLimit) {
  for (const char* reason : {"\"content_filter\"", "\"tool_calls\"", "\"error\"", "\"\"", "7"}) {
    const auto failure = std::get<completion_failure>(
        read_answer(200,
                    std::string(R"({"choices":[{"text":"a","finish_reason":)") + reason +
                        R"(}],"usage":{"prompt_tokens":10,"completion_tokens":3}})",
                    400));
    EXPECT_EQ(failure.kind, failure_kind::passing) << reason;
    EXPECT_THAT(failure.why, HasSubstr("finish_reason"));
    EXPECT_THAT(failure.why, HasSubstr(reason));
    EXPECT_EQ(failure.used.prompt + failure.used.answer, 13) << "the server charges for it";
  }
}

TEST(CompletionAnswer, ThatCannotBeReadIsChargedFor) {
  const auto failure = std::get<completion_failure>(read_answer(200, std::string(80, 'x'), 400));
  EXPECT_EQ(failure.used.prompt, 100);
  EXPECT_EQ(failure.used.answer, 20);
  const auto refused = std::get<completion_failure>(read_answer(500, "busy", 400));
  EXPECT_EQ(refused.used.prompt + refused.used.answer, 0);
}

completion_failure failure_of(long status, const std::string& body) {
  return std::get<completion_failure>(read_answer(status, body, 1));
}

TEST(CompletionAnswer, ThatIsNoneIsAFailureWhateverItIs) {
  for (const char* body :
       {"", "hello", "[]", "{}", "null", R"({"choices":[]})", R"({"choices":{}})",
        R"({"choices":[{"message":"hello"}]})", R"({"choices":[{"message":{"content":7}}]})",
        R"({"choices":[{"text":null}]})", R"({"choices":[{"message":{"content":[7]}}]})",
        "{\"choices\":[{\"text\":\"\xff\"}]}", R"({"choices":[{"text":"a"}],"usage":)"}) {
    const auto failure = failure_of(200, body);
    EXPECT_EQ(failure.kind, failure_kind::passing) << body;
    EXPECT_THAT(failure.why, HasSubstr("not a completion"));
  }
}

TEST(CompletionAnswer, CountsTokensUnderAllOfTheirNames) {
  const auto used = [](const std::string& usage) {
    return answer_of(R"({"choices":[{"text":"abcd"}],"usage":)" + usage + "}").used;
  };
  EXPECT_EQ(used(R"({"prompt_tokens":7.0,"completion_tokens":5000.0})").answer, 5000);
  EXPECT_EQ(used(R"({"input_tokens":4000,"output_tokens":1000})").prompt, 4000);
  EXPECT_EQ(used(R"({"input_tokens":4000,"output_tokens":1000})").answer, 1000);
  EXPECT_EQ(used(R"({"prompt_tokens":100,"total_tokens":5000})").answer, 4900);
  EXPECT_EQ(used(R"({"completion_tokens":1e300,"prompt_tokens":-4})").answer, 1);
}

TEST(CompletionAnswer, NestedDeeplyIsNoCompletion) {
  for (const char* key : {"finish_reason", "text"}) {
    const std::string body = std::string(R"({"choices":[{")") + key + R"(":)" +
                             std::string(200000, '[') + std::string(200000, ']') + "}]}";
    EXPECT_THAT(failure_of(200, body).why, HasSubstr("not a completion"));
  }
}

TEST(CompletionAnswer, TellsWhatPassesFromWhatDoesNot) {
  for (const long status : {429L, 502L, 503L, 504L, 529L})
    EXPECT_EQ(failure_of(status, "").kind, failure_kind::away) << status;
  for (const long status : {409L, 425L, 500L})
    EXPECT_EQ(failure_of(status, "").kind, failure_kind::passing) << status;
  for (const long status : {400L, 413L, 422L})
    EXPECT_EQ(failure_of(status, "").kind, failure_kind::of_request) << status;
  for (const long status : {301L, 307L, 401L, 403L, 404L})
    EXPECT_EQ(failure_of(status, "").kind, failure_kind::lasting) << status;
  EXPECT_THAT(failure_of(401, R"({"error":{"message":"wrong key"}})").why,
              HasSubstr("status 401: wrong key"));
  EXPECT_THAT(failure_of(400, R"({"error":"no such model"})").why, HasSubstr("no such model"));
}

TEST(CompletionAnswer, IsShownShortAndWithoutControlCharacters) {
  const auto failure = failure_of(500, "\x1b[31m" + std::string(100000, 'x'));
  EXPECT_LT(failure.why.size(), 400U);
  EXPECT_EQ(failure.why.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace hone
