// Tests of `hone task import` through the program: modules of tests/importing become tasks or are
// refused with a reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tasks/safetensors.hpp"
#include "tasks/task_file.hpp"
#include "tests/support/json_lines.hpp"
#include "tests/support/program.hpp"

namespace hone {
namespace {

using namespace testing_support;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::filesystem::path source_folder =
    std::filesystem::path(HONE_SOURCE_DIR) / "tests" / "importing";

struct import_run {
  int code = -1;
  std::map<std::string, json> files;  // by stem
};

import_run import_into(const std::filesystem::path& out, std::vector<std::string> paths,
                       std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"task", "import", "--json", "--out", out.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.insert(arguments.end(), paths.begin(), paths.end());
  const auto ended = run_hone(arguments, {}, std::chrono::seconds(400));
  import_run run{ended.code, {}};
  for (json& one : json_lines(ended.out)) {
    const std::string stem = std::filesystem::path(one["file"].get<std::string>()).stem();
    run.files[stem] = std::move(one);
  }
  return run;
}

// All modules of tests/importing/modules, imported once for the whole suite.
class ImportedModules : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new temporary_folder;
    run_ = new import_run(import_into(folder_->path(), {source_folder / "modules"}));
  }
  static void TearDownTestSuite() {
    delete run_;
    delete folder_;
  }
  static const json& line(const std::string& name) { return run_->files.at(name); }
  static std::filesystem::path file(const std::string& name) {
    return folder_->path() / (name + ".toml");
  }
  static task imported(const std::string& name) { return load_task(file(name)); }
  static const tensor_spec& tensor(const std::vector<tensor_spec>& all, const std::string& name) {
    for (const tensor_spec& one : all) {
      if (one.name == name) return one;
    }
    throw std::runtime_error("no tensor " + name);
  }
  static initializer input(const std::string& of, const std::string& name) {
    return tensor(imported(of).inputs, name).init;
  }
  static tensor_spec parameter(const std::string& of, const std::string& name) {
    return tensor(imported(of).parameters, name);
  }

  static inline temporary_folder* folder_ = nullptr;
  static inline import_run* run_ = nullptr;
};

initializer drawn(initializer::kind of, std::variant<double, std::string> a = 0.0,
                  std::variant<double, std::string> b = 1.0, std::string expr = "") {
  return {of, std::move(a), std::move(b), std::move(expr)};
}

using kind = initializer::kind;

TEST_F(ImportedModules, EveryModuleBecomesATask) {
  EXPECT_EQ(run_->code, 0);
  EXPECT_GE(run_->files.size(), 37U);
  for (const auto& [name, one] : run_->files) {
    EXPECT_TRUE(one["imported"].get<bool>()) << name << ": " << one.value("error", "");
    EXPECT_TRUE(std::filesystem::exists(file(name))) << name;
  }
}

TEST_F(ImportedModules, InputsAreDrawnAsTheFileDrawsThem) {
  EXPECT_EQ(input("causal_attention", "x"), drawn(kind::normal));
  EXPECT_EQ(input("conv_block", "x"), drawn(kind::uniform));
  EXPECT_EQ(input("tuple_out", "x"), drawn(kind::uniform, -2.0, 2.0));
  EXPECT_EQ(input("list_in", "parts_2"), drawn(kind::constant, 1.0));
  EXPECT_EQ(input("named_inputs", "right"), drawn(kind::uniform));
  EXPECT_EQ(input("lstm_state", "state_1"), drawn(kind::normal, 0.0, 0.1));
  EXPECT_EQ(input("bilinear_einsum", "y"), drawn(kind::normal, 0.0, 1.0, "torch.abs(x)"));
  EXPECT_EQ(input("embedded_words", "words"), drawn(kind::integers, 0.0, 500.0));
  EXPECT_EQ(input("embedded_words", "lengths"), drawn(kind::integers, 1.0, 33.0));
  EXPECT_EQ(input("masked_mean", "keep").of, kind::coin);
  EXPECT_EQ(input("masked_mean", "weights"), drawn(kind::normal, 0.0, 1.0, "torch.softmax(x, -1)"));
  // There are as many classes as scores.
  EXPECT_EQ(input("label_loss", "labels"), drawn(kind::integers, 0.0, std::string("M")));
  EXPECT_EQ(input("triangular", "a"), drawn(kind::uniform, 0.0, 1.0, "torch.tril(x)"));
  EXPECT_EQ(input("triangular", "order").of, kind::permutation);
  EXPECT_EQ(input("not_contiguous", "x"), drawn(kind::normal));
  EXPECT_EQ(input("not_contiguous", "row").expr, "x.narrow(0, 0, 1).expand_as(x)");
  // What forward() itself draws are inputs.
  EXPECT_EQ(input("initial_state", "drawn_1"), drawn(kind::normal));
  EXPECT_EQ(input("initial_state", "drawn_2"), drawn(kind::uniform, 0.0, 1.0));
  // A scale that the file draws becomes its mean.
  EXPECT_THAT(input("random_scale", "given").expr, HasSubstr("0.5"));
  EXPECT_EQ(input("named_outputs", "x"), drawn(kind::uniform, 0.0, 1.0, "torch.clamp(x, 0.001)"));
  EXPECT_EQ(input("large_and_small", "x"), drawn(kind::normal, 0.0, 1.0, "torch.exp(x)"));
}

