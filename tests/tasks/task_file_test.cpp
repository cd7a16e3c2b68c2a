#include "tasks/task_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/safetensors.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/safetensors_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace hone {
namespace {

using testing::HasSubstr;
using testing_support::temporary_folder;
using testing_support::write_file;

const std::string diag = R"toml(name = "diag_matmul"
summary = "C = diag(A) B"
reference = '''
def forward(A: Tensor, B: Tensor, bias: Tensor) -> Tensor:
    return torch.matmul(torch.diag(A), B) + bias
'''
[tolerance]
float32 = { rtol = 1e-3, atol = 1e-5 }
[[input]]
name = "A"
shape = ["N"]
[[input]]
name = "B"
shape = ["N", "M"]
init = { of = "uniform(-1,1)", expr = "torch.triu(x)" }
[[parameter]]
name = "bias"
shape = ["M"]
[[case]]
sizes = { N = 512, M = 256 }
timed = true
on = ["cpu"]
[[case]]
sizes = { N = 63, M = 257 }
)toml";

std::string task_error(const std::string& text, std::vector<data_file> files = {}) {
  return testing_support::refusal_of<format_error>(
      [&] { parse_task(text, "t.toml", std::move(files)); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(TaskFile, ReadsEveryPart) {
  const task t = parse_task(diag, "t.toml");
  EXPECT_EQ(t.name, "diag_matmul");
  EXPECT_EQ(t.summary, "C = diag(A) B");
  EXPECT_FALSE(t.relaxed);
  EXPECT_EQ(t.distributions.size(), 7U);
  ASSERT_EQ(t.inputs.size(), 2U);
  EXPECT_EQ(t.inputs[1].init.of, initializer::kind::uniform);
  EXPECT_EQ(std::get<double>(t.inputs[1].init.a), -1.0);
  EXPECT_EQ(t.inputs[1].init.expr, "torch.triu(x)");
  ASSERT_EQ(t.cases.size(), 2U);
  EXPECT_EQ(resolve_shape(t.inputs[1], t.cases[0]), (std::vector<std::int64_t>{512, 256}));
  EXPECT_TRUE(t.cases[0].timed);
  EXPECT_TRUE(runs_on(t.cases[0], "cpu"));
  EXPECT_FALSE(runs_on(t.cases[0], "cuda"));
  EXPECT_TRUE(runs_on(t.cases[1], "cuda"));
  EXPECT_EQ(declared_tolerance(t, dtype::float32), (tolerance{1e-3, 1e-5}));
  EXPECT_EQ(declared_tolerance(t, dtype::float16), tolerance{});
  EXPECT_EQ(export_tolerance(t, dtype::float32), (tolerance{1e-3, 1e-5}));
  EXPECT_EQ(export_tolerance(t, dtype::float16), (tolerance{1e-2, 1e-2}));
  EXPECT_EQ(print_sizes(t.cases[1]), "M=257 N=63");
}

TEST(TaskFile, RelaxedPrecisionAdmitsTf32) {
  const task t = parse_task(
      replaced(replaced(diag, "[tolerance]\nfloat32 = { rtol = 1e-3, atol = 1e-5 }\n", ""),
               "summary", "precision = \"relaxed\"\nsummary"),
      "t.toml");
  EXPECT_TRUE(t.relaxed);
  EXPECT_EQ(export_tolerance(t, dtype::float32), (tolerance{1e-2, 1e-2}));
}

TEST(TaskFile, TheTextIsKeptAndIdentifiesTheTask) {
  const task t = parse_task(diag, "t.toml");
  EXPECT_EQ(t.text, diag);
  EXPECT_EQ(t.id, parse_task(diag, "elsewhere.toml").id);
  EXPECT_NE(t.id, parse_task(diag + "\n", "t.toml").id);
}

TEST(TaskFile, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(task_error(replaced(diag, "summary", "sumary")),
              testing::StartsWith("t.toml:2: sumary: unknown key (did you mean summary?), "));
}

struct bad_edit {
  const char* from;
  const char* to;
  const char* message;
};

class TaskFileRefuses : public testing::TestWithParam<bad_edit> {};

TEST_P(TaskFileRefuses, WithAMessageThatSaysWhy) {
  EXPECT_THAT(task_error(replaced(diag, GetParam().from, GetParam().to)),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, TaskFileRefuses,
    testing::Values(
        bad_edit{"\"diag_matmul\"", "\"Diag\"", "t.toml:1: name: 'Diag' must match [a-z0-9_]+"},
        bad_edit{"summary = \"C = diag(A) B\"", "summary = 3",
                 "t.toml:2: summary: is an integer, expected a string"},
        bad_edit{"summary = \"C = diag(A) B\"", "precision = \"low\"",
                 "expected strict or relaxed"},
        bad_edit{"summary = \"C = diag(A) B\"", "tier = 0", "tier: is 0, expected 1 to 9"},
        bad_edit{"summary = \"C = diag(A) B\"", "distributions = [\"declared\", \"big\"]",
                 "'big' is unknown"},
        bad_edit{"summary = \"C = diag(A) B\"", "distributions = [\"small\"]",
                 "must contain 'declared'"},
        bad_edit{"shape = [\"N\", \"M\"]", "shape = [\"N\", 2.5]",
                 "input[1].shape: holds a floating-point number"},
        bad_edit{"shape = [\"N\", \"M\"]", "shape = [\"N\", -1]", "-1 is no size"},
        bad_edit{"shape = [\"N\", \"M\"]", "shape = [\"N\", \"K\"]",
                 "the size K has no value in the case"},
        bad_edit{"shape = [\"M\"]", "shape = [\"M\"]\ndtype = \"float31\"", "'float31' is unknown"},
        bad_edit{"shape = [\"M\"]", "shape = [\"M\"]\ninit = \"gauss\"",
                 "'gauss' is no initializer"},
        bad_edit{"shape = [\"M\"]", "shape = [\"M\"]\ninit = \"normal(1)\"",
                 "wrong number of arguments"},
        bad_edit{"shape = [\"M\"]", "shape = [\"M\"]\ninit = \"normal(0,M)\"",
                 "only integers(lo,hi) takes the names"},
        bad_edit{"shape = [\"M\"]", "shape = [\"M\"]\ndata = \"w.safetensors\"",
                 "the data file w.safetensors is missing"},
        bad_edit{"name = \"bias\"", "name = \"A\"", "two tensors are called 'A'"},
        bad_edit{"timed = true\n", "", "at least one [[case]] with timed = true"},
        bad_edit{"on = [\"cpu\"]", "on = [\"gpu\"]", "'gpu' is no kind of device"},
        bad_edit{"sizes = { N = 63, M = 257 }", "sizes = { N = 63, M = \"x\" }",
                 "case[1].sizes.M: is a string, expected a size"},
        bad_edit{"sizes = { N = 63, M = 257 }", "sizes = { N = 63, M = 257, K = 1 }",
                 "no tensor uses the size K"},
        bad_edit{"sizes = { N = 63, M = 257 }", "sizes = { N = 1000000000000, M = 1000000000000 }",
                 "too many elements"},
        bad_edit{"reference = '''", "reference = ''' '''\nx = '''", "x: unknown key"}));

TEST(TaskFile, DefaultsAreThoseOfTheFormat) {
  const task t = parse_task(R"toml(name = "t"
reference = "def forward(m: Tensor) -> Tensor: return m"
[[input]]
name = "m"
shape = []
dtype = "bool"
[[input]]
name = "i"
shape = ["N"]
dtype = "int64"
init = "integers(0,N)"
[[case]]
sizes = { N = 3 }
timed = true
)toml",
                            "t.toml");
  EXPECT_EQ(t.inputs[0].init.of, initializer::kind::coin);
  EXPECT_TRUE(t.inputs[0].shape.empty());
  EXPECT_EQ(std::get<std::string>(t.inputs[1].init.b), "N");
}

TEST(TaskFile, ParametersMayComeFromAFileBesideTheTask) {
  const temporary_folder folder;
  const std::string values(12, '\0');
  write_file(folder / "w.safetensors",
             testing_support::safetensors_text({{"w", "F32", {3}, values}}));
  const std::string text = R"toml(name = "t"
reference = "def forward(x: Tensor, w: Tensor) -> Tensor: return x * w"
[[input]]
name = "x"
shape = [3]
[[parameter]]
name = "w"
shape = [3]
data = "w.safetensors"
[[case]]
timed = true
)toml";
  write_file(folder / "t.toml", text);
  const task t = load_task(folder / "t.toml");
  ASSERT_EQ(t.data_files.size(), 1U);
  const task again = from_record(*to_record(t));
  EXPECT_EQ(again.id, t.id);
  EXPECT_EQ(again.data_files, t.data_files);
  const std::string other(12, '\1');
  const auto changed = parse_task(
      text, "t.toml",
      {{"w.safetensors", testing_support::safetensors_text({{"w", "F32", {3}, other}})}});
  EXPECT_NE(changed.id, t.id) << "the data are part of the identity";
  EXPECT_THAT(task_error(text, {{"w.safetensors", testing_support::safetensors_text(
                                                      {{"w", "F32", {3, 1}, values}})}}),
              HasSubstr("its shape in w.safetensors"));
  EXPECT_THAT(task_error(text, {{"w.safetensors",
                                 testing_support::safetensors_text({{"w", "I32", {3}, values}})}}),
              HasSubstr("has it as I32"));
  EXPECT_THAT(task_error(text, {{"w.safetensors", "garbage"}}), HasSubstr("safetensors"));
}

TEST(TaskFile, AMissingFileIsNamed) {
  try {
    load_task("/nonexistent/task.toml");
    FAIL();
  } catch (const format_error& e) {
    EXPECT_STREQ(e.what(), "/nonexistent/task.toml: there is no such file");
  }
}

}  // namespace
}  // namespace hone
