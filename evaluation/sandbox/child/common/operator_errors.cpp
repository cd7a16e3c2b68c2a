#include "evaluation/sandbox/child/common/operator_errors.hpp"

#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "evaluation/sandbox/child/common/random_factors.hpp"

namespace hone {
namespace {

using c10::IValue;
using kind = rounding_kind;

// Error of a sum of two terms, in roundoffs of the sum of their magnitudes M: the formula for sums
// (operator_errors.hpp) with S = M.
constexpr double error_of_two_terms = 0.7;
constexpr double tf32_roundoff = 0x1p-11;
// Error of a product of two numbers that are rounded to TF32: the root mean square, in roundoffs.
constexpr double tf32_product = 0.6;
// Winograd's algorithm for tiles of 4: the error of its transforms, in roundoffs of
// the root of the sum of squares, as a root mean square over a tile, and the share of each place of
// a tile in each dimension, which is the norm of a row of the last transform.
constexpr double error_of_tiles = 16;
constexpr std::array<float, 4> error_in_tile = {0.33F, 0.47F, 0.87F, 1.71F};

double roundoff(at::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case at::kDouble:
      return 0x1p-53;
    case at::kHalf:
      return 0x1p-11;
    case at::kBFloat16:
      return 0x1p-8;
    default:
      return 0x1p-24;
  }
}

bool is_short(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

// Returns a number that is combined with tensors like `y`. It takes no work on a GPU.
at::Tensor number_like(const at::Tensor& y, double x) {
  return at::scalar_tensor(x, y.options().device(at::kCPU));
}

at::Tensor tensor(const std::vector<IValue>& inputs, std::size_t i) {
  return i < inputs.size() && inputs[i].isTensor() ? inputs[i].toTensor() : at::Tensor();
}

// Lets products and convolutions use TF32 for as long as it lives: magnitudes need no precision.
class fast_products {
 public:
  fast_products() {
    at::globalContext().setAllowTF32CuBLAS(true);
    at::globalContext().setAllowTF32CuDNN(true);
  }
  ~fast_products() {
    at::globalContext().setAllowTF32CuBLAS(cublas_);
    at::globalContext().setAllowTF32CuDNN(cudnn_);
  }
  fast_products(const fast_products&) = delete;
  fast_products& operator=(const fast_products&) = delete;

 private:
  bool cublas_ = at::globalContext().allowTF32CuBLAS();
  bool cudnn_ = at::globalContext().allowTF32CuDNN();
};

// Returns the call's result for arguments that `change` has changed. Factors of the terms, such as
// alpha and beta, lose their signs.
at::Tensor result_for(const finished_operator& call,
                      const std::function<at::Tensor(const at::Tensor&)>& change) {
  std::vector<IValue> arguments = call.inputs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    IValue& value = arguments[i];
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_floating_point())
      value = change(value.toTensor());
    const bool is_factor = call.rule.kind == kind::product && i >= 3 && value.isScalar();
    if (is_factor && value.isDouble()) value = std::abs(value.toDouble());
    if (is_factor && value.isInt()) value = std::abs(value.toInt());
  }
  const fast_products no_precision;
  return call.repeat(std::move(arguments)).front().toTensor();
}

// The number of terms of each sum: one number, or one for each element.
struct term_count {
  double each = 0;
  at::Tensor by_element{};
};

// What terms add up to. Sums of squares are undefined where they are small compared with the square
// of the sum of magnitudes.
struct term_sums {
  at::Tensor sum, magnitude, squares{};
};

// Returns the error of naive accumulation. Reuses the memory of the magnitudes, because tensors may
// fill a large part of a GPU's memory.
at::Tensor accumulated(const term_sums& of, const term_count& terms, double u,
                       bool has_equal_terms) {
  const at::Tensor& sum = of.sum;
  at::Tensor error = at::Tensor(of.magnitude).square_().mul_(1.25);
  if (terms.by_element.defined()) {
    // A fast convolution counts no terms as slightly fewer than none.
    const at::Tensor n = terms.by_element.clamp(0, max_accumulated);
    if (of.squares.defined()) error.addcmul_(n, of.squares, 1.0 / 6);
    error.addcmul_(n * sum, sum, 1.0 / 3).sqrt_().mul_(u / 2);
    if (has_equal_terms) error.addcmul_(n, sum.abs(), u / 8);
    return error;
  }
  const double n = std::min(terms.each, max_accumulated);
  if (of.squares.defined()) error.add_(of.squares, n / 6);
  error.addcmul_(sum, sum, n / 3).sqrt_().mul_(u / 2);
  if (has_equal_terms) error.add_(sum.abs(), u / 8 * n);
  return error;
}

