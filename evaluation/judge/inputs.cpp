#include "evaluation/judge/inputs.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "tasks/safetensors.hpp"

namespace hone {
namespace {

using kind = initializer::kind;

constexpr std::size_t refreshed_elements = 3;

bool is_whole(kind of) { return of == kind::integers || of == kind::permutation; }

double argument(const std::variant<double, std::string>& value, const task_case& at) {
  const auto* name = std::get_if<std::string>(&value);
  return name != nullptr ? static_cast<double>(at.sizes.at(*name)) : std::get<double>(value);
}

// evaluation.md section 2, point 2: applies to normal and uniform inputs without an expression.
void disturb(std::span<float> numbers, distribution how, random_stream& random) {
  switch (how) {
    case distribution::declared: return;
    case distribution::shifted:
      for (float& x : numbers) x = 10 * x + 25;
      return;
    case distribution::small:
      for (float& x : numbers) x /= 1000;
      return;
    case distribution::outliers: {
      const std::size_t count = numbers.empty() ? 0 : std::max<std::size_t>(1, numbers.size() / 5000);
      for (std::size_t i = 0; i < count; ++i) numbers[random.below(numbers.size())] += random.below(2) == 0 ? 500.0F : -500.0F;
      return;
    }
  }
}

void permute(std::span<std::int64_t> row, random_stream& random) {
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = row.size(); i > 1; --i) std::swap(row[i - 1], row[random.below(i)]);
}

// In float32, integers and permutations in int64.
tensor_value draw_raw(const tensor_spec& spec, const task_case& at, distribution how, random_stream& random) {
  tensor_value raw{{is_whole(spec.init.of) ? dtype::int64 : dtype::float32, resolve_shape(spec, at)}, {}};
  raw.bytes.resize(raw.layout.bytes());
  const double a = argument(spec.init.a, at);
  const double b = argument(spec.init.b, at);
  const std::size_t n = raw.layout.elements();
  if (raw.layout.type == dtype::int64) {
    const std::span<std::int64_t> numbers(reinterpret_cast<std::int64_t*>(raw.bytes.data()), n);
    if (spec.init.of == kind::integers) {
      if (!(b > a)) throw reference_error(Outcome::WRONG_RESULT, spec.name + ": integers(" + std::to_string(a) + "," + std::to_string(b) + ") is empty");
      random.fill_integers(numbers, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
    } else {
      const std::size_t row = raw.layout.shape.empty() ? 1 : static_cast<std::size_t>(raw.layout.shape.back());
      for (std::size_t i = 0; row > 0 && i < n; i += row) permute(numbers.subspan(i, row), random);
    }
    return raw;
  }
  const std::span<float> numbers(reinterpret_cast<float*>(raw.bytes.data()), n);
  switch (spec.init.of) {
    case kind::normal:
      random.fill_normal(numbers);
      if (a != 0 || b != 1) {
        for (float& x : numbers) x = static_cast<float>(a) + static_cast<float>(b) * x;
      }
      break;
    case kind::uniform:
      random.fill_uniform(numbers);
      if (a != 0 || b != 1) {
        for (float& x : numbers) x = static_cast<float>(a) + static_cast<float>(b - a) * x;
      }
      break;
    case kind::coin:
      for (float& x : numbers) x = static_cast<float>(random.below(2));
      break;
    default: std::fill(numbers.begin(), numbers.end(), static_cast<float>(a)); break;
  }
  if ((spec.init.of == kind::normal || spec.init.of == kind::uniform) && spec.init.expr.empty()) disturb(numbers, how, random);
  return raw;
}

// A new value for one raw element, as the tensor's initializer draws it.
void redraw_element(tensor_value& raw, std::size_t i, const tensor_spec& spec, const task_case& at, random_stream& random) {
  const double a = argument(spec.init.a, at);
  const double b = argument(spec.init.b, at);
  if (raw.layout.type == dtype::int64) {
    auto* numbers = reinterpret_cast<std::int64_t*>(raw.bytes.data());
    random.fill_integers({numbers + i, 1}, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
    return;
  }
  auto* numbers = reinterpret_cast<float*>(raw.bytes.data());
  float x = 0;
  switch (spec.init.of) {
    case kind::normal:
      random.fill_normal({&x, 1});
      numbers[i] = static_cast<float>(a) + static_cast<float>(b) * x;
      break;
    case kind::uniform: numbers[i] = static_cast<float>(a) + static_cast<float>(b - a) * random.uniform(); break;
    case kind::coin: numbers[i] = static_cast<float>(random.below(2)); break;
    default: break;
  }
}

// One element of `value` (of the tensor's own type) drawn anew; returns false for those that are not drawn one by one.
bool redraw_value(tensor_value& value, std::size_t i, const tensor_spec& spec, const task_case& at, random_stream& random) {
  if (spec.init.of == kind::constant || spec.init.of == kind::permutation) return false;
  tensor_value raw{{is_whole(spec.init.of) ? dtype::int64 : dtype::float32, {1}}, std::vector<std::byte>(is_whole(spec.init.of) ? 8 : 4)};
  redraw_element(raw, 0, spec, at, random);
  const tensor_value cast = raw.layout.type == spec.type ? raw : from_doubles(to_doubles(raw), {spec.type, {1}});
  std::copy(cast.bytes.begin(), cast.bytes.end(), value.bytes.begin() + static_cast<std::ptrdiff_t>(i * cast.bytes.size()));
  return true;
}

std::vector<tensor_layout> layouts(const std::vector<tensor_spec>& tensors, const task_case& at) {
  std::vector<tensor_layout> all;
  for (const tensor_spec& spec : tensors) all.push_back({spec.type, resolve_shape(spec, at)});
  return all;
}

tensor_value load_parameter(const task& t, const tensor_spec& spec, const task_case& at) {
  for (const data_file& file : t.data_files) {
    if (file.name != spec.data_file) continue;
    for (const safetensor& tensor : parse_safetensors(file.bytes)) {
      if (tensor.name != spec.name) continue;
      tensor_value value{{spec.type, resolve_shape(spec, at)}, {}};
      const auto bytes = std::as_bytes(std::span(tensor.bytes));
      value.bytes.assign(bytes.begin(), bytes.end());
      return value;
    }
  }
  throw reference_error(Outcome::INFRASTRUCTURE, "no data for the parameter " + spec.name);
}

}  // namespace

std::vector<tensor_layout> input_recipe::input_layouts() const { return layouts(oracle_->of().inputs, *case_); }
std::vector<tensor_layout> input_recipe::parameter_layouts() const { return layouts(oracle_->of().parameters, *case_); }

drawn_values input_recipe::draw(const std::vector<tensor_spec>& tensors, std::size_t first, distribution how, random_stream& random) {
  drawn_values drawn;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].data_file.empty()) {
      drawn.values.push_back(load_parameter(oracle_->of(), tensors[i], *case_));
      drawn.raw.emplace_back();
      continue;
    }
    tensor_value raw = draw_raw(tensors[i], *case_, how, random);
    drawn.values.push_back(oracle_->realise(first + i, raw));
    drawn.raw.push_back(tensors[i].init.expr.empty() ? tensor_value{} : std::move(raw));
  }
  return drawn;
}

