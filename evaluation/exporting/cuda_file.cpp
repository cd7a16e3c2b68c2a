#include "evaluation/exporting/cuda_file.hpp"

#include <re2/re2.h>

#include <algorithm>

#include "embedded/cuda_file_comparison.hpp"
#include "embedded/cuda_file_host_program.hpp"
#include "embedded/cuda_file_launches.hpp"
#include "embedded/cuda_file_model.hpp"
#include "embedded/exported_functional.hpp"
#include "embedded/exported_names.hpp"
#include "evaluation/compile/cuda_source.hpp"
#include "evaluation/exporting/drawing.hpp"
#include "tasks/program_functions.hpp"

namespace hone {
namespace {

constexpr std::string_view includes = R"text(
#include <ATen/ATen.h>
#include <ATen/DeviceGuard.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <numbers>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
)text";

constexpr std::string_view declaration = R"text(
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace hone_exported {

// The task's module with the variant instead of its forward(). It runs on the GPU of its inputs,
// on the current stream, and does not wait for the GPU. It computes no gradients. The first call
// for each set of shapes is compared with the original. If the variant does not agree there, or was
// not verified for the shapes, the types or the device, the original runs in its place, and
// LibTorch's log says why. An object serves one thread at a time.
class model {
 public:
  // Throws c10::Error if there are more or fewer parameters than the task's:
PARAMETERS  explicit model(std::vector<at::Tensor> parameters = {});

  // Returns the outputs. Throws c10::Error if the original refuses the inputs, too. These are, with
  // their shapes in a case that was timed:
INPUTS  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs);

  // Returns the original's outputs, computed without TF32.
  std::vector<at::Tensor> original(const std::vector<at::Tensor>& inputs);

  // Takes other parameters. Must also be called when the values of a parameter have changed.
  void set_parameters(std::vector<at::Tensor> parameters);

  // Returns why the original ran in the last forward(). Empty: the variant ran.
  const std::string& refusal() const;

  // Whether shapes are tried that the variant was not verified for.
  bool any_shape = false;

 private:
  class state;
  std::shared_ptr<state> state_;
};

}  // namespace hone_exported
)text";

std::string scalar_type(dtype type) {
  switch (type) {
    case dtype::float32:
      return "at::kFloat";
    case dtype::float64:
      return "at::kDouble";
    case dtype::float16:
      return "at::kHalf";
    case dtype::bfloat16:
      return "at::kBFloat16";
    case dtype::int32:
      return "at::kInt";
    case dtype::int64:
      return "at::kLong";
    case dtype::boolean:
      return "at::kBool";
  }
  throw export_error("a tensor has no type that LibTorch knows");
}

// Returns a C++ literal of the text.
std::string cpp_literal(const std::string& text) {
  std::string mark = "py";
  while (text.find(")" + mark + "\"") != std::string::npos) mark += "_";
  return "R\"" + mark + "(" + text + ")" + mark + "\"";
}

std::string flag(bool value) { return value ? "true" : "false"; }

std::string comment(const std::string& line) {
  return line.empty() ? "//\n" : "// " + plain_line(line) + "\n";
}

// Returns the elements, each printed by `print`.
template <class Elements, class Print>
std::string listed(const Elements& elements, const std::string& separator, Print print) {
  std::string text;
  for (const auto& element : elements) text += (text.empty() ? "" : separator) + print(element);
  return text;
}

std::string sizes(const std::vector<std::int64_t>& shape) {
  return "{" + listed(shape, ", ", [](std::int64_t n) { return std::to_string(n); }) + "}";
}

// Returns the cases that run on a GPU, timed ones first.
std::vector<task_case> verified_cases(const task& t) {
  std::vector<task_case> cases;
  for (const task_case& at : t.cases)
    if (runs_on(at, "cuda")) cases.push_back(at);
  if (cases.empty()) throw export_error("the task " + t.name + " has no case for GPUs");
  std::stable_partition(cases.begin(), cases.end(), [](const task_case& at) { return at.timed; });
  return cases;
}

// Returns a comment that lists tensors with their shapes.
std::string described(const std::vector<tensor_spec>& tensors, const task_case& at) {
  if (tensors.empty()) return "  //   none\n";
  return listed(tensors, "", [&](const tensor_spec& spec) {
    return "  //   " + spec.name + " " + sizes(resolve_shape(spec, at)) + " " +
           std::string(name_of(spec.type)) + "\n";
  });
}

std::string table(const std::vector<tensor_spec>& tensors, const std::vector<task_case>& cases) {
  std::string text = "{\n";
  for (const tensor_spec& spec : tensors) {
    const auto shape = [&](const task_case& at) { return sizes(resolve_shape(spec, at)); };
    const std::string drawn =
        spec.data_file.empty() ? print_drawing(spec, cases.front()) : std::string();
    text += "          {\"" + spec.name + "\", " + scalar_type(spec.type) + ",\n           {" +
            listed(cases, ", ", shape) + "},\n           " + cpp_literal(drawn) + "},\n";
  }
  return text + "      }";
}

// Device code without its includes, which are not allowed within a namespace.
struct device_code {
  std::string includes;
  std::string text;
};

device_code split_includes(const std::string& cuda) {
  static const RE2 include(R"((?m)^[ \t]*#[ \t]*include[ \t]*(<[^>\n]+>)[^\n]*$)");
  // Names with C's linkage would be shared by all exported files of a program.
  static const RE2 c_linkage(R"(extern[ \t\r\n]+"C"[ \t\r\n]+__global__)");
  device_code code{"", take_out_includes(cuda).text};
  re2::StringPiece rest = code.text;
  for (std::string name; RE2::FindAndConsume(&rest, include, &name);)
    code.includes += "#include " + name + "\n";
  RE2::GlobalReplace(&code.text, include, "");
  RE2::GlobalReplace(&code.text, c_linkage, "__global__");
  return code;
}

