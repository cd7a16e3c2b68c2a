// Tests of the teacher: what it writes with `hone corpus teach` is judged like any other variant.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>

#include "tasks/corpus.hpp"
#include "tasks/variant_document.hpp"
#include "tests/support/judging_bench.hpp"
#include "tests/support/program.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using namespace testing_support;
using testing::HasSubstr;

// A task of this reference. `tensors`: tables [[input]] and [[parameter]]. `sizes` and `odd`: of
// the timed case and of another one.
std::string task_text(const std::string& name, const std::string& reference,
                      const std::string& tensors, const std::string& sizes,
                      const std::string& odd) {
  return "name = \"" + name + "\"\nsummary = \"test\"\nreference = '''\n" + reference + "'''\n" +
         tensors + "[[case]]\nsizes = { " + sizes + " }\ntimed = true\n[[case]]\nsizes = { " + odd +
         " }\n";
}

std::string input(const std::string& name, const std::string& shape, const std::string& more = "") {
  return "[[input]]\nname = \"" + name + "\"\nshape = [" + shape + "]\n" + more;
}
std::string parameter(const std::string& name, const std::string& shape,
                      const std::string& init = "normal") {
  return "[[parameter]]\nname = \"" + name + "\"\nshape = [" + shape + "]\ninit = \"" + init +
         "\"\n";
}

// Has the teacher write variants of tasks into `out`. It starts once for all of them, which takes
// longer than to judge a variant. Returns the documents.
std::vector<corpus_document> teach_tasks(const std::vector<std::string>& tasks, const fs::path& out,
                                         const std::string& device, int count, int seed) {
  std::vector<std::string> arguments = {"corpus", "teach"};
  arguments.insert(arguments.end(), tasks.begin(), tasks.end());
  arguments.insert(arguments.end(), {"--out", out.string(), "--count", std::to_string(count),
                                     "--device", device, "--seed", std::to_string(seed)});
  const auto ended = run_hone(arguments);
  EXPECT_EQ(ended.code, 0) << ended.err;
  return load_corpus(out);
}

class Teaching : public testing::Test {
 protected:
  // Writes a task, and has the teacher write variants of it. Returns the documents.
  std::vector<corpus_document> teach(const std::string& text, const std::string& device, int count,
                                     int seed = 1) {
    const auto file = folder_ / "task.toml";
    std::ofstream(file) << text;
    task_ = load_task(file);
    return teach_tasks({file.string()}, folder_ / (device + std::to_string(seed)), device, count,
                       seed);
  }
  // Returns what the teacher writes if it has one text to write, however many are asked for.
  corpus_document only_document(const std::string& text, const std::string& device, int count = 1) {
    const auto documents = teach(text, device, count);
    EXPECT_EQ(documents.size(), 1U);
    return documents.at(0);
  }

  void expect_ok(const corpus_document& document) {
    const auto evaluation =
        judging_bench::instance().judge().evaluate_until_stable(document.text, *task_);
    const bool excused =
        judging_bench::instance().shares_cores()
            ? evaluation->getOutcome() == Outcome::UNSTABLE
            : judging_bench::times_mean_nothing && view(evaluation->getKind()) == "late_work";
    EXPECT_TRUE(evaluation->getOutcome() == Outcome::OK || excused)
        << document.name << " ended as " << name_of(evaluation->getOutcome()) << ": "
        << std::string(view(evaluation->getMessage())) << "\n"
        << document.text;
  }

  temporary_folder folder_;
  std::optional<task> task_;
};

// Code written for GPUs runs on a CPU as well: the threads of a block take turns there. `uses`: the
// text that the cuda block must hold, so that each way to share the work is covered.
struct lesson {
  std::string name;
  std::string uses;
  std::string text;
};

std::ostream& operator<<(std::ostream& out, const lesson& one) { return out << one.name; }