drawn_values input_recipe::draw_inputs(distribution how, random_stream& random) { return draw(oracle_->of().inputs, 0, how, random); }
drawn_values input_recipe::draw_parameters(random_stream& random) {
  return draw(oracle_->of().parameters, oracle_->of().inputs.size(), distribution::declared, random);
}

std::vector<input_recipe::change> input_recipe::refresh(const std::vector<tensor_spec>& tensors, std::size_t first, drawn_values& drawn, random_stream& random) {
  std::vector<change> changes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensor_value& value = drawn.values[i];
    const std::size_t n = value.layout.elements();
    if (n == 0 || !tensors[i].data_file.empty()) continue;
    const std::size_t element = bytes_of(value.layout.type);
    if (!tensors[i].init.expr.empty()) {
      // The expression may move anything anywhere: the whole tensor follows from the changed raw numbers.
      tensor_value& raw = drawn.raw[i];
      if (tensors[i].init.of == kind::constant) continue;
      if (tensors[i].init.of == kind::permutation) {
        raw = draw_raw(tensors[i], *case_, distribution::declared, random);
      } else {
        for (std::size_t k = 0; k < refreshed_elements; ++k) redraw_element(raw, random.below(n), tensors[i], *case_, random);
      }
      value = oracle_->realise(first + i, raw);
      changes.push_back({i, 0, value.bytes.size()});
    } else if (tensors[i].init.of == kind::permutation) {
      const std::size_t row = static_cast<std::size_t>(value.layout.shape.empty() ? 1 : value.layout.shape.back());
      const std::size_t begin = random.below(n / row) * row;
      const std::size_t a = begin + random.below(row);
      const std::size_t b = begin + random.below(row);
      for (std::size_t k = 0; k < element; ++k) std::swap(value.bytes[a * element + k], value.bytes[b * element + k]);
      changes.push_back({i, a * element, element});
      changes.push_back({i, b * element, element});
    } else {
      for (std::size_t k = 0; k < refreshed_elements; ++k) {
        const std::size_t at = random.below(n);
        if (redraw_value(value, at, tensors[i], *case_, random)) changes.push_back({i, at * element, element});
      }
    }
  }
  return changes;
}

void input_recipe::refresh_inputs(drawn_values& drawn, random_stream& random, program_session& session, std::size_t set) {
  for (const change& c : refresh(oracle_->of().inputs, 0, drawn, random)) {
    session.write_input_bytes(set, c.tensor, c.offset, std::span(drawn.values[c.tensor].bytes).subspan(c.offset, c.bytes));
  }
}

void input_recipe::refresh_parameters(drawn_values& drawn, random_stream& random) {
  refresh(oracle_->of().parameters, oracle_->of().inputs.size(), drawn, random);
}

}  // namespace hone