// Returns the relative error of a sum of n positive terms.
double error_of_sum(double n, double u, bool has_equal_terms) {
  n = std::min(n, max_accumulated);
  return u / 2 * std::sqrt(n / 3 + 1.25) + (has_equal_terms ? u / 8 * n : 0);
}

// Returns the number of terms of each sum, not counting those that are zero if the call says so.
term_count terms_of(const finished_operator& call, double count) {
  if (!call.counts_zeros) return {count};
  return {0, result_for(call, [](const at::Tensor& t) { return t.ne(0).to(t.scalar_type()); })};
}

std::int64_t size_of(const at::Tensor& t, std::int64_t dimension) {
  return t.defined() && t.dim() > 0 ? t.size(dimension) : 1;
}

// Returns the number of elements of the first argument for each element of the result.
double terms_of_result(const finished_operator& call) {
  return static_cast<double>(tensor(call.inputs, 0).numel()) /
         static_cast<double>(std::max<std::int64_t>(1, call.y.numel()));
}

double terms_of_product(const finished_operator& call) {
  const bool has_addend = call.name.find("addmm") != std::string_view::npos ||
                          call.name.find("addmv") != std::string_view::npos ||
                          call.name.find("baddbmm") != std::string_view::npos ||
                          call.name.find("addbmm") != std::string_view::npos;
  if (call.name.find("addc") != std::string_view::npos ||
      call.name.find("addr") != std::string_view::npos)
    return 2;
  return static_cast<double>(size_of(tensor(call.inputs, has_addend ? 1 : 0), -1));
}

at::Tensor magnitude_of_terms(const finished_operator& call) {
  return result_for(call, [](const at::Tensor& t) { return t.abs(); });
}

at::Tensor squares_of_terms(const finished_operator& call) {
  return result_for(call, [](const at::Tensor& t) { return t.square(); }).abs_();
}

// Adds the rounding of operands to TF32. Hand-written programs truncate, and then the errors of
// terms of one sign add up. Reuses the memory of the sums of squares.
at::Tensor with_tf32(const at::Tensor& error, at::Tensor squares, const finished_operator& call) {
  if (!call.tf32 || call.y.scalar_type() != at::kFloat) return error;
  return squares.mul_(std::pow(tf32_product * tf32_roundoff, 2))
      .addcmul_(error, error)
      .addcmul_(call.y, call.y, std::pow(tf32_roundoff, 2))
      .sqrt_();
}

operator_error of_product(const finished_operator& call, double u) {
  const double count = terms_of_product(call);
  const at::Tensor squares = squares_of_terms(call);
  const at::Tensor error = accumulated({call.y, magnitude_of_terms(call), squares},
                                       terms_of(call, count), u, call.has_equal_terms);
  return {0, with_tf32(error, squares, call)};
}

// Winograd's and Fourier's algorithms mix the places of an image, so that the error at one place
// depends on the terms at others. Returns u sqrt(256 Q + n / 3 T^2) of the place where this is
// largest, times the share of a place in its tile. T is the size of a term that exceeds all others,
// which accumulation rounds n times.
at::Tensor error_of_mixed_places(const at::Tensor& squares, const finished_operator& call, double n,
                                 double u) {
  at::Tensor error = result_for(call, [](const at::Tensor& t) { return t.abs().pow_(3); });
  error.abs_().pow_(2.0 / 3).mul_(n / 3).add_(squares, error_of_tiles * error_of_tiles);
  std::vector<std::int64_t> places(static_cast<std::size_t>(call.y.dim() - 2));
  std::iota(places.begin(), places.end(), 2);
  error = error.amax(places, true).sqrt_().mul_(u);
  const at::Tensor tile = at::tensor(error_in_tile, error.options());
  for (const std::int64_t d : places) {
    const std::int64_t size = call.y.size(d);
    std::vector<std::int64_t> along(static_cast<std::size_t>(call.y.dim()), 1);
    along[static_cast<std::size_t>(d)] = size;
    error = error * tile.repeat({(size + 3) / 4}).narrow(0, 0, size).view(along);
  }
  return error;
}