std::vector<lesson> lessons() {
  const std::string x2 = input("x", "\"N\", \"M\"");
  const std::string x3 = input("x", "\"N\", \"M\", \"K\"");
  const std::string x4 = input("x", "\"N\", 8, \"M\", \"K\"");
  return {
      {"elements", "pack<float, 4>",
       task_text("elements",
                 "def forward(x: Tensor, c: Tensor) -> Tensor:\n"
                 "    y = torch.relu(x + c.reshape([1, -1, 1, 1])) * 0.5\n"
                 "    return torch.where(y > 0.25, torch.tanh(y), -y) - torch.clamp(x, -1, 1)\n",
                 x4 + parameter("c", "8"), "N = 4, M = 12, K = 16", "N = 3, M = 5, K = 7")},
      {"a_block_a_row", "device::over_block",
       task_text("a_block_a_row",
                 "def forward(x: Tensor) -> Tensor:\n    return torch.softmax(x * 2.0, 1)\n", x2,
                 "N = 3, M = 900", "N = 5, M = 67")},
      // A difference that is fused with the product is not exactly 0 where the square is largest.
      {"softmax_of_a_product", "__fsub_rn",
       task_text("softmax_of_a_product",
                 "def forward(x: Tensor) -> Tuple[Tensor, Tensor]:\n"
                 "    return torch.softmax(x * x, 1), torch.silu(torch.log_softmax(x * 3.1, 1))\n",
                 x2, "N = 20, M = 96", "N = 5, M = 67")},
      {"a_warp_a_row", "device::over_warp",
       task_text("a_warp_a_row",
                 "def forward(x: Tensor, w: Tensor, b: Tensor) -> Tensor:\n"
                 "    return torch.gelu(torch.layer_norm(x, [70], w, b))\n",
                 input("x", "\"N\", 70") + parameter("w", "70") + parameter("b", "70"), "N = 260",
                 "N = 7")},
      {"a_tile_of_columns", "device::over_tile",
       task_text("a_tile_of_columns",
                 "def forward(x: Tensor) -> Tensor:\n"
                 "    return x - torch.mean(x, [1], True) / torch.std(x, [1], True, True)\n",
                 x3, "N = 3, M = 40, K = 50", "N = 2, M = 9, K = 33")},
      {"parts_of_rows", "blockIdx.x / ",
       task_text("parts_of_rows",
                 "def forward(x: Tensor) -> Tensor:\n"
                 "    y = x / torch.linalg_vector_norm(x, 2, [1], True)\n"
                 "    return y * torch.amax(y, [1], True)\n",
                 x2, "N = 1, M = 70000", "N = 2, M = 1001")},
      {"groups_and_channels", "rsqrtf",
       task_text("groups_and_channels",
                 "def forward(x: Tensor, w: Tensor, b: Tensor) -> Tensor:\n"
                 "    y = torch.group_norm(x, 4, w, b)\n    return torch.silu(y) + x\n",
                 x4 + parameter("w", "8") + parameter("b", "8"), "N = 4, M = 9, K = 11",
                 "N = 3, M = 5, K = 7")},
      {"windows", "-INFINITY",
       task_text("windows",
                 "def forward(x: Tensor) -> Tensor:\n"
                 "    y = torch.max_pool2d(torch.sigmoid(x), [3, 3], [2, 2], [1, 1])\n"
                 "    return torch.avg_pool2d(y, [2, 2], [1, 1], [1, 1], False, False)\n",
                 x4, "N = 2, M = 12, K = 16", "N = 3, M = 7, K = 9")},
      {"running_totals", "__shfl_up_sync",
       task_text("running_totals",
                 "def forward(x: Tensor) -> Tensor:\n"
                 "    y = torch.flip(torch.cumsum(torch.flip(x * 0.1, [1]), 1), [1])\n"
                 "    return torch.cumprod(torch.tanh(x), 1) + y\n",
                 x2, "N = 3, M = 1100", "N = 5, M = 67")},
      {"places_of_extremes", "device::place_of_smallest",
       task_text("places_of_extremes",
                 "def forward(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:\n"
                 "    y = torch.max(x, 1)\n    z = torch.argmin(x, 1)\n"
                 "    return y[0], y[1], z\n",
                 x2, "N = 3, M = 900", "N = 5, M = 67")},
      {"a_loss_of_indices", "(int)",
       task_text("a_loss_of_indices",
                 "def forward(x: Tensor, t: Tensor) -> Tensor:\n"
                 "    return torch.cross_entropy_loss(x, t) * 2.0\n",
                 input("x", "\"N\", 12") +
                     input("t", "\"N\"", "dtype = \"int64\"\ninit = \"integers(0,12)\"\n"),
                 "N = 300", "N = 7")},
      {"views", "[",
       task_text("views",
                 "def forward(x: Tensor) -> Tensor:\n"
                 "    y = torch.exp(x.transpose(1, 2))[:, 1:, :]\n"
                 "    z = torch.relu(y.unsqueeze(1).expand([-1, 2, -1, -1]))\n"
                 "    return torch.sum(z.flatten(2), [2]) + 1.0\n",
                 x3, "N = 3, M = 20, K = 30", "N = 2, M = 9, K = 33")},
      {"folded_norms", "__global__",
       task_text("folded_norms",
                 "def forward(x: Tensor, k: Tensor, w: Tensor, b: Tensor, m: Tensor, v: Tensor) -> "
                 "Tensor:\n    y = torch.conv2d(x, k, None, [1, 1], [1, 1])\n"
                 "    y = torch.batch_norm(y, w, b, m, v, False, 0.1, 1e-05, True)\n"
                 "    return torch.relu(y) + torch.mean(x, [2, 3], True)\n",
                 x4 + parameter("k", "8, 8, 3, 3") + parameter("w", "8") + parameter("b", "8") +
                     parameter("m", "8") + parameter("v", "8", "uniform(0.5,2)"),
                 "N = 2, M = 9, K = 11", "N = 3, M = 5, K = 7")},
      {"products", "__global__",
       task_text("products",
                 "def forward(x: Tensor, a: Tensor, k: Tensor, b: Tensor) -> Tensor:\n"
                 "    y = torch.matmul(torch.diag(a), x)\n"
                 "    z = torch.sum(torch.linear(y, k, b) / 2.0, [1], True)\n    return y + z\n",
                 input("x", "\"N\", 40") + input("a", "\"N\"") + parameter("k", "30, 40") +
                     parameter("b", "30"),
                 "N = 50", "N = 7")},
  };
}

