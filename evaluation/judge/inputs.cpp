#include "evaluation/judge/inputs.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>

#include "evaluation/judge/variation.hpp"

namespace hone {

using kind = initializer::kind;

dtype raw_type(const tensor_spec& spec) {
  return spec.init.of == kind::integers || spec.init.of == kind::permutation ? dtype::int64
                                                                             : dtype::float32;
}

double argument_of(const std::variant<double, std::string>& value, const task_case& at) {
  const auto* name = std::get_if<std::string>(&value);
  return name != nullptr ? static_cast<double>(at.sizes.at(*name)) : std::get<double>(value);
}

std::vector<tensor_layout> layouts_of(const std::vector<tensor_spec>& tensors,
                                      const task_case& at) {
  std::vector<tensor_layout> all;
  for (const tensor_spec& spec : tensors) all.push_back({spec.type, resolve_shape(spec, at)});
  return all;
}

std::span<const std::byte> data_of(const task& t, const tensor_spec& spec) {
  for (const data_file& file : t.data_files) {
    if (file.name() != spec.data_file) continue;
    if (const safetensor* tensor = file.find(spec.name))
      return std::as_bytes(std::span(tensor->bytes));
  }
  throw reference_error(Outcome::INFRASTRUCTURE, "no data for the parameter " + spec.name);
}

namespace {

void permute(std::span<std::int64_t> row, random_stream& random) {
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = row.size(); i > 1; --i) std::swap(row[i - 1], row[random.below(i)]);
}

tensor_value draw_raw(const tensor_spec& spec, const task_case& at,
                      const std::vector<std::int64_t>& shape, random_stream& random) {
  tensor_value raw{{raw_type(spec), shape}, {}};
  raw.bytes.resize(raw.layout.bytes());
  const double a = argument_of(spec.init.a, at);
  const double b = argument_of(spec.init.b, at);
  if (raw.layout.type == dtype::int64) {
    const std::span<std::int64_t> numbers = numbers_of<std::int64_t>(raw);
    if (spec.init.of == kind::integers) {
      if (!(b > a))
        throw reference_error(Outcome::WRONG_RESULT, spec.name + ": integers(" + std::to_string(a) +
                                                         "," + std::to_string(b) + ") is empty");
      random.fill_integers(numbers, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
    } else {
      const std::size_t row =
          raw.layout.shape.empty() ? 1 : static_cast<std::size_t>(raw.layout.shape.back());
      for (std::size_t i = 0; row > 0 && i < numbers.size(); i += row)
        permute(numbers.subspan(i, row), random);
    }
    return raw;
  }
  const std::span<float> numbers = numbers_of<float>(raw);
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
    default:
      std::fill(numbers.begin(), numbers.end(), static_cast<float>(a));
      break;
  }
  return raw;
}

tensor_value draw_raw(const tensor_spec& spec, const task_case& at, random_stream& random) {
  return draw_raw(spec, at, resolve_shape(spec, at), random);
}

// Returns true if a tensor has the same contents however often it is drawn.
bool is_fixed(const tensor_spec& spec) {
  return !spec.data_file.empty() || spec.init.of == kind::constant;
}

// Draws a few elements of a tensor anew, or swaps two elements of a permutation.
void perturb_elements(std::span<std::byte> bytes, dtype type, const tensor_spec& spec,
                      const task_case& at, random_stream& random) {
  const std::size_t size = bytes_of(type);
  const std::size_t n = bytes.size() / size;
  if (n == 0 || is_fixed(spec)) return;
  const auto place = [&](std::size_t element) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(element * size);
  };
  if (spec.init.of == kind::permutation) {
    const std::vector<std::int64_t> shape = resolve_shape(spec, at);
    const std::size_t row = static_cast<std::size_t>(shape.empty() ? 1 : shape.back());
    const std::size_t begin = random.below(n / row) * row;
    const std::size_t a = begin + random.below(row);
    const std::size_t b = begin + random.below(row);
    if (a != b) std::swap_ranges(place(a), place(a + 1), place(b));
    return;
  }
  const tensor_value fresh = with_type(draw_raw(spec, at, {perturbed_elements}, random), type);
  for (std::size_t k = 0; k < perturbed_elements; ++k)
    std::copy_n(fresh.bytes.begin() + static_cast<std::ptrdiff_t>(k * size), size,
                place(random.below(n)));
}

// Pieces are long enough to be copied fast, and too short for a result computed on one of them to
// be worth caching.
constexpr std::size_t piece_elements = 32;
constexpr std::size_t few_elements = 4 * piece_elements;
constexpr std::size_t reservoir_elements = 1U << 17U;

