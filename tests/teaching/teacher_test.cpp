#include "tasks/teaching/teacher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing_support::temporary_folder;

// A program in the teacher's place. It says how often it was started, hangs for a task of the name
// `hangs`, and ends for one of the name `ends`.
constexpr const char* program = R"(
import json, os, sys, time
place = os.path.dirname(os.path.abspath(__file__))
with open(place + "/starts", "a") as starts:
    starts.write("x")
for line in sys.stdin:
    name = json.loads(line)["task"]["name"]
    if os.path.exists(place + "/broken") or name == "ends":
        sys.exit(1)
    if name == "hangs":
        time.sleep(60)
    print(json.dumps({"documents": [name], "unfit": ""}), flush=True)
)";

class FailingTeacher : public testing::Test {
 protected:
  FailingTeacher() { std::ofstream(folder_ / "teach.py") << program; }
  static task task_named(const std::string& name) {
    task t = load_task(std::string(HONE_SOURCE_DIR) + "/configs/tasks/softmax.toml");
    t.name = name;
    t.id.low = std::hash<std::string>()(name);
    return t;
  }
  std::uintmax_t starts() const { return std::filesystem::file_size(folder_ / "starts"); }

  temporary_folder folder_;
  teacher teacher_{{.python = "/usr/bin/python3",
                    .program = folder_ / "teach.py",
                    .answer_limit = std::chrono::seconds(1)}};
};

TEST_F(FailingTeacher, SkipsATaskThatItHangsFor) {
  const auto hanging = teacher_.write(task_named("hangs"), "cpu", 0, 1);
  EXPECT_THAT(hanging.unfit, HasSubstr("no answer within 1 s"));
  ASSERT_EQ(hanging.documents.size(), 1U);
  EXPECT_THAT(hanging.documents[0], HasSubstr("def forward")) << "the reference as it is";
  EXPECT_EQ(teacher_.write(task_named("works"), "cpu", 0, 1).documents[0], "works");
  EXPECT_EQ(starts(), 2U);
  EXPECT_THAT(teacher_.write(task_named("hangs"), "cpu", 1, 1).unfit, HasSubstr("no answer"));
  EXPECT_EQ(starts(), 2U) << "it is not asked again";
}

TEST_F(FailingTeacher, SkipsATaskThatEndsItTwice) {
  EXPECT_THAT(teacher_.write(task_named("ends"), "cpu", 0, 1).unfit, HasSubstr("ended"));
  EXPECT_EQ(starts(), 3U) << "twice for the task, and once for the smallest";
}

TEST_F(FailingTeacher, RefusesIfItCannotWriteForAnyTask) {
  std::ofstream(folder_ / "broken") << "yes";
  EXPECT_THROW(teacher_.write(task_named("works"), "cpu", 0, 1), std::runtime_error);
}

}  // namespace
}  // namespace hone