operator_error of_convolution(const finished_operator& call, double u) {
  const at::Tensor weight = tensor(call.inputs, 1);
  const at::Tensor squares = squares_of_terms(call);
  const bool is_transposed =
      call.inputs.size() > 6 && call.inputs[6].isBool() && call.inputs[6].toBool();
  double count = static_cast<double>(weight.numel()) /
                 static_cast<double>(std::max<std::int64_t>(
                     1, is_transposed ? size_of(weight, 1) : size_of(weight, 0)));
  // A stride of a transposed convolution skips places between the inputs.
  if (is_transposed) {
    for (const std::int64_t stride : call.inputs[3].toIntVector())
      count /= static_cast<double>(stride);
    count = std::max(count, 1.0);
  }
  at::Tensor error = accumulated({call.y, magnitude_of_terms(call), squares}, terms_of(call, count),
                                 u, call.has_equal_terms);
  const bool has_images = weight.dim() > 2 && weight.dim() == call.y.dim();
  if (has_images && weight.numel() > weight.size(0) * weight.size(1))
    error = at::maximum(error, error_of_mixed_places(squares, call, count, u));
  return {0, with_tf32(error, squares, call)};
}

operator_error of_sum(const finished_operator& call, double u) {
  const double count = terms_of_result(call);
  term_count terms{std::max(count, 2.0)};
  const bool is_mean = call.name == "aten::mean";
  const bool is_whole = is_mean || call.name == "aten::sum";
  if (call.counts_zeros && is_whole) {
    terms = terms_of(call, count);
    if (is_mean) terms.by_element.mul_(count);
  }
  at::Tensor squares;  // not of the short sums of averages over windows
  if (is_whole) squares = squares_of_terms(call);
  if (is_mean) squares.div_(count);
  return {u,
          accumulated({call.y, magnitude_of_terms(call), squares}, terms, u, call.has_equal_terms)};
}

// Returns the sum of the magnitudes of an argument's terms.
at::Tensor magnitude_of(const finished_operator& call, std::size_t i) {
  const IValue& value = call.inputs[i];
  if (!value.isTensor()) return number_like(call.y, std::abs(value.toScalar().toDouble()));
  const at::Tensor expanded = call.expanded(value.toTensor());
  return expanded.defined() ? expanded : value.toTensor().abs();
}

operator_error of_terms(const finished_operator& call, double u) {
  const bool has_factor = call.inputs.size() > 2 && call.inputs[2].isScalar() &&
                          call.name.find("lerp") == std::string_view::npos;
  const double factor = has_factor ? std::abs(call.inputs[2].toScalar().toDouble()) : 1;
  const at::Tensor magnitude = at::add(magnitude_of(call, 0), magnitude_of(call, 1), factor);
  operator_error error{u, magnitude * (error_of_two_terms * u)};
  if (call.y.numel() <= max_expanded) error.magnitude = magnitude;
  return error;
}

bool is_polynomial(const finished_operator& call, std::size_t i) {
  return i < call.inputs.size() && call.inputs[i].isTensor() &&
         call.expanded(call.inputs[i].toTensor()).defined();
}

operator_error of_factors(const finished_operator& call, double u) {
  const bool is_square = call.name.find("square") != std::string_view::npos;
  if (!is_polynomial(call, 0) && !is_polynomial(call, 1)) return {2 * u};
  const at::Tensor magnitude = magnitude_of(call, 0) * magnitude_of(call, is_square ? 0 : 1);
  return {2 * u, magnitude.mul(u), magnitude};
}

operator_error of_running_sums(const finished_operator& call, double u) {
  const at::Tensor x = tensor(call.inputs, 0);
  if (x.dim() == 0) return {2 * u};
  const std::int64_t dimension =
      call.inputs.size() > 1 && call.inputs[1].isInt() ? call.inputs[1].toInt() : -1;
  const at::Tensor magnitude = x.abs().to(call.y.scalar_type()).sum(dimension, true);
  const at::Tensor largest = call.y.abs().amax(dimension, true);
  const term_count terms{static_cast<double>(x.size(dimension))};
  const at::Tensor squares = x.square().to(call.y.scalar_type()).sum(dimension, true);
  return {
      u,
      accumulated({largest, magnitude, squares}, terms, u, call.has_equal_terms).expand_as(call.y)};
}

// |x - y| computed as sqrt(x^2 + y^2 - 2 x y).
operator_error of_distance(const finished_operator& call, double u) {
  const at::Tensor a = tensor(call.inputs, 0);
  const at::Tensor b = tensor(call.inputs, 1);
  const double n = static_cast<double>(size_of(a, -1));
  if (!b.defined()) return {u * (2 + std::sqrt(std::min(n, max_accumulated)))};
  const at::Tensor squares = a.square().sum(-1).unsqueeze(-1) + b.square().sum(-1).unsqueeze(-2);
  const at::Tensor error =
      accumulated({squares, squares.clone()}, {n}, u, call.has_equal_terms).mul_(2);
  return {2 * u, error / at::maximum(call.y.mul(2), error.sqrt())};
}

