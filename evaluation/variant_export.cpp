#include "evaluation/variant_export.hpp"

#include "evaluation/exporting/cuda_file.hpp"
#include "evaluation/exporting/torch_module.hpp"
#include "tasks/program_functions.hpp"

namespace hone {

const std::vector<std::string>& export_forms() {
  static const std::vector<std::string> forms = {"torch", "onefile.cu"};
  return forms;
}

std::string export_variant(std::string_view form, const task& t, const variant_document& variant,
                           const std::vector<std::string>& notes) {
  if (is_python_module(variant.python)) {
    if (form != "torch") throw export_error("a Python module is exported as torch");
    std::string text;
    for (const std::string& note : notes) text += "# " + note + "\n";
    return text + variant.python;
  }
  if (form == "torch") return print_torch_module(t, variant, notes);
  if (form == "onefile.cu") return print_cuda_file(t, variant, notes);
  throw export_error("there is no form '" + std::string(form) + "'");
}

}  // namespace hone
