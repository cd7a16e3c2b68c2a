#include "launch/serve/judge_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/serve/admissions.hpp"
#include "launch/serve/kernelgym.hpp"
#include "messages/names.hpp"

namespace hone {
namespace {

using testing::HasSubstr;

judge_request parsed(const std::string& text) { return parse_judge_request(parse_body(text)); }

std::string refusal_of(const std::string& text) {
  try {
    (void)parsed(text);
  } catch (const bad_request& refused) {
    EXPECT_EQ(refused.status(), 400U) << text;
    return refused.what();
  }
  return "";
}

TEST(JudgeRequest, HasDefaultsForAllButTaskAndPrograms) {
  const judge_request request = parsed(R"({"task": "softmax", "programs": ["a", {"text": "b"}]})");
  EXPECT_EQ(request.task.named, "softmax");
  ASSERT_EQ(request.programs.size(), 2U);
  EXPECT_EQ(request.programs[0].text, "a");
  EXPECT_EQ(request.programs[1].text, "b");
  EXPECT_TRUE(request.wants_score);
  EXPECT_EQ(request.priority, 1);
  EXPECT_EQ(request.deadline_s, 0);
}

TEST(JudgeRequest, ReadsEveryKeyAndTakesNullForAbsent) {
  const judge_request request = parsed(
      R"({"task": {"module": "import torch", "precision": "relaxed", "dtype": "bfloat16"},
          "programs": ["a"], "want": "verdict", "priority": "high", "deadline_s": 1.5, "id": "x",
          "wait_s": 2, "details": true, "device_type": null})");
  EXPECT_EQ(request.task.module, "import torch");
  EXPECT_EQ(request.task.precision, "relaxed");
  EXPECT_EQ(request.task.dtype, "bfloat16");
  EXPECT_FALSE(request.wants_score);
  EXPECT_EQ(request.priority, 2);
  EXPECT_EQ(request.deadline_s, 1.5);
  EXPECT_EQ(request.id, "x");
  EXPECT_TRUE(request.has_details);
  EXPECT_EQ(request.device_type, "");
}

TEST(JudgeRequest, IsRefusedWithTheKey) {
  const std::string good = R"("task": "t", "programs": ["a"])";
  EXPECT_THAT(refusal_of("{"), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("object"));
  EXPECT_THAT(refusal_of("{\"task\": \"\xff\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal_of(R"({"programs": ["a"]})"), HasSubstr("'task' is missing"));
  EXPECT_THAT(refusal_of(R"({"task": "t"})"), HasSubstr("'programs'"));
  EXPECT_THAT(refusal_of(R"({"task": {}, "programs": ["a"]})"), HasSubstr("'task'"));
  EXPECT_THAT(refusal_of(R"({"task": {"name": "a", "toml": "b"}, "programs": ["a"]})"),
              HasSubstr("'task'"));
  EXPECT_THAT(refusal_of("{" + good + R"(, "tolerance": 1})"), HasSubstr("'tolerance'"));
  EXPECT_THAT(refusal_of("{" + good + R"(, "want": "all"})"), HasSubstr("score, verdict"));
  EXPECT_THAT(refusal_of("{" + good + R"(, "wait_s": 61})"), HasSubstr("'wait_s'"));
  EXPECT_THAT(refusal_of("{" + good + R"(, "wait_s": -1})"), HasSubstr("'wait_s'"));
  EXPECT_THAT(refusal_of("{" + good + R"(, "id": ""})"), HasSubstr("'id'"));
  EXPECT_THAT(refusal_of(R"({"task": "t", "programs": [1]})"), HasSubstr("program"));
  EXPECT_THAT(refusal_of(R"({"task": "t", "programs": [{"text": "a", "kind": "c"}]})"),
              HasSubstr("'kind'"));
  EXPECT_THAT(refusal_of(std::string(100000, '[')), HasSubstr("JSON"));
  std::string many = R"({"task": "t", "programs": ["a")";
  for (std::size_t i = 0; i < max_programs; ++i) many += R"(, "a")";
  EXPECT_THAT(refusal_of(many + "]}"), HasSubstr("256"));
  const std::string large(300000, 'a');
  EXPECT_THAT(refusal_of(R"({"task": "t", "programs": [")" + large + "\"]}"), HasSubstr("bytes"));
}

TEST(JudgeRequest, ItsGroupHasOneVariantPerProgramAndAnIdOfTheClients) {
  judge_request request = parsed(R"({"task": "t", "programs": ["a", "b", "a"], "id": "mine"})");
  task t;
  t.id = {1, 2};
  const group_record group = make_group(request, "me", t, "cpu");
  EXPECT_EQ(group->getRollouts().size(), 3U);
  EXPECT_EQ(group->getVariants().size(), 2U);
  EXPECT_EQ(group_id(group->getId()), group_id(make_group(request, "me", t, "cpu")->getId()));
  EXPECT_NE(group_id(group->getId()), group_id(make_group(request, "you", t, "cpu")->getId()));
  request.id.clear();
  EXPECT_NE(group_id(make_group(request, "me", t, "cpu")->getId()),
            group_id(make_group(request, "me", t, "cpu")->getId()));
}

TEST(KernelGym, ARequestIsAModuleAndAProgramInPython) {
  const judge_request request = parse_evaluation(nlohmann::json::parse(
      R"({"task_id": "t1", "reference_code": "class Net: pass", "kernel_code": "class NetNew: pass",
          "entry_point": "Net", "priority": "high", "num_perf_trials": 100, "uuid": null})"));
  EXPECT_EQ(request.id, "t1");
  EXPECT_THAT(request.task.module, HasSubstr("Model = Net"));
  ASSERT_EQ(request.programs.size(), 1U);
  EXPECT_TRUE(request.programs[0].is_python);
  EXPECT_THAT(request.programs[0].text, HasSubstr("ModelNew = NetNew"));
  EXPECT_EQ(request.priority, 2);
  EXPECT_THROW(parse_evaluation(nlohmann::json::parse(R"({"task_id": "t1"})")), bad_request);
  EXPECT_THROW(parse_evaluation(nlohmann::json::parse(R"({"task_id": 3})")), bad_request);
  EXPECT_THROW(parse_evaluation(nlohmann::json::parse("[]")), bad_request);
}

TEST(KernelGym, AResultHasItsNamesOfOutcomes) {
  const auto answered = [](Outcome outcome, const std::string& kind = "") {
    record_builder<schema::Judgement> known;
    known->initGroupId();
    known->initTaskId();
    known->setState(schema::Judgement::State::DONE);
    auto e = known->initResults(1)[0];
    e.initVariantId();
    e.initTaskId();
    e.initMeasurementId();
    e.setDeviceType("cpu");
    e.setOutcome(outcome);
    e.setKind(kind);
    return nlohmann::json::parse(evaluation_result(known.finish(), "t1").body);
  };
  EXPECT_EQ(answered(Outcome::OK)["status"], "completed");
  EXPECT_EQ(answered(Outcome::OK)["correctness"], true);
  EXPECT_EQ(answered(Outcome::OK)["error_code"], nullptr);
  EXPECT_EQ(answered(Outcome::COMPILE_ERROR)["compiled"], false);
  EXPECT_EQ(answered(Outcome::WRONG_RESULT)["compiled"], true);
  EXPECT_EQ(answered(Outcome::WRONG_RESULT)["error_code"], "CORRECTNESS_ERROR");
  EXPECT_EQ(answered(Outcome::CHEATING, "late_work")["decoy_kernel"], true);
  EXPECT_EQ(answered(Outcome::TIMEOUT)["status"], "timeout");
  EXPECT_EQ(answered(Outcome::UNSTABLE)["status"], "failed");
  EXPECT_EQ(answered(Outcome::UNPARSABLE, "unsupported")["status"], "failed");
}

TEST(Admissions, LimitWhatWaitsOfAllAndOfEach) {
  admissions admitted({.max_programs = 10, .client_programs = 6, .client_rate = 0});
  admitted.admit("a", 6);
  EXPECT_THROW(admitted.admit("a", 1), bad_request);
  admitted.admit("b", 4);
  EXPECT_THROW(admitted.admit("c", 1), bad_request);
  admitted.release("a", 6);
  admitted.admit("c", 6);
  EXPECT_EQ(admitted.waiting(), 10U);
}

TEST(Admissions, LimitTheProgramsPerMinute) {
  admissions admitted({.max_programs = 1000, .client_programs = 1000, .client_rate = 20});
  admitted.admit("a", 20);
  admitted.release("a", 20);
  EXPECT_THROW(admitted.admit("a", 15), bad_request);
  admitted.admit("b", 20);
}

}  // namespace
}  // namespace hone
