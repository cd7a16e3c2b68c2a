#include <array>
#include <charconv>

#include "tasks/task_file.hpp"

namespace hone {
namespace {

// Returns the text as a TOML basic string.
std::string toml_string(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += digits[static_cast<unsigned char>(c) >> 4U];
      out += digits[static_cast<unsigned char>(c) & 15U];
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Returns source text as a literal multi-line TOML string if that can hold it, or else as an
// escaped basic string.
std::string source_string(const std::string& text) {
  bool is_plain = text.find("'''") == std::string::npos && !text.ends_with('\'');
  for (const char c : text)
    is_plain =
        is_plain && (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') && c != 0x7f;
  return is_plain ? "'''\n" + text + "'''" : toml_string(text);
}

std::string number(double value) {
  std::array<char, 40> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

std::string float_literal(double value) {
  const std::string text = number(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string argument(const std::variant<double, std::string>& value) {
  const auto* name = std::get_if<std::string>(&value);
  return name != nullptr ? *name : number(std::get<double>(value));
}

std::string distribution_name(const initializer& init) {
  const std::string both = "(" + argument(init.a) + "," + argument(init.b) + ")";
  switch (init.of) {
    case initializer::kind::normal:
      return "normal" + both;
    case initializer::kind::uniform:
      return "uniform" + both;
    case initializer::kind::integers:
      return "integers" + both;
    case initializer::kind::constant:
      return "constant(" + argument(init.a) + ")";
    case initializer::kind::permutation:
      return "permutation";
    case initializer::kind::coin:
      return "";
  }
  return "";
}

std::string print_tensor(const tensor_spec& tensor) {
  std::string text = "name = " + toml_string(tensor.name) + "\nshape = [";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto* size = std::get_if<std::int64_t>(&tensor.shape[i]);
    text += (i > 0 ? ", " : "") + (size != nullptr
                                       ? std::to_string(*size)
                                       : toml_string(std::get<std::string>(tensor.shape[i])));
  }
  text += "]\n";
  if (tensor.type != dtype::float32) text += "dtype = " + toml_string(name_of(tensor.type)) + "\n";
  if (tensor.is_fixed) text += "fixed = true\n";
  if (!tensor.data_file.empty()) return text + "data = " + toml_string(tensor.data_file) + "\n";
  const std::string init = toml_string(distribution_name(tensor.init));
  if (!tensor.init.expr.empty())
    return text + "init = { of = " + init + ", expr = " + toml_string(tensor.init.expr) + " }\n";
  const bool is_default = tensor.init == initializer{} || tensor.init.of == initializer::kind::coin;
  return is_default ? text : text + "init = " + init + "\n";
}

std::string print_case(const task_case& at) {
  std::string text;
  if (!at.sizes.empty()) {
    std::string sizes;
    for (const auto& [name, value] : at.sizes)
      sizes += (sizes.empty() ? "" : ", ") + name + " = " + std::to_string(value);
    text += "sizes = { " + sizes + " }\n";
  }
  if (at.timed) text += "timed = true\n";
  if (!at.on.empty()) {
    std::string kinds;
    for (const std::string& kind : at.on) kinds += (kinds.empty() ? "" : ", ") + toml_string(kind);
    text += "on = [" + kinds + "]\n";
  }
  return text;
}

}  // namespace

std::string print_contents(const tensor_spec& tensor) {
  if (!tensor.data_file.empty()) return tensor.data_file;
  const bool is_coin = tensor.init.of == initializer::kind::coin;
  const std::string drawn = is_coin ? "coin" : distribution_name(tensor.init);
  return tensor.init.expr.empty() ? drawn : drawn + ", " + tensor.init.expr;
}

std::string fixed_tensors(const task& t) {
  std::string names;
  for (const auto* tensors : {&t.inputs, &t.parameters}) {
    for (const tensor_spec& tensor : *tensors) {
      if (tensor.is_fixed) names += (names.empty() ? "" : ", ") + tensor.name;
    }
  }
  return names;
}

std::string print_task(const task& t) {
  std::string text = "name = " + toml_string(t.name) + "\n";
  if (!t.summary.empty()) text += "summary = " + toml_string(t.summary) + "\n";
  if (t.relaxed) text += "precision = \"relaxed\"\n";
  if (!t.has_result) text += "has_result = false\n";
  if (t.tier > 0) text += "tier = " + std::to_string(t.tier) + "\n";
  if (t.distributions.size() != listed_distributions.size()) {
    std::string names;
    for (const distribution d : t.distributions)
      names += (names.empty() ? "" : ", ") + toml_string(name_of(d));
    text += "distributions = [" + names + "]\n";
  }
  text += "reference = " + source_string(t.reference) + "\n";
  if (!t.tolerances.empty()) {
    text += "[tolerance]\n";
    for (const auto& [type, limits] : t.tolerances) {
      text += std::string(name_of(type)) + " = { rtol = " + float_literal(limits.rtol) +
              ", atol = " + float_literal(limits.atol) + " }\n";
    }
  }
  for (const tensor_spec& input : t.inputs) text += "[[input]]\n" + print_tensor(input);
  for (const tensor_spec& parameter : t.parameters)
    text += "[[parameter]]\n" + print_tensor(parameter);
  for (const task_case& at : t.cases) text += "[[case]]\n" + print_case(at);
  if (!t.source_text.empty()) {
    text += "[source]\nlanguage = " + toml_string(t.source_language) +
            "\ntext = " + source_string(t.source_text) + "\n";
  }
  return text;
}

}  // namespace hone