std::string kernel_table(const variant_document& variant) {
  static const RE2 grid(R"(\b(this_grid|grid_group)\b)");
  const std::string flag_of_all = flag(RE2::PartialMatch(blank_comments(variant.cuda), grid));
  std::string text = "std::map<std::string, launcher> kernels() {\n  return {\n";
  for (const std::string& name : launched_names(variant.python, variant.cuda)) {
    text += "      {\"" + name + "\", launcher_of(\"" + name + "\", &" + name + ", " + flag_of_all +
            ")},\n";
  }
  return text + "  };\n}\n";
}

std::string facts(const task& t, const variant_document& variant,
                  const std::vector<task_case>& cases) {
  std::string text = "const facts_of_variant& facts() {\n  static const facts_of_variant all{\n";
  text += "      .program = " + cpp_literal(functions_of_program(variant.python)) + ",\n";
  text += "      .original = " + cpp_literal(functions_of_program(t.reference)) + ",\n";
  text += "      .kernels = device::kernels(),\n";
  text += "      .tf32 = " + flag(variant.options.tf32) + ",\n";
  text += "      .cudnn_benchmark = " + flag(variant.options.cudnn_benchmark) + ",\n";
  text += "      .cuda_graph = " + flag(variant.options.cuda_graph) + ",\n";
  text += "      .uses_streams = " + flag(calls_function(variant.python, "stream")) + ",\n";
  text += "      .inputs = " + table(t.inputs, cases) + ",\n";
  text += "      .parameters = " + table(t.parameters, cases) + ",\n      .tolerances = {\n";
  for (const dtype type : {dtype::float64, dtype::float32, dtype::float16, dtype::bfloat16}) {
    const tolerance allowed = export_tolerance(t, type);
    text += "          {" + scalar_type(type) + ", {" + print_exactly(allowed.rtol) + ", " +
            print_exactly(allowed.atol) + "}},\n";
  }
  return text + "      },\n  };\n  return all;\n}\n";
}

std::string head(const task& t, const variant_document& variant,
                 const std::vector<std::string>& notes, const std::string& space) {
  std::string flags = "-std=c++20 -O3 -arch=native";
  if (variant.options.fast_math) flags += " --use_fast_math";
  if (variant.options.max_registers)
    flags += " -maxrregcount=" + std::to_string(*variant.options.max_registers);
  std::string text = comment(t.name + ": a variant of a module, exported by Hone.") + comment("");
  for (const std::string& note : notes) text += comment(note);
  const std::vector<std::string> usage = {
      "",
      "The file needs LibTorch for CUDA and nothing else. It begins with the declaration of",
      space + "::model. With HONE_DECLARATION_ONLY defined, it is that declaration alone, for the",
      "other files of a program. With HONE_MAIN, it is a program that compares the variant and the",
      "original. To compile that, with LibTorch in $TORCH (the folder of Python's torch is one):",
      "",
      "  nvcc " + flags + " -DHONE_MAIN \\",
      "    -I$TORCH/include -I$TORCH/include/torch/csrc/api/include FILE.cu -o compare \\",
      "    -L$TORCH/lib -Xlinker -rpath,$TORCH/lib -Xlinker --no-as-needed \\",
      "    -ltorch -ltorch_cpu -ltorch_cuda -lc10 -lc10_cuda",
  };
  for (const std::string& line : usage) text += line.empty() ? "//\n" : "// " + line + "\n";
  return text;
}

}  // namespace

std::string print_cuda_file(const task& t, const variant_document& variant,
                            const std::vector<std::string>& notes) {
  static const RE2 word(R"(\W)");
  std::string space = "hone_" + t.name;
  RE2::GlobalReplace(&space, word, "_");
  const std::vector<task_case> cases = verified_cases(t);
  const device_code code = split_includes(variant.cuda);

  std::string declared(declaration);
  RE2::Replace(&declared, "PARAMETERS", described(t.parameters, cases.front()));
  RE2::Replace(&declared, "INPUTS", described(t.inputs, cases.front()));
  std::string names(embedded::exported_names);
  RE2::GlobalReplace(&names, R"((?m)^#include .*\n)", "");
  RE2::GlobalReplace(&names, R"(namespace hone\b)", "namespace hone_exported");

  std::string text;
  text += declared + "\n#ifndef HONE_DECLARATION_ONLY\n" + std::string(includes) + code.includes;
  text +=
      "\n// ---- What the names in host programs mean.\n\nnamespace hone_exported::embedded {\n";
  text += "constexpr std::string_view functional = " +
          cpp_literal(std::string(embedded::exported_functional)) + ";\n}\n" + names + "\n";
  for (const std::string_view part :
       {embedded::cuda_file_launches, embedded::cuda_file_host_program, embedded::cuda_file_model,
        embedded::cuda_file_comparison})
    text += std::string(part) + "\n";
  text +=
      "// ---- The variant: device code, host program, settings, and what it was verified for.\n";
  text += "\nnamespace hone_exported {\nnamespace device {\n" + exported_declarations(code.text) +
          "\n" + code.text + "\n" + kernel_table(variant) + "\n}  // namespace device\n\n" +
          facts(t, variant, cases) + "\n}  // namespace hone_exported\n\n";
  text +=
      "#ifdef HONE_MAIN\nint main() { return hone_exported::compare_with_original(); }\n#endif\n";
  text += "#endif  // HONE_DECLARATION_ONLY\n";
  RE2::GlobalReplace(&text, "\\bhone_exported\\b", space);
  RE2::GlobalReplace(&text, "\"hone::", "\"" + space + "::");
  return head(t, variant, notes, space) + text;
}

}  // namespace hone
