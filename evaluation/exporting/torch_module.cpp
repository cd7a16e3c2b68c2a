#include "evaluation/exporting/torch_module.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "embedded/torch_device_code.hpp"
#include "embedded/torch_drop_in.hpp"
#include "embedded/torch_host_program.hpp"
#include "evaluation/compile/cuda_source.hpp"
#include "evaluation/exporting/drawing.hpp"
#include "tasks/program_functions.hpp"

namespace hone {
namespace {

// Returns the text with a backslash in front of backslashes and quotes.
std::string escaped(const std::string& text, char quote) {
  std::string all;
  for (const char c : text) {
    if (c == '\\' || c == quote) all += '\\';
    all += c;
  }
  return all;
}

// Returns a Python literal of the text. A raw literal is the easiest to read.
std::string python_literal(const std::string& text) {
  const bool can_be_raw =
      text.find("'''") == std::string::npos && !text.ends_with('\\') && !text.ends_with('\'');
  return can_be_raw ? "r'''" + text + "'''" : "'''" + escaped(text, '\'') + "'''";
}

std::string indented(const std::string& text) {
  std::istringstream in(text);
  std::string all;
  for (std::string line; std::getline(in, line);) all += (line.empty() ? "" : "    " + line) + "\n";
  return all;
}

// Returns a Python tuple of the elements, printed by `print`.
template <class Elements, class Print>
std::string tuple_of(const Elements& elements, Print print) {
  std::string text;
  for (const auto& element : elements) text += (text.empty() ? "" : ", ") + print(element);
  return "(" + text + (elements.size() == 1 ? ",)" : ")");
}

std::string shape_of(const tensor_spec& tensor, const task_case& at) {
  return tuple_of(resolve_shape(tensor, at), [](std::int64_t n) { return std::to_string(n); });
}

std::string torch_type(dtype type) { return "_hone_torch." + std::string(name_of(type)); }

// Returns a call that draws a tensor as the task does.
std::string drawing(const tensor_spec& tensor, const task_case& at) {
  static const std::map<initializer::kind, std::string> kinds = {
      {initializer::kind::normal, "normal"},     {initializer::kind::uniform, "uniform"},
      {initializer::kind::integers, "integers"}, {initializer::kind::constant, "constant"},
      {initializer::kind::coin, "coin"},         {initializer::kind::permutation, "permutation"}};
  std::string call = "_hone_draw(\"" + kinds.at(tensor.init.of) + "\", " + shape_of(tensor, at) +
                     ", " + torch_type(tensor.type) + ", " +
                     print_exactly(value_of(tensor.init.a, at)) + ", " +
                     print_exactly(value_of(tensor.init.b, at));
  if (!tensor.init.expr.empty()) call += ", lambda torch, x: " + tensor.init.expr;
  return call + ")";
}

// Returns the case with which a user is most likely to begin: the first that is timed on a GPU.
const task_case& typical_case(const task& t) {
  const auto on_gpu = std::find_if(t.cases.begin(), t.cases.end(), [](const task_case& at) {
    return at.timed && runs_on(at, "cuda");
  });
  return on_gpu != t.cases.end() ? *on_gpu : t.cases.front();
}

// Returns a factory of a host program's functions, which closes over the names that the program
// takes from its surroundings.
std::string program(const std::string& name, const std::string& text, bool has_prepare) {
  return "def " + name + "(torch, F, math, launch, stream, join):\n" + indented(text) +
         "    return forward, " + (has_prepare ? "prepare" : "None") + "\n";
}

constexpr const char* original_on_a_device = R"py(

_hone_originals = {}


def _hone_original_on(device):
    if device not in _hone_originals:
        operators = _hone_Operators()
        operators.device = device
        _hone_originals[device] = _hone_reference(operators, F, math, None, None, None)[0]
    return _hone_originals[device]


)py";

// Returns a module for a task that was written without one.
std::string written_module(const task& t) {
  const task_case& at = typical_case(t);
  std::string text =
      program("_hone_reference", functions_of_program(t.reference), false) + original_on_a_device;
  text += "class Model(_hone_torch.nn.Module):\n";
  text += "    \"\"\"" + plain_line(t.summary.empty() ? t.name : t.summary) + ".\"\"\"\n\n";
  text += "    def __init__(self):\n        super().__init__()\n";
  for (const tensor_spec& p : t.parameters) {
    if (!p.data_file.empty())
      throw export_error("the values of the parameter " + p.name + " are in the task's data file " +
                         p.data_file + ", which a module without a source cannot carry");
    text += is_floating(p.type)
                ? "        self." + p.name + " = _hone_torch.nn.Parameter(" + drawing(p, at) + ")\n"
                : "        self.register_buffer(\"" + p.name + "\", " + drawing(p, at) + ")\n";
  }
  text += "\n";
  std::string inputs;
  std::string arguments;
  for (const tensor_spec& input : t.inputs) inputs += ", " + input.name;
  for (const tensor_spec& input : t.inputs) arguments += input.name + ", ";
  for (const tensor_spec& p : t.parameters) arguments += "self." + p.name + ", ";
  if (!arguments.empty()) arguments.resize(arguments.size() - 2);
  text += "    def forward(self" + inputs + "):\n";
  text += "        return _hone_original_on(" + t.inputs.front().name + ".device)(" + arguments +
          ")\n\n\n";
  text += "def get_inputs():\n    return [\n";
  for (const tensor_spec& input : t.inputs) text += "        " + drawing(input, at) + ",\n";
  text += "    ]\n\n\ndef get_init_inputs():\n    return []\n";
  return text;
}

std::string facts(const task& t, const variant_document& variant) {
  const settings& s = variant.options;
  const auto flag = [](bool value) { return value ? "True" : "False"; };
  std::string text = "_hone_SETTINGS = {\n";
  text += "    \"fast_math\": " + std::string(flag(s.fast_math)) + ",\n";
  text +=
      "    \"max_registers\": " + (s.max_registers ? std::to_string(*s.max_registers) : "None") +
      ",\n";
  text += "    \"tf32\": " + std::string(flag(s.tf32)) + ",\n";
  text += "    \"cudnn_benchmark\": " + std::string(flag(s.cudnn_benchmark)) + ",\n";
  text += "    \"cuda_graph\": " + std::string(flag(s.cuda_graph)) + ",\n}\n";
  text += "_hone_KERNELS = [";
  for (const std::string& kernel : launched_names(variant.python, variant.cuda))
    text += '"' + escaped(kernel, '"') + "\", ";
  text += "]\n_hone_USES_STREAMS = " + std::string(flag(calls_function(variant.python, "stream"))) +
          "\n_hone_INPUTS = " + std::to_string(t.inputs.size()) + "\n_hone_PARAMETERS = {\n";
  for (const tensor_spec& p : t.parameters)
    text += "    \"" + p.name + "\": " + torch_type(p.type) + ",\n";
  text += "}\n# The relative and absolute tolerances of the task.\n_hone_TOLERANCES = {\n";
  for (const dtype type : {dtype::float64, dtype::float32, dtype::float16, dtype::bfloat16}) {
    const tolerance allowed = export_tolerance(t, type);
    text += "    \"" + std::string(name_of(type)) + "\": (" + print_exactly(allowed.rtol) + ", " +
            print_exactly(allowed.atol) + "),\n";
  }
  text +=
      "}\n# The shapes and types of the inputs for which variants of the task are verified, and\n"
      "# the shapes of the parameters there.\n_hone_VERIFIED = {\n";
  for (const task_case& at : t.cases) {
    if (!runs_on(at, "cuda")) continue;
    const auto input = [&](const tensor_spec& spec) {
      return "(" + shape_of(spec, at) + ", " + torch_type(spec.type) + ")";
    };
    const auto parameter = [&](const tensor_spec& spec) { return shape_of(spec, at); };
    text += "    " + tuple_of(t.inputs, input) + ": " + tuple_of(t.parameters, parameter) + ",\n";
  }
  return text + "}\n";
}

}  // namespace

