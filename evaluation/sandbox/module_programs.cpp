#include "evaluation/sandbox/module_programs.hpp"

namespace hone {
namespace {

// Returns the module that a task was imported from, or one that calls its reference.
std::string module_text(const task& t) {
  if (t.source_language == "python") return t.source_text;
  return "import math\n"
         "from typing import *\n"
         "import torch\n"
         "import torch.nn.functional as F\n"
         "from torch import Tensor\n" +
         t.reference +
         "\nclass Model(torch.nn.Module):\n"
         "    def forward(self, *inputs):\n"
         "        return forward(*inputs)\n";
}

}  // namespace

program_source module_program(const std::string& text, const task& t) {
  return {text, t.inputs.size(), 0, task_module{module_text(t), {}}};
}

program_source module_of(const task& t) {
  task_module shown{module_text(t), {}};
  for (const tensor_spec& one : t.parameters) shown.parameters.push_back(one.name);
  return {module_text(t), t.inputs.size(), t.parameters.size(), std::move(shown)};
}

std::string problem_of_modules(const task& t) {
  if (t.parameters.empty() || t.source_language == "python") return {};
  return "the task " + t.name +
         " has parameters and was not imported from a module (hone task import), whose constructor "
         "would draw the parameters of ModelNew";
}

}  // namespace hone