TEST_F(ImportedModules, WhatHoldsBetweenTheElementsOfAnInputHoldsInItsDraws) {
  EXPECT_THAT(input("ordered_inputs", "edges").expr, HasSubstr("torch.sort(x, -1, True)[0]"));
  EXPECT_EQ(input("ordered_inputs", "totals").expr, "torch.cumsum(x, 0)");
  EXPECT_THAT(input("ordered_inputs", "matrices").expr, HasSubstr("torch.eye(x.size(1))"));
  for (const auto& [sizes, timed, on] : imported("ordered_inputs").cases)
    EXPECT_EQ(sizes.size(), 6U) << "all sizes are free";
}

TEST_F(ImportedModules, DrawsThatAreWrittenIntoMemoryOfAConstantStayDraws) {
  EXPECT_EQ(input("written_draws", "x"), drawn(kind::uniform));
  EXPECT_EQ(parameter("written_draws", "weight").init, drawn(kind::normal));
}

TEST_F(ImportedModules, NumbersOfTwoKindsKeepTheirShares) {
  EXPECT_THAT(input("written_draws", "kept").expr, testing::StartsWith("x < 0.7"));
  EXPECT_THAT(input("written_draws", "signs").expr, HasSubstr(".to(torch.float32) * 2 + -1"));
}

TEST_F(ImportedModules, BuffersThatAreComputedFromOthersKeepTheirValues) {
  for (const char* name : {"table", "norms"}) {
    EXPECT_EQ(parameter("codebook", name).data_file, "codebook.safetensors") << name;
    EXPECT_TRUE(parameter("codebook", name).is_fixed) << name;
  }
}

TEST_F(ImportedModules, LayersThatAreMadeInTheFirstCallAreParameters) {
  EXPECT_EQ(parameter("made_in_the_first_call", "layers_0_weight").init.of, kind::uniform);
  EXPECT_EQ(parameter("made_in_the_first_call", "layers_1_weight").init,
            drawn(kind::constant, 1.0));
  EXPECT_THAT(line("made_in_the_first_call")["notes"].dump(), HasSubstr("changes its own state"));
}

TEST_F(ImportedModules, LabelsHaveAsManyRowsAsTheirScores) {
  const task t = imported("labels_of_rows");
  EXPECT_EQ(tensor(t.inputs, "x").shape[0], tensor(t.inputs, "labels").shape[0]);
  EXPECT_EQ(t.cases.size(), 3U) << "the number of rows is free";
}

TEST_F(ImportedModules, CastsAndWritesOfParametersAreKept) {
  const task t = imported("rounded_weights");
  EXPECT_THAT(parameter("rounded_weights", "whole").init.expr, HasSubstr("torch.int8"));
  EXPECT_EQ(parameter("rounded_weights", "mask").init.expr, "x < 0.25");
  EXPECT_THAT(parameter("rounded_weights", "low").init.expr, HasSubstr("x.to(torch.uint8)"));
  EXPECT_EQ(parameter("rounded_weights", "imaginary").init.of, kind::uniform);
  EXPECT_EQ(parameter("rounded_weights", "imaginary").init.expr, "");
  for (const char* name : {"upper", "norms"})
    EXPECT_EQ(parameter("rounded_weights", name).data_file, "rounded_weights.safetensors") << name;
  EXPECT_EQ(parameter("rounded_weights", "scale").type, dtype::float64);
  EXPECT_THAT(parameter("rounded_weights", "scale").init.expr, HasSubstr("2.659260036932778"));
}