// Draws the numbers that a tensor's contents are assembled from, in the type of draw_raw().
tensor_value numbers_of(const tensor_spec& spec, const task_case& at, random_stream& random) {
  return draw_raw(spec, at, {static_cast<std::int64_t>(reservoir_elements)}, random);
}

// Writes n sums of two normal numbers, which are normal with the same mean and deviation.
void add_normal(const float* p, const float* q, float mean, float* sum, std::size_t n) {
  constexpr float half_root = 0.70710678F;
  for (std::size_t i = 0; i < n; ++i) sum[i] = mean + half_root * ((p[i] - mean) + (q[i] - mean));
}

// Writes n sums of two uniform numbers between `low` and `high`, modulo the width: uniform again.
void add_uniform(const float* p, const float* q, float low, float high, float* sum, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float x = p[i] + (q[i] - low);
    sum[i] = x < high ? x : std::max(low, x - (high - low));
  }
}

// Does the same for integers from `low` to `high` - 1.
void add_integers(const std::int64_t* p, const std::int64_t* q, std::int64_t low, std::int64_t high,
                  std::int64_t* sum, std::size_t n) {
  const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const auto above = [low](std::int64_t x) {
    return static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(low);
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t room = width - above(q[i]);
    const std::uint64_t x = above(p[i]);
    sum[i] = low + static_cast<std::int64_t>(x < room ? x + above(q[i]) : x - room);
  }
}

// Does the same for zeros and ones: their sum modulo 2.
void add_coins(const float* p, const float* q, float* sum, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = p[i] == q[i] ? 0.0F : 1.0F;
}

// Fills `into` with sums of two pieces of `source`, each from a random place: there are as many
// sums as the square of the reservoir's size, so that a program which knows all its numbers can
// neither tabulate results nor look them up.
void assemble(const tensor_value& source, const tensor_spec& spec, const task_case& at_case,
              std::span<std::byte> into, random_stream& random) {
  const std::size_t places = source.layout.elements() - piece_elements + 1;
  const std::size_t elements = into.size() / bytes_of(source.layout.type);
  const double a = argument_of(spec.init.a, at_case);
  const double b = argument_of(spec.init.b, at_case);
  const auto* const numbers = reinterpret_cast<const float*>(source.bytes.data());
  const auto* const integers = reinterpret_cast<const std::int64_t*>(source.bytes.data());
  auto* const sums = reinterpret_cast<float*>(into.data());
  auto* const integer_sums = reinterpret_cast<std::int64_t*>(into.data());
  for (std::size_t at = 0; at < elements; at += piece_elements) {
    const std::size_t n = std::min(piece_elements, elements - at);
    const std::size_t p = random.below(places);
    const std::size_t q = random.below(places);
    switch (spec.init.of) {
      case kind::normal:
        add_normal(numbers + p, numbers + q, static_cast<float>(a), sums + at, n);
        break;
      case kind::uniform:
        add_uniform(numbers + p, numbers + q, static_cast<float>(a), static_cast<float>(b),
                    sums + at, n);
        break;
      case kind::coin:
        add_coins(numbers + p, numbers + q, sums + at, n);
        break;
      case kind::integers:
        add_integers(integers + p, integers + q, static_cast<std::int64_t>(a),
                     static_cast<std::int64_t>(b), integer_sums + at, n);
        break;
      case kind::constant:
      case kind::permutation:
        throw std::logic_error(spec.name + ": has no pieces");
    }
  }
}

}  // namespace

std::vector<tensor_layout> input_recipe::input_layouts() const {
  return layouts_of(oracle_->of().inputs, *case_);
}
std::vector<tensor_layout> input_recipe::parameter_layouts() const {
  return layouts_of(oracle_->of().parameters, *case_);
}

value_set input_recipe::draw(const std::vector<tensor_spec>& tensors, std::size_t first,
                             distribution how, std::uint64_t seed, std::uint64_t perturbation) {
  random_stream random(seed);
  random_stream perturbations(perturbation);
  value_set values;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const tensor_spec& spec = tensors[i];
    const auto change = variation_of(oracle_->of(), first + i, *case_, how, seed);
    if (!spec.data_file.empty()) {
      const auto bytes = data_of(oracle_->of(), spec);
      values.push_back({{spec.type, resolve_shape(spec, *case_)}, {bytes.begin(), bytes.end()}});
      if (change) vary_data(values.back(), *change);
      continue;
    }
    tensor_value raw = draw_raw(spec, *case_, random);
    if (perturbation != 0)
      perturb_elements(raw.bytes, raw.layout.type, spec, *case_, perturbations);
    if (change) vary(raw, *change);
    values.push_back(oracle_->realize(first + i, raw));
  }
  return values;
}