class TeachingOfRules : public Teaching, public testing::WithParamInterface<lesson> {
 protected:
  static fs::path task_file(const lesson& one) { return *taught_ / (one.name + ".toml"); }

  static void SetUpTestSuite() {
    taught_ = std::make_unique<temporary_folder>();
    std::vector<std::string> tasks;
    for (const lesson& one : lessons()) {
      tasks.push_back(task_file(one).string());
      std::ofstream(tasks.back()) << one.text;
    }
    teach_tasks(tasks, *taught_ / "variants", "cuda", 8, 3);
  }
  static void TearDownTestSuite() { taught_.reset(); }

  // Returns what the teacher has written of the test's task.
  std::vector<corpus_document> taught_documents() {
    task_ = load_task(task_file(GetParam()));
    return load_corpus(*taught_ / "variants" / GetParam().name);
  }

 private:
  static inline std::unique_ptr<temporary_folder> taught_;
};

TEST_P(TeachingOfRules, MakesVariantsThatAreOk) {
  // The first is a best guess; the last is drawn.
  const auto documents = taught_documents();
  ASSERT_GE(documents.size(), 3U);
  EXPECT_THAT(documents.front().text, HasSubstr(GetParam().uses));
  expect_ok(documents.front());
  expect_ok(documents.back());
}

INSTANTIATE_TEST_SUITE_P(All, TeachingOfRules, testing::ValuesIn(lessons()),
                         [](const auto& one) { return one.param.name; });

TEST_F(Teaching, DrawsTheSameVariantsForTheSameSeed) {
  const std::string text = lessons()[1].text;
  const auto texts = [&](int seed) {
    std::set<std::string> all;
    for (const auto& document : teach(text, "cuda", 10, seed)) {
      const auto parsed = parse_variant_document(document.text);
      EXPECT_EQ(std::get_if<parse_problem>(&parsed), nullptr) << document.text;
      all.insert(document.text);
    }
    return all;
  };
  const auto once = texts(1);
  fs::remove_all(folder_ / "cuda1");
  EXPECT_EQ(once, texts(1));
  EXPECT_GE(once.size(), 5U);  // each text once
  EXPECT_NE(once, texts(2));
}

TEST_F(Teaching, LeavesToAtenWhatNoRuleCovers) {
  const std::string loop =
      "def forward(x: Tensor) -> Tensor:\n    y = x\n    for i in range(3):\n"
      "        y = torch.tanh(y)\n    return y\n";
  const auto document =
      only_document(task_text("loop", loop, input("x", "\"N\", 9"), "N = 50", "N = 7"), "cpu", 3);
  EXPECT_THAT(document.text, HasSubstr("for i in range(3)"));
  expect_ok(document);
}

TEST_F(Teaching, FoldsANormOnlyIntoItsOwnConvolution) {
  // The first convolution is read twice, and the summand of the second is not its bias.
  const std::string reference =
      "def forward(x: Tensor, k: Tensor, w: Tensor, b: Tensor, m: Tensor, v: Tensor, c: Tensor) -> "
      "Tensor:\n    y = torch.conv2d(x, k)\n"
      "    y = torch.batch_norm(y, w, b, m, v, False, 0.1, 1e-05, True) + y\n"
      "    z = torch.conv2d(x, k) + c\n"
      "    return torch.batch_norm(z, w, b, m, v, False, 0.1, 1e-05, True) * y\n";
  const std::string tensors = input("x", "\"N\", 8, \"M\", 9") + parameter("k", "8, 8, 3, 3") +
                              parameter("w", "8") + parameter("b", "8") + parameter("m", "8") +
                              parameter("v", "8", "uniform(0.5,2)") + parameter("c", "8, 1, 1");
  const std::string text = task_text("norms", reference, tensors, "N = 2, M = 9", "N = 3, M = 5");
  for (const char* device : {"cpu", "cuda"}) expect_ok(only_document(text, device));
}