TEST_F(ImportedModules, MasksHaveTheTypeOfAttentionsQueryInEveryRun) {
  const task t = imported("padded_attention");
  EXPECT_THAT(t.reference, HasSubstr(".to(q.dtype)"));
  EXPECT_TRUE(t.has_result) << "in float64, the CPU's operator reads a float32 mask wrongly";
}

TEST_F(ImportedModules, RowsThatAreDrawnOneByOneKeepTheirRanges) {
  EXPECT_EQ(input("two_node_kinds", "edges"),
            drawn(kind::uniform, 0.0, 1.0,
                  "torch.stack([(torch.floor(x.select(0, 0) * 40.0)).to(torch.int64), "
                  "(torch.floor(x.select(0, 1) * 24.0)).to(torch.int64)], 0)"));
  EXPECT_EQ(input("two_node_kinds", "pairs").of, kind::normal);
  EXPECT_THAT(input("two_node_kinds", "pairs").expr, HasSubstr("torch.erf"));
}

TEST_F(ImportedModules, SeedsOfNumPyAndRandomDoNotMakeInputsConstant) {
  EXPECT_EQ(input("numpy_inputs", "rows"), drawn(kind::integers, 0.0, std::string("N")));
  EXPECT_EQ(input("numpy_inputs", "others"), drawn(kind::integers, 0.0, std::string("N")));
}

TEST_F(ImportedModules, SizesThatMeanTheSameStayEqualAndFixedOnesStay) {
  const task t = imported("rows_and_labels");
  EXPECT_EQ(tensor(t.inputs, "x").shape[0], tensor(t.inputs, "labels").shape[0]);
  EXPECT_EQ(tensor(t.inputs, "picture").shape[1], dimension(std::int64_t{3}));
}

TEST_F(ImportedModules, NumbersKeepTheirValues) {
  const task t = imported("exact_numbers");
  EXPECT_THAT(t.reference, HasSubstr("torch.full([], 0.3, dtype=torch.float64)"));
  for (const char* name : {"multiplier", "offsets"})
    EXPECT_FALSE(tensor(t.parameters, name).data_file.empty()) << name << " is no float32";
}

TEST_F(ImportedModules, ScalarsAreDrawn) {
  EXPECT_EQ(input("drawn_scalars", "shift"), drawn(kind::uniform));
  EXPECT_EQ(parameter("drawn_scalars", "gain").init, drawn(kind::uniform));
}

TEST_F(ImportedModules, InputsOfOneValueKeepItsDigits) {
  EXPECT_EQ(input("exact_inputs", "step").expr, "torch.full_like(x, 0.1, dtype=torch.float64)");
  EXPECT_EQ(input("exact_inputs", "count").expr, "torch.full_like(x, 16777217, dtype=torch.int64)");
}

// Independent draws would lose the row of zeros.
TEST_F(ImportedModules, ParametersWhoseElementsDependOnEachOtherKeepTheirValues) {
  const tensor_spec words = parameter("padded_words", "words_weight");
  EXPECT_FALSE(words.data_file.empty());
  EXPECT_TRUE(words.is_fixed);
  EXPECT_THAT(line("padded_words")["notes"].dump(),
              HasSubstr("keeps the values of the file's run in every call"));
}

TEST_F(ImportedModules, ParametersOfUnknownOriginKeepTheirValuesBesideWhatMayFollowFromThem) {
  EXPECT_FALSE(parameter("numpy_weights", "weight").data_file.empty());
  EXPECT_TRUE(parameter("numpy_weights", "weight").is_fixed);
  EXPECT_FALSE(parameter("numpy_weights", "scale").data_file.empty());
}

TEST_F(ImportedModules, NumbersOfOneSignKeepIt) {
  EXPECT_EQ(input("distances_in", "distances").expr, "torch.abs(x)");
}

