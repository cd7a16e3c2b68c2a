#include "tasks/compiling/compiled_references.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using namespace testing_support;

// A compiler that writes the source of a reference, instead of code, and refuses one task.
constexpr const char* copies = R"py(
import json, os, sys
work = json.load(sys.stdin)
for number, job in reversed(list(enumerate(work["jobs"]))):
    error = "it is refused" if "refused" in job["reference"] else ""
    if not error:
        os.makedirs(os.path.dirname(job["file"]), exist_ok=True)
        open(job["file"], "w").write(json.dumps(job["tensors"]))
    print(json.dumps({"number": number, "seconds": 1.5, "error": error}), flush=True)
)py";

task a_task(const std::string& name, const std::string& how = "x * 2.0") {
  return parse_task(
      "name = \"" + name +
          "\"\nreference = '''\ndef forward(x: Tensor, w: Tensor) "
          "-> Tensor:\n    return (" +
          how +
          ") * w\n'''\n[[input]]\nname = \"x\"\nshape "
          "= [\"N\", 3]\n[[parameter]]\nname = \"w\"\nshape = [3]\n[[case]]\nsizes = { N "
          "= 4 }\ntimed = true\n[[case]]\nsizes = { N = 8 }\ntimed = true\non = "
          "[\"cpu\"]\n[[case]]\nsizes = { N = 5 }\n",
      name + ".toml");
}

struct compiling {
  explicit compiling(const char* compiler) { write_file(folder / "compiler.py", compiler); }
  std::size_t run(const std::vector<task>& tasks) {
    told.clear();
    return compile_references(
        tasks,
        {.python = "/usr/bin/python3", .program = folder / "compiler.py", .folder = folder / "out"},
        [this](const task& t, const task_case& at, double seconds, const std::string& error) {
          EXPECT_EQ(seconds, 1.5);
          told.push_back(t.name + " " + print_sizes(at) + ":" + error);
        });
  }
  temporary_folder folder;
  std::vector<std::string> told;
};

TEST(CompiledReferences, AreFilesForTheTimedCasesOnGpus) {
  compiling c(copies);
  const task one = a_task("one");
  EXPECT_EQ(c.run({one, a_task("two", "x + 1.0")}), 0U);
  EXPECT_THAT(c.told, testing::ElementsAre("two N=4:", "one N=4:"));
  const auto file = compiled_reference(c.folder / "out", one, one.cases.at(0));
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(read_file(file), R"([[[4, 3], "float32"], [[3], "float32"]])");
  EXPECT_FALSE(std::filesystem::exists(compiled_reference(c.folder / "out", one, one.cases[1])));
}

TEST(CompiledReferences, AreNotCompiledTwiceUnlessTheTaskHasChanged) {
  compiling c(copies);
  c.run({a_task("one")});
  c.run({a_task("one")});
  EXPECT_THAT(c.told, testing::IsEmpty());
  c.run({a_task("one", "x * 4.0")});
  EXPECT_EQ(c.told.size(), 1U);
}

TEST(CompiledReferences, AReferenceThatIsRefusedDoesNotKeepOthersFromBeingCompiled) {
  compiling c(copies);
  EXPECT_EQ(c.run({a_task("one"), a_task("two", "x.refused()")}), 1U);
  EXPECT_THAT(c.told, testing::ElementsAre("two N=4:it is refused", "one N=4:"));
}

TEST(CompiledReferences, ACompilerThatEndsEarlyIsAnError) {
  compiling c("import sys\nsys.stdin.read()\n");
  EXPECT_THROW(c.run({a_task("one")}), std::runtime_error);
}

}  // namespace
}  // namespace hone