TEST_F(Teaching, KeepsChannelsLastBetweenConvolutionsInSomeVariants) {
  const std::string reference =
      "def forward(x: Tensor, k: Tensor, c: Tensor, l: Tensor, t: Tensor, w: Tensor, b: Tensor, "
      "m: Tensor, v: Tensor) -> Tensor:\n"
      "    y = torch.relu(torch.conv2d(torch.tanh(x), k, c, [1, 1], [1, 1]))\n"
      "    y = torch.conv2d(y, l, None, [2, 2], [1, 1])\n"
      "    y = torch.max_pool2d(torch.batch_norm(y, w, b, m, v, False, 0.1, 1e-05, True), [2, 2])\n"
      "    z = torch.conv_transpose2d(y, t, None, [2, 2])\n"
      "    return z / torch.linalg_vector_norm(z, 2, [1], True)\n";
  const std::string tensors =
      input("x", "\"N\", 3, \"M\", \"K\"") + parameter("k", "8, 3, 3, 3") + parameter("c", "8") +
      parameter("l", "8, 8, 3, 3") + parameter("t", "8, 4, 2, 2") + parameter("w", "8") +
      parameter("b", "8") + parameter("m", "8") + parameter("v", "8", "uniform(0.5,2)");
  const auto documents =
      teach(task_text("images", reference, tensors, "N = 2, M = 12, K = 16", "N = 3, M = 9, K = 7"),
            "cuda", 16);
  std::vector<const corpus_document*> last;
  for (const auto& document : documents) {
    if (document.text.find("permute([0, 3, 1, 2])") != std::string::npos) last.push_back(&document);
  }
  ASSERT_GE(last.size(), 2U);
  EXPECT_LT(last.size(), documents.size());
  expect_ok(*last.front());
  expect_ok(*last.back());
}

TEST_F(Teaching, AddsUpInFloat64WhereAThreadHasMillionsOfElements) {
  const auto adds_in_double = [&](const std::string& n, int seed) {
    const auto documents = teach(
        task_text("whole",
                  "def forward(x: Tensor) -> Tensor:\n    return x / torch.linalg_vector_norm(x)\n",
                  input("x", "\"N\""), "N = " + n, "N = 17"),
        "cuda", 16, seed);
    return std::count_if(documents.begin(), documents.end(), [](const corpus_document& each) {
      return each.text.find("sum<double>") != std::string::npos;
    });
  };
  EXPECT_GE(adds_in_double("67108864", 2), 1);
  EXPECT_EQ(adds_in_double("65536", 3), 0);
}

TEST_F(Teaching, CopiesWhatItMayNotReturn) {
  const std::string reference =
      "def forward(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:\n    y = x.clone()\n"
      "    z = torch.relu(x)\n    return y, z, z.clone()\n";
  expect_ok(only_document(task_text("copies", reference, input("x", "\"N\", 9"), "N = 50", "N = 7"),
                          "cuda"));
}

TEST_F(Teaching, LeavesOutWorkThatCannotMatter) {
  const std::string dead =
      "def forward(x: Tensor) -> Tensor:\n"
      "    y = torch.clamp(torch.clamp(torch.exp(x), -2.0, 0.0), 0.0, 1.0)\n    return y + 3.0\n";
  const auto document =
      only_document(task_text("dead", dead, input("x", "\"N\", 9"), "N = 50", "N = 7"), "cuda");
  EXPECT_THAT(document.text, HasSubstr("torch.full("));
  expect_ok(document);
}

TEST_F(Teaching, OfTheStartersTasksIsOkOnACpu) {
  const auto file_of = [](const std::string& name) {
    return (fs::path(HONE_SOURCE_DIR) / "configs" / "tasks" / (name + ".toml")).string();
  };
  std::vector<std::string> tasks;
  for (const char* name : {"conv_mean", "gru_step", "masked_variance", "matmul_row_sum"})
    tasks.push_back(file_of(name));
  const auto documents = teach_tasks(tasks, folder_ / "cpu", "cpu", 1, 1);
  EXPECT_EQ(documents.size(), tasks.size());
  for (const auto& document : documents) {
    task_ = load_task(file_of(document.task));
    expect_ok(document);
  }
}

}  // namespace
}  // namespace hone