TEST_F(ImportedModules, ScalarsThatAreNotRegisteredAreDrawnIfTheFileDrawsThem) {
  EXPECT_EQ(parameter("loose_scalars", "gain").init, drawn(kind::uniform));
  EXPECT_EQ(parameter("loose_scalars", "shifts_0").init.of, kind::normal);
  EXPECT_EQ(parameter("loose_scalars", "shifts_1").init, drawn(kind::uniform));
  EXPECT_EQ(parameter("loose_scalars", "scaled_factor").init, drawn(kind::uniform));
  EXPECT_THAT(imported("loose_scalars").reference, HasSubstr("torch.tensor(0.5"));
}

TEST_F(ImportedModules, LayersThatTheFileMakesEqualAreOneAndCopiesInAListAreNot) {
  std::vector<std::string> names;
  for (const tensor_spec& one : imported("equal_layers").parameters) names.push_back(one.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre(
                         "first_weight", "first_bias", "layers_0_weight", "layers_0_bias",
                         "layers_1_weight", "layers_1_bias", "online_weight", "online_bias"));
  const std::string notes = line("equal_layers")["notes"].dump();
  EXPECT_THAT(notes, HasSubstr("second.weight equals first.weight in the file"));
  EXPECT_THAT(notes, HasSubstr("layers_0_weight and layers_1_weight are made of the same"));
}

TEST_F(ImportedModules, NotesNumbersThatTheFileDraws) {
  const std::string notes = line("number_of_the_file")["notes"].dump();
  EXPECT_THAT(notes, HasSubstr("slope (line 13) is a number that the file draws"));
  EXPECT_TRUE(imported("log_probability").has_result);
}

TEST_F(ImportedModules, AResultThatIsNoiseIsNamed) {
  EXPECT_FALSE(imported("means_left").has_result);
  EXPECT_THAT(line("means_left")["notes"].dump(),
              HasSubstr("no result: its output 2 is rounding error"));
}

TEST_F(ImportedModules, ParametersOfListsAreParameters) {
  for (const char* name : {"first", "second"})
    EXPECT_EQ(parameter("listed_weights", name).init, drawn(kind::normal, 0.0, 0.125)) << name;
}

TEST_F(ImportedModules, HaveTheFilesSizesAloneIfTheyAreToBeFixed) {
  const temporary_folder fixed;
  ASSERT_EQ(import_into(fixed.path(), {source_folder / "modules" / "rows_and_labels.py"},
                        {"--fixed-sizes"})
                .code,
            0);
  const task t = load_task(fixed / "rows_and_labels.toml");
  for (const tensor_spec& one : t.inputs) {
    for (const dimension& extent : one.shape)
      EXPECT_TRUE(std::holds_alternative<std::int64_t>(extent)) << one.name;
  }
  EXPECT_EQ(t.cases.size(), 1U);
}

TEST_F(ImportedModules, NotesThatTiesMatter) {
  EXPECT_THAT(line("best_marks")["notes"].dump(), HasSubstr("order of equal values (topk)"));
  EXPECT_THAT(line("last_writes")["notes"].dump(), HasSubstr("writes several values to one place"));
  EXPECT_THAT(line("levels_on_a_grid")["notes"].dump(),
              HasSubstr("of the values that round gets from the file's inputs lie where its result "
                        "jumps"));
}

TEST_F(ImportedModules, ParametersAreDrawnAsTheModuleInitialisesThem) {
  EXPECT_EQ(parameter("causal_attention", "project_weight").init,
            drawn(kind::uniform, -0.125, 0.125));  // 1 / sqrt(64)
  EXPECT_EQ(parameter("conv_block", "norm_running_var").init, drawn(kind::constant, 1.0));
  EXPECT_EQ(parameter("upsample_tail", "bias").init, drawn(kind::normal, 0.0, 0.02));
  EXPECT_EQ(parameter("list_in", "weights_2").init, drawn(kind::constant, 3.0));
  EXPECT_EQ(parameter("half_rows", "linear_weight").type, dtype::bfloat16);
  EXPECT_THAT(parameter("tied_weights", "head_weight").init.expr, HasSubstr("erfinv"));
  EXPECT_EQ(imported("tied_weights").parameters.size(), 2U);
}