value_set input_recipe::draw_inputs(distribution how, std::uint64_t seed,
                                    std::uint64_t perturbation) {
  return draw(oracle_->of().inputs, 0, how, seed, perturbation);
}

value_set input_recipe::draw_parameters(distribution how, std::uint64_t seed) {
  if (constructor_ != nullptr) return constructor_->draw(seed);
  return draw(oracle_->of().parameters, oracle_->of().inputs.size(), how, seed, 0);
}

const std::vector<tensor_spec>& reservoir::specs() const {
  return which_ == of::inputs ? recipe_.oracle_->of().inputs : recipe_.oracle_->of().parameters;
}

reservoir::reservoir(const input_recipe& recipe, of which, random_stream& random)
    : recipe_(recipe), which_(which) {
  const value_set once = which == of::inputs
                             ? recipe_.draw_inputs(distribution::declared, random.bits())
                             : recipe_.draw_parameters(distribution::declared, random.bits());
  for (std::size_t i = 0; i < once.size(); ++i) {
    const tensor_spec& spec = specs()[i];
    if (is_fixed(spec)) {
      sources_.push_back(once[i]);
    } else if (spec.init.of == kind::permutation || once[i].layout.elements() < few_elements) {
      sources_.emplace_back();
    } else {
      sources_.push_back(numbers_of(spec, *recipe_.case_, random));
    }
  }
}

void reservoir::renew(random_stream& random) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!is_fixed(specs()[i]) && !sources_[i].bytes.empty())
      sources_[i] = numbers_of(specs()[i], *recipe_.case_, random);
  }
}

// Returns the contents of a tensor before its `expr` and its cast.
tensor_value reservoir::raw_contents(std::size_t i, random_stream& random) const {
  const tensor_spec& spec = specs()[i];
  const tensor_value& source = sources_[i];
  if (source.bytes.empty() || spec.init.of == kind::constant)
    return draw_raw(spec, *recipe_.case_, random);
  tensor_value raw{{source.layout.type, resolve_shape(spec, *recipe_.case_)}, {}};
  raw.bytes.resize(raw.layout.bytes());
  assemble(source, spec, *recipe_.case_, raw.bytes, random);
  return raw;
}

void reservoir::fill(std::span<const std::span<std::byte>> into,
                     const drawn_contents& drawn) const {
  random_stream random(drawn.seed);
  random_stream perturbations(drawn.perturbation);
  const std::size_t first = which_ == of::inputs ? 0 : recipe_.oracle_->of().inputs.size();
  for (std::size_t i = 0; i < into.size(); ++i) {
    const tensor_spec& spec = specs()[i];
    const tensor_value& source = sources_[i];
    const auto change =
        variation_of(recipe_.oracle_->of(), first + i, *recipe_.case_, drawn.how, drawn.seed);
    const auto copy = [&](const tensor_value& value) {
      std::copy(value.bytes.begin(), value.bytes.end(), into[i].begin());
    };
    const auto perturb = [&](std::span<std::byte> bytes, dtype type) {
      if (drawn.perturbation != 0)
        perturb_elements(bytes, type, spec, *recipe_.case_, perturbations);
    };
    if (is_fixed(spec) && !change) {
      copy(source);
    } else if (!spec.data_file.empty()) {
      tensor_value value = source;
      vary_data(value, *change);
      copy(value);
    } else if (!change && !source.bytes.empty() && source.layout.type == spec.type &&
               spec.init.expr.empty()) {
      assemble(source, spec, *recipe_.case_, into[i], random);
      perturb(into[i], spec.type);
    } else {
      tensor_value raw = raw_contents(i, random);
      perturb(raw.bytes, raw.layout.type);
      if (change) vary(raw, *change);
      copy(recipe_.oracle_->realize(first + i, raw));
    }
  }
}

void reservoir::fill(value_set& into, const drawn_contents& drawn) const {
  if (which_ == of::parameters && recipe_.constructor_ != nullptr) {
    into = recipe_.constructor_->draw(drawn.seed);
    return;
  }
  into.resize(specs().size());
  std::vector<std::span<std::byte>> places;
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i].layout = {specs()[i].type, resolve_shape(specs()[i], *recipe_.case_)};
    into[i].bytes.resize(into[i].layout.bytes());
    places.emplace_back(into[i].bytes);
  }
  fill(places, drawn);
}

}  // namespace hone
