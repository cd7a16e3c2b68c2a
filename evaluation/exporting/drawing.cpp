#include "evaluation/exporting/drawing.hpp"

#include <cmath>
#include <sstream>

namespace hone {
namespace {

// Prints a number with a point, which TorchScript takes for a float.
std::string real(double x) {
  const std::string text = print_exactly(x);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string whole(double x) { return std::to_string(static_cast<std::int64_t>(x)); }

}  // namespace

std::string print_exactly(double x) {
  if (std::isinf(x)) return x > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  std::ostringstream out;
  out.precision(17);
  out << x;
  return out.str();
}

double value_of(const std::variant<double, std::string>& argument, const task_case& at) {
  if (const auto* value = std::get_if<double>(&argument)) return *value;
  return static_cast<double>(at.sizes.at(std::get<std::string>(argument)));
}

std::string print_drawing(const tensor_spec& tensor, const task_case& at) {
  std::string shape;
  for (const std::int64_t n : resolve_shape(tensor, at))
    shape += (shape.empty() ? "" : ", ") + std::to_string(n);
  shape = "[" + shape + "]";
  const double a = value_of(tensor.init.a, at);
  const double b = value_of(tensor.init.b, at);
  std::string values;
  switch (tensor.init.of) {
    case initializer::kind::normal:
      values = "torch.randn(" + shape + ") * " + real(b) + " + " + real(a);
      break;
    case initializer::kind::uniform:
      values = "torch.rand(" + shape + ") * " + real(b - a) + " + " + real(a);
      break;
    case initializer::kind::integers:
      values = "torch.randint(" + whole(a) + ", " + whole(b) + ", " + shape + ")";
      break;
    case initializer::kind::constant:
      values = "torch.full(" + shape + ", " + real(a) + ")";
      break;
    case initializer::kind::permutation:
      values = "torch.argsort(torch.rand(" + shape + "), dim=-1)";
      break;
    case initializer::kind::coin:
      values = "torch.rand(" + shape + ") < 0.5";
      break;
  }
  return "def draw() -> Tensor:\n    x = " + values + "\n    return " +
         (tensor.init.expr.empty() ? "x" : tensor.init.expr) + "\n";
}

}  // namespace hone