TEST_F(ImportedModules, ConstantParametersAreDrawnWithVaryConstants) {
  EXPECT_THAT(line("conv_block")["notes"].dump(), HasSubstr("--vary-constants"));
  EXPECT_THAT(line("gru_encoder")["notes"].dump(), Not(HasSubstr("--vary-constants")));
  const temporary_folder varied;
  ASSERT_EQ(import_into(varied.path(), {source_folder / "modules" / "conv_block.py"},
                        {"--vary-constants"})
                .code,
            0);
  const task block = load_task(varied / "conv_block.toml");
  EXPECT_EQ(tensor(block.parameters, "norm_running_var").init, drawn(kind::uniform, 0.5, 1.5));
  EXPECT_EQ(tensor(block.parameters, "norm_bias").init, drawn(kind::normal, 0.0, 0.1));
}

TEST_F(ImportedModules, ParametersThatAreDrawnNearAValueGiveAResult) {
  EXPECT_FALSE(imported("zero_last_layer").has_result);
  const temporary_folder varied;
  const auto run = import_into(varied.path(), {source_folder / "modules" / "zero_last_layer.py"},
                               {"--vary-constants"});
  ASSERT_EQ(run.code, 0);
  EXPECT_TRUE(load_task(varied / "zero_last_layer.toml").has_result);
  EXPECT_THAT(run.files.at("zero_last_layer")["notes"].dump(), Not(HasSubstr("no result")));
}

TEST_F(ImportedModules, TasksAdmitTf32WithRelaxedPrecision) {
  const temporary_folder relaxed;
  const std::filesystem::path module = source_folder / "modules" / "wide_layer.py";
  ASSERT_EQ(import_into(relaxed.path(), {module}, {"--precision", "relaxed"}).code, 0);
  EXPECT_TRUE(load_task(relaxed / "wide_layer.toml").relaxed);
  EXPECT_FALSE(imported("wide_layer").relaxed);
  EXPECT_EQ(import_into(relaxed.path(), {module}, {"--precision", "half"}).code, 2);
}

TEST_F(ImportedModules, ParametersAndInputsAreCastWithDtype) {
  const temporary_folder cast;
  const auto run = import_into(
      cast.path(),
      {source_folder / "modules" / "conv_block.py", source_folder / "modules" / "closed_over.py",
       source_folder / "modules" / "embedded_words.py"},
      {"--dtype", "bfloat16"});
  ASSERT_EQ(run.code, 0);
  EXPECT_THAT(run.files.at("closed_over")["notes"].dump(), HasSubstr("checked in float32"));
  EXPECT_THAT(run.files.at("conv_block")["notes"].dump(), Not(HasSubstr("checked in float32")));
  for (const char* name : {"conv_block", "closed_over", "embedded_words"}) {
    const task own = imported(name);
    const task other = load_task(cast / (std::string(name) + ".toml"));
    ASSERT_EQ(other.parameters.size(), own.parameters.size()) << name;
    for (std::size_t i = 0; i < own.parameters.size(); ++i) {
      const bool is_cast = own.parameters[i].type == dtype::float32;
      EXPECT_EQ(other.parameters[i].type, is_cast ? dtype::bfloat16 : own.parameters[i].type);
      EXPECT_EQ(other.parameters[i].init.of, own.parameters[i].init.of) << own.parameters[i].name;
    }
    for (std::size_t i = 0; i < own.inputs.size(); ++i) {
      const bool is_cast = own.inputs[i].type == dtype::float32;
      EXPECT_EQ(other.inputs[i].type, is_cast ? dtype::bfloat16 : own.inputs[i].type);
    }
  }
}

TEST_F(ImportedModules, ParametersThatAreNotRandomKeepTheirValues) {
  EXPECT_EQ(parameter("causal_attention", "mask").data_file, "causal_attention.safetensors");
  EXPECT_EQ(parameter("loose_tensors", "waves").data_file, "loose_tensors.safetensors");
  const task words = imported("embedded_words");
  const auto kept = parse_safetensors(words.data_files.at(0).bytes());
  ASSERT_EQ(kept.size(), 2U) << "the table has a row of zeros";
  const auto positions = std::find_if(kept.begin(), kept.end(),
                                      [](const auto& one) { return one.name == "positions"; });
  ASSERT_NE(positions, kept.end());
  for (std::int64_t i = 0; i < 64; ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, positions->bytes.data() + i * 8, 8);
    EXPECT_EQ(value, i);
  }
}