std::string print_torch_module(const task& t, const variant_document& variant,
                               const std::vector<std::string>& notes) {
  const bool has_source = t.source_language == "python" && defines_class(t.source_text, "Model");
  std::string source = has_source ? t.source_text + "\n" : "\n" + written_module(t);
  std::string text =
      "\"\"\"" + plain_line(t.name) + ": a variant of a module, exported by Hone.\n\n";
  for (const std::string& note : notes) text += plain_line(note) + "\n";
  text +=
      "\n`ModelNew` takes the place of `Model`. The file needs torch with CUDA and nothing else.\n";
  text += "\"\"\"\n\n" + take_future_imports(source);
  text += "# ---- The original module.\n\n";
  text +=
      "import math\nfrom typing import Dict, List, Optional, Tuple\n\nimport torch as "
      "_hone_torch\n";
  text += "import torch.nn.functional as F\nfrom torch import Tensor\n\n";
  text += source;
  text +=
      "\n\n# ---- The variant: device code, host program, settings, and what it was verified "
      "for.\n\n";
  text += "_hone_CUDA = " + python_literal(take_out_includes(variant.cuda).text) + "\n\n\n";
  text += program("_hone_program", functions_of_program(variant.python),
                  defines_function(variant.python, "prepare"));
  text += "\n\n" + facts(t, variant);
  text += "\n# The declarations that device code finds.\n_hone_PRELUDE = " +
          python_literal(exported_declarations(variant.cuda)) + "\n\n\n";
  for (const std::string_view part :
       {embedded::torch_device_code, embedded::torch_host_program, embedded::torch_drop_in})
    text += "\n\n" + std::string(part);
  return text;
}

}  // namespace hone
