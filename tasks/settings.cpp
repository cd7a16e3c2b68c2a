#include "tasks/settings.hpp"

#include "tasks/reading_toml.hpp"

namespace hone {
namespace {

// More than all settings take. The parser of TOML calls itself for each part of a dotted key.
constexpr std::size_t max_bytes = 4096;

}  // namespace

settings parse_settings(std::string_view toml_text) {
  settings parsed;
  if (toml_text.size() > max_bytes)
    throw format_error("toml block", 1, "",
                       "has more than " + std::to_string(max_bytes) + " bytes");
  if (toml_text.find_first_not_of(" \t\n") == std::string_view::npos) return parsed;
  const toml::table table = parse_toml(toml_text, "toml block");
  toml_view view(table, "toml block");
  parsed.fast_math = view.find_bool("fast_math").value_or(false);
  parsed.tf32 = view.find_bool("tf32").value_or(false);
  parsed.cudnn_benchmark = view.find_bool("cudnn_benchmark").value_or(false);
  parsed.cuda_graph = view.find_bool("cuda_graph").value_or(false);
  if (auto registers = view.find_integer("max_registers")) {
    if (*registers < 16 || *registers > 255)
      view.refuse("max_registers", "is " + std::to_string(*registers) + ", expected 16 to 255");
    parsed.max_registers = static_cast<int>(*registers);
  }
  view.finish();
  return parsed;
}

std::string print_settings(const settings& s) {
  std::string text;
  if (s.cuda_graph) text += "cuda_graph = true\n";
  if (s.cudnn_benchmark) text += "cudnn_benchmark = true\n";
  if (s.fast_math) text += "fast_math = true\n";
  if (s.max_registers) text += "max_registers = " + std::to_string(*s.max_registers) + "\n";
  if (s.tf32) text += "tf32 = true\n";
  return text;
}

}  // namespace hone