TEST_F(ImportedModules, OnlyNumbersInTheTextOfForwardAreAPartOfTheProgram) {
  std::map<std::vector<dimension>, bool> fixed;
  for (const tensor_spec& one : imported("numbers_in_forward").parameters)
    fixed[one.shape] = one.is_fixed;
  EXPECT_EQ(fixed, (std::map<std::vector<dimension>, bool>{{{3}, true}, {{24}, false}}));
}

TEST_F(ImportedModules, TheFilesSizesAreTimedAndOtherSizesAreOnlyChecked) {
  const task t = imported("conv_block");
  EXPECT_EQ(t.cases.at(0), (task_case{{{"N", 8}, {"M", 32}, {"K", 40}}, true, {}}));
  ASSERT_GE(t.cases.size(), 3U);
  EXPECT_FALSE(t.cases[1].timed);
  EXPECT_EQ(line("conv_block")["checked"], "the file's sizes");
}

TEST_F(ImportedModules, SizesThatDoNotFitAreCheckedReducedAndReported) {
  EXPECT_THAT(line("long_rows")["notes"].dump(), HasSubstr("checked at reduced sizes"));
  const task rows = imported("long_rows");
  EXPECT_EQ(rows.cases.at(0), (task_case{{{"N", 8192}, {"M", 131072}}, true, {"cuda"}}));
  EXPECT_EQ(rows.cases.at(1).on, std::vector<std::string>{"cpu"});
  // The parameters of wide_layer do not fit either.
  EXPECT_THAT(line("wide_layer")["notes"].dump(), HasSubstr("checked at reduced sizes"));
  EXPECT_THAT(line("kept_state")["notes"].dump(), HasSubstr("checked at reduced sizes"));
  EXPECT_EQ(imported("kept_state").cases.at(0).on, std::vector<std::string>{"cuda"});
  EXPECT_EQ(parameter("wide_layer", "up_weight").shape, (std::vector<dimension>{32768, 32768}));
}

TEST_F(ImportedModules, NotesNameWhatATaskLeavesOut) {
  EXPECT_THAT(line("tuple_out")["notes"].dump(), HasSubstr("output 4 is no tensor"));
  EXPECT_THAT(line("weight_norm")["notes"].dump(), HasSubstr("measured as normal("));
  EXPECT_THAT(line("not_contiguous")["notes"].dump(), HasSubstr("not contiguous"));
  EXPECT_THAT(line("tuple_out")["notes"].dump(), Not(HasSubstr("do not depend")));
}

TEST_F(ImportedModules, TasksWhoseOutputsSayNothingHaveNoResult) {
  EXPECT_THAT(line("mean_of_normal")["notes"].dump(),
              HasSubstr("no result: its outputs are rounding errors"));
  EXPECT_FALSE(imported("mean_of_normal").has_result);
  EXPECT_TRUE(imported("masked_mean").has_result);
  EXPECT_TRUE(imported("encoder_layer").has_result);
  const auto checked = run_hone({"task", "check", file("mean_of_normal"), file("masked_mean")});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("no result: the outputs for other inputs differ by no more"));
  EXPECT_THAT(checked.out, HasSubstr("of a typical element"));
}

TEST_F(ImportedModules, CasesHaveOnlySizesThatTheModuleAccepts) {
  for (const task_case& at : imported("chunked_rows").cases) {
    const auto rows = std::find_if(at.sizes.begin(), at.sizes.end(),
                                   [](const auto& size) { return size.first == "M"; });
    ASSERT_NE(rows, at.sizes.end());
    EXPECT_EQ(rows->second % 32, 0) << "not a multiple of a chunk";
  }
}

TEST_F(ImportedModules, ATaskKeepsTheModulesSourceText) {
  const task t = imported("gru_encoder");
  EXPECT_EQ(t.source_language, "python");
  EXPECT_EQ(t.source_text, read_file(source_folder / "modules" / "gru_encoder.py"));
  EXPECT_EQ(imported("causal_attention").summary,
            "Self-attention of several heads in which no position sees a later one");
}

TEST_F(ImportedModules, ReferencesDoNotModifyTheirArguments) {
  EXPECT_THAT(line("in_place")["notes"].dump(), HasSubstr("changes its own state"));
  EXPECT_THAT(imported("in_place").reference,
              AllOf(HasSubstr("x = x.clone()"), HasSubstr("calls = calls.clone()")));
  EXPECT_THAT(imported("conv_block").reference, Not(HasSubstr("dropout")));
}