at::Tensor safe_log(const at::Tensor& y) { return y.abs().log().clamp_min(-1000); }

std::int64_t dimension_of(const finished_operator& call) {
  return call.inputs.size() > 1 && call.inputs[1].isInt() ? call.inputs[1].toInt() : -1;
}

// Programs may round the exponents before the largest one is subtracted.
operator_error of_softmax(const finished_operator& call, double u) {
  const at::Tensor exponents = tensor(call.inputs, 0).abs().to(call.y.scalar_type());
  const at::Tensor largest = at::nan_to_num(exponents, 0, 0, 0).amax(dimension_of(call), true);
  const double n = static_cast<double>(size_of(call.y, dimension_of(call)));
  return {2 * u + error_of_sum(n, u, call.has_equal_terms),
          call.y.mul(exponents.add_(largest)).mul_(u)};
}

operator_error of_power(const finished_operator& call, double u) {
  const bool is_square = call.name == "aten::pow" && call.inputs.size() == 2 &&
                         call.inputs[1].isScalar() && call.inputs[0].isTensor() &&
                         call.inputs[1].toScalar().toDouble() == 2;
  if (is_square && is_polynomial(call, 0)) {
    const at::Tensor magnitude = magnitude_of(call, 0).square();
    return {2 * u, magnitude.mul(u), magnitude};
  }
  return {0, call.y.abs().mul_(safe_log(call.y).abs().add_(2)).mul_(u)};
}

operator_error of_function(const finished_operator& call, double u) {
  const operator_rounding& rule = call.rule;
  operator_error error{rule.cy * u};
  const at::Tensor x = tensor(call.inputs, 0);
  if (rule.cx > 0 && x.defined() && x.sizes() == call.y.sizes()) {
    error.absolute = x.abs().mul_(rule.cx * u).add_(rule.c0 * u);
  } else if (rule.c0 > 0) {
    error.absolute = number_like(call.y, rule.c0 * u);
  }
  return error;
}

}  // namespace

operator_error error_of(const finished_operator& call) {
  const at::Tensor& y = call.y;
  const double u = roundoff(y.scalar_type());
  if (y.is_complex()) return {2 * u};
  if (call.is_one_over_one_plus_exp) return {0, number_like(y, 2 * u)};
  // The libraries accumulate numbers of 16 bits in float32 and round once.
  const bool accumulates = call.rule.kind == kind::product || call.rule.kind == kind::convolution ||
                           call.rule.kind == kind::sum || call.rule.kind == kind::norm;
  if (accumulates && is_short(y.scalar_type())) return {2 * u};
  switch (call.rule.kind) {
    case kind::unit:
      return of_function(call, u);
    case kind::multiplicative:
      return of_factors(call, u);
    case kind::logarithmic:
      return of_power(call, u);
    case kind::additive:
      return of_terms(call, u);
    case kind::product:
      return of_product(call, u);
    case kind::convolution:
      return of_convolution(call, u);
    case kind::sum:
      return of_sum(call, u);
    case kind::cumulative:
      return of_running_sums(call, u);
    case kind::running_power:
      return {u * (2 + std::sqrt(std::min(terms_of_result(call), max_accumulated)))};
    case kind::norm:
      return {u + error_of_sum(terms_of_result(call), u, call.has_equal_terms)};
    case kind::distance:
      return of_distance(call, u);
    case kind::softmax:
      return of_softmax(call, u);
    case kind::log_softmax: {
      const double n = static_cast<double>(size_of(y, dimension_of(call)));
      const at::Tensor sizes = tensor(call.inputs, 0).abs().to(y.scalar_type()).add_(y.abs());
      return {0, sizes.mul_(u).add_(2 * u + error_of_sum(n, u, call.has_equal_terms))};
    }
    case kind::conversion: {
      const at::Tensor x = tensor(call.inputs, 0);
      const bool rounds = x.defined() && x.is_floating_point() && roundoff(x.scalar_type()) < u;
      return {rounds ? 2 * u : 0};
    }
    default:
      return {2 * u};
  }
}

at::Tensor perturbed(const at::Tensor& argument, double amplitude) {
  if (argument.numel() == 0) return argument;
  const double u = roundoff(argument.scalar_type());
  const at::Tensor magnitudes = argument.abs();
  std::vector<std::int64_t> last;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(2, argument.dim()); ++d) last.push_back(-d);
  const at::Tensor largest = last.empty() ? magnitudes : magnitudes.amax(last, true);
  return argument + random_factors(argument) * largest.mul(4 * u * amplitude);
}

}  // namespace hone