TEST_F(ImportedModules, TheJudgeRunsImportedTasks) {
  std::vector<std::string> arguments = {"task", "check"};
  for (const char* name :
       {"best_marks",    "causal_attention", "exact_numbers",  "gru_encoder",     "in_place",
        "initial_state", "label_loss",       "listed_weights", "two_node_kinds",  "loose_tensors",
        "masked_mean",   "named_outputs",    "ordered_inputs", "padded_words",    "drawn_scalars",
        "exact_inputs",  "distances_in",     "random_scale",   "rows_and_labels", "spectral_layers",
        "triangular",    "tuple_out",        "weight_norm"}) {
    arguments.push_back(file(name));
  }
  const auto checked = run_hone(arguments);
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

TEST(ImportingModules, GivesTheReasonForEachRefusedFile) {
  const temporary_folder out;
  const import_run run = import_into(out.path(), {source_folder / "refused"},
                                     {"--seconds", "5", "--megabytes", "1024"});
  EXPECT_EQ(run.code, 1);
  const std::map<std::string, std::string> reasons = {
      {"array_of_weights",
       "scale (line 11) is computed from drawn parameters in a way that cannot be followed"},
      {"assigned_rows", "edges: place 1 of its dimension 0 has another range than others"},
      {"autocast_on", "it uses autocast"},
      {"both_directions", "edges: rows along its dimension 0 occur more often than by chance"},
      {"columns_of_two_kinds", "points: place 0 of its dimension 1 has another range"},
      {"complex_input", "of type complex64"},
      {"complex_output", "output 1 is of type complex64"},
      {"corners", "boxes: place 2 of its last dimension is never below place 0"},
      {"counts", "counts: its values are whole numbers, and how it draws them"},
      {"default_type", "sets the default type of tensors to torch.float64"},
      {"depends_on_data", "depend on the values of a tensor"},
      {"distinct_pairs", "places: it is made of distinct numbers"},
      {"doubled_numbers", "x: its numbers occur more than once"},
      {"doubled_rows", "x: rows along its dimension 1 occur more than once"},
      {"drawn_number", "draws an argument of Model or forward() that is no tensor"},
      {"drawn_scale", "scale: all its elements are one number, which"},
      {"drawn_slope", "draws an argument of Model or forward() that is no tensor"},
      {"draws_numbers", "draws random numbers: aten::randint_like"},
      {"dropped_elements", "x: 60 % of its elements are exactly 0"},
      {"drops_out", "another result when it is called again"},
      {"eats_memory", "needs more memory"},
      {"few_classes", "classes: its values have the same sum along dimension 1"},
      {"few_of_many", "rows: it is made of distinct numbers"},
      {"few_sampled", "rows: it is made of distinct numbers"},
      {"hidden_write", "hidden: its distribution, of mean 0.5"},
      {"ignored_labels", "labels: a few of its whole numbers lie apart"},
      {"leaves_early", "exit code 0"},
      {"lower_and_upper", "low is never above high in the file"},
      {"memory_not_written", "reads memory that it has not written"},
      {"missing_package", "imports a_package_that_nobody_has, which is not installed"},
      {"nested_input", "an input is a nested tensor"},
      {"moved_rows", "x: the numbers along its dimension 1 share an offset"},
      {"nested_rows", "it makes a nested tensor, which tasks do not support"},
      {"never_ends", "more than 5 s of processor time"},
      {"never_written", "weight: nothing is written to its memory"},
      {"no_model", "defines no Model"},
      {"no_numbers", "output 1 holds no finite number"},
      {"noisy_copy", "x: one half of its dimension 0 depends on the other"},
      {"number_in_a_buffer", "scale (line 11) is computed from drawn parameters"},
      {"number_in_a_function",
       "scaled.spread (line 11) is computed from drawn parameters and becomes a number"},
      {"number_of_weights",
       "scale (line 11) is computed from drawn parameters and becomes a number"},
      {"numpy_in_forward", "forward() gives a tensor to NumPy"},
      {"object_in", "argument 1 of forward() is or holds a Pair"},
      {"object_out", "forward() returns an object"},
      {"one_draw_in_two_columns", "places 0 and 1 of its dimension 1 depend on each other"},
      {"one_number", "level: all its elements are one number, which is drawn"},
      {"opposite_masks", "kept depends on left_out in the file"},
      {"other_names", "get_inputs() names arguments that forward does not take"},
      {"other_order", "x shares its values with y in the file"},
      {"packed_rows", "argument 1 of forward() is a PackedSequence"},
      {"padded_rows", "mask: its values never rise along dimension 1"},
      {"part_not_written", "weight: nothing is written to a part of its memory"},
      {"places_of_weights",
       "kept.0 (line 11) is computed from drawn parameters and becomes a number"},
      {"quantized_layer", "it uses quantized tensors or layers"},
      {"raises", "line 6: RuntimeError"},
      {"row_totals", "x depends on totals in the file"},
      {"same_rows", "x equals y in the file"},
      {"scaled_rows", "x: the numbers along its dimension 1 share a scale"},
      {"scripted_part", "leave out torch.jit.script"},
      {"seeded_generator", "forward() seeds the random numbers that it draws"},
      {"seeded_noise", "line 11: forward() seeds the random numbers"},
      {"shape_of_values", "the shape of output 1 depends on the values of the inputs"},
      {"signals_others", "line 6: PermissionError"},
      {"some_of_many", "rows: its values are all distinct along dimension 0"},
      {"sparse_input", "an input is sparse"},
      {"starts_program", "line 5: PermissionError"},
      {"step_beside_much", "step: all its elements are one number"},
      {"syntax_error", "line 3: it is not valid Python"},
      {"third_part", "x: rows along its dimension 1 occur more than once"},
      {"view_of_weight", "weight and turned_0 are views of the same memory"},
      {"views_bits", "views the bits of a tensor as another type"},
      {"writes_file", "line 5: PermissionError"},
  };
  EXPECT_EQ(run.files.size(), reasons.size());
  for (const auto& [name, reason] : reasons) {
    EXPECT_FALSE(run.files.at(name)["imported"].get<bool>()) << name;
    EXPECT_THAT(run.files.at(name).value("error", ""), HasSubstr(reason)) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(out.path()));
  EXPECT_FALSE(std::filesystem::exists(source_folder / "refused" / "left_behind.txt"));
}

TEST(ImportingModules, NamesTasksAfterLevelAndFileAndRefusesEqualNames) {
  const temporary_folder folder;
  const std::string module = read_file(source_folder / "modules" / "tuple_out.py");
  write_file(folder / "given/level1/2_Top-K Rows.py", module);
  write_file(folder / "given/level2/10_Same.py", module);
  write_file(folder / "given/level2/10-same.py", module);
  const import_run run = import_into(folder / "out", {folder / "given"});
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(load_task(folder / "out/level1_2_top_k_rows.toml").name, "level1_2_top_k_rows");
  EXPECT_NE(run.files.at("10_Same")["imported"], run.files.at("10-same")["imported"]);
}

TEST(ImportingModules, RefusesPathsThatDoNotExist) {
  const temporary_folder folder;
  const auto nothing = run_hone(
      {"task", "import", "--out", (folder / "out").string(), (folder / "absent.py").string()});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("no such file"));
}

TEST(Import, LeavesAnEditedTaskAloneUnlessItIsForced) {
  const temporary_folder folder;
  const std::string module = (folder / "double.py").string();
  write_file(module,
             "import torch\nclass Model(torch.nn.Module):\n"
             "    def forward(self, x):\n        return x * 2\n"
             "def get_inputs():\n    return [torch.randn(8, 16)]\n"
             "def get_init_inputs():\n    return []\n");
  const std::string file = (folder / "out/double.toml").string();
  const auto import = [&](std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"task", "import", module, "--out", (folder / "out").string()});
    return run_hone(more);
  };
  ASSERT_EQ(import().code, 0);
  EXPECT_EQ(import().code, 0) << "the same task again";
  write_file(file, read_file(file) + "# mine\n");
  const auto refused = import();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.out, AllOf(HasSubstr(file), HasSubstr("--force")));
  EXPECT_THAT(read_file(file), HasSubstr("# mine"));
  EXPECT_EQ(import({"--force"}).code, 0);
  EXPECT_THAT(read_file(file), Not(HasSubstr("# mine")));
}

}  // namespace
}  // namespace hone
