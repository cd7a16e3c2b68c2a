#include "evaluation/judge/gpu/gpu_task.hpp"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

constexpr auto call_limit = std::chrono::seconds(60);
constexpr double tiny = 1e-30;

std::vector<tensor_layout> layouts_in(const std::vector<tensor_spec>& tensors, const task_case& at) {
  std::vector<tensor_layout> all;
  for (const tensor_spec& spec : tensors) all.push_back({spec.type, resolve_shape(spec, at)});
  return all;
}

std::vector<tensor_layout> widened(std::vector<tensor_layout> layouts) {
  for (tensor_layout& layout : layouts) {
    if (is_floating(layout.type)) layout.type = dtype::float64;
  }
  return layouts;
}

bool has_narrow(const std::vector<tensor_layout>& layouts) {
  return std::any_of(layouts.begin(), layouts.end(), [](const tensor_layout& l) { return is_floating(l.type) && l.type != dtype::float64; });
}

bool is_dense(const gpu_output& output) {
  std::int64_t step = 1;
  for (std::size_t d = output.layout.shape.size(); d-- > 0;) {
    if (output.layout.shape[d] != 1 && output.strides[d] != step) return false;
    step *= output.layout.shape[d];
  }
  return true;
}

}  // namespace

gpu_task::gpu_task(judge_gpu& gpu, task t, reference_source reference) : gpu_(&gpu), task_(std::move(t)), reference_(std::move(reference)) {
  std::size_t next = 1;
  for (std::size_t i = 0; i < task_.inputs.size() + task_.parameters.size(); ++i) program_of_.push_back(spec_at(i).init.expr.empty() ? 0 : next++);
}

const tensor_spec& gpu_task::spec_at(std::size_t tensor) const {
  return tensor < task_.inputs.size() ? task_.inputs[tensor] : task_.parameters[tensor - task_.inputs.size()];
}

void gpu_task::choose(const task_case& at) {
  if (case_ != nullptr && *case_ == at) return;
  case_ = &*std::find(task_.cases.begin(), task_.cases.end(), at);
  inputs_.layouts = layouts_in(task_.inputs, at);
  parameters_.layouts = layouts_in(task_.parameters, at);
  for (gpu_tensors* tensors : {&inputs_, &parameters_}) {
    tensors->memory.resize(tensors->layouts.size());
    for (std::size_t i = 0; i < tensors->layouts.size(); ++i) gpu_->grow(tensors->memory[i], tensors->layouts[i].bytes());
  }
}

gpu_drawing gpu_task::drawing_of(std::size_t tensor, distribution how, std::uint64_t seed) const {
  const tensor_spec& spec = spec_at(tensor);
  const tensor_layout layout{program_of_[tensor] != 0 ? raw_type(spec) : spec.type, resolve_shape(spec, *case_)};
  gpu_drawing drawing;
  drawing.seed = seed;
  drawing.n = layout.elements();
  drawing.a = argument_of(spec.init.a, *case_);
  drawing.b = argument_of(spec.init.b, *case_);
  drawing.row = layout.shape.empty() ? 1 : static_cast<std::uint64_t>(std::max<std::int64_t>(layout.shape.back(), 1));
  drawing.tensor = static_cast<std::int32_t>(tensor);
  drawing.type = static_cast<std::int32_t>(layout.type);
  drawing.of = static_cast<std::int32_t>(spec.init.of);
  drawing.how = static_cast<std::int32_t>(spec.init.expr.empty() ? how : distribution::declared);
  if (spec.init.of == initializer::kind::integers && !(drawing.b > drawing.a)) {
    throw reference_error(Outcome::WRONG_RESULT, spec.name + ": integers(" + std::to_string(drawing.a) + "," + std::to_string(drawing.b) + ") is empty");
  }
  return drawing;
}

void gpu_task::draw_one(std::size_t tensor, CUdeviceptr to, distribution how, std::uint64_t seed, std::uint64_t twist) {
  const tensor_spec& spec = spec_at(tensor);
  const tensor_layout layout{spec.type, resolve_shape(spec, *case_)};
  if (!spec.data_file.empty()) {
    auto found = data_.find(spec.name);
    if (found == data_.end()) {
      const tensor_value value = load_parameter(task_, spec, *case_);
      gpu_memory memory = gpu_->allocate(value.bytes.size());
      gpu_->upload(memory.at(), value.bytes.data(), value.bytes.size());
      found = data_.emplace(spec.name, std::move(memory)).first;
    }
    gpu_->copy(to, found->second.at(), layout.bytes());
    return;
  }
  const std::size_t program = program_of_[tensor];
  const gpu_drawing drawing = drawing_of(tensor, how, seed);
  CUdeviceptr raw = to;
  const tensor_layout raw_layout{raw_type(spec), layout.shape};
  if (program != 0) {
    gpu_->grow(raw_, raw_layout.bytes());
    raw = raw_.at();
  }
  gpu_->draw(raw, drawing);
  if (twist != 0) gpu_->twist(raw, drawing, twist, static_cast<int>(twisted_elements));
  if (program == 0) return;
  const auto outputs = call(program, {raw_layout}, {}, [&](gpu_session& session) { gpu_->copy(session.input(0, 0), raw, raw_layout.bytes()); });
  if (outputs.size() != 1 || outputs[0].layout.shape != layout.shape) {
    throw reference_error(Outcome::WRONG_RESULT, spec.name + ": expr gives " + (outputs.empty() ? "nothing" : print_layout(outputs[0].layout)) + ", expected the shape of " + print_layout(raw_layout));
  }
  gpu_->grow(dense_, outputs[0].layout.bytes());
  gpu_->gather(dense_.at(), outputs[0].at, outputs[0].layout, outputs[0].strides);
  gpu_->convert(to, spec.type, dense_.at(), outputs[0].layout.type, layout.elements());
}

void gpu_task::draw_inputs(distribution how, std::uint64_t seed, std::uint64_t twist) {
  for (std::size_t i = 0; i < task_.inputs.size(); ++i) draw_one(i, inputs_.memory[i].at(), how, seed, twist);
}

void gpu_task::draw_inputs_with_an_outlier(std::uint64_t seed) {
  draw_inputs(distribution::declared, seed);
  for (std::size_t i = 0; i < task_.inputs.size(); ++i) {
    if (takes_distributions(task_.inputs[i]) && inputs_.layouts[i].elements() > 0) gpu_->add_outliers(inputs_.memory[i].at(), drawing_of(i, distribution::declared, seed), 1);
  }
}

void gpu_task::draw_parameters(std::uint64_t seed) {
  for (std::size_t i = 0; i < task_.parameters.size(); ++i) draw_one(task_.inputs.size() + i, parameters_.memory[i].at(), distribution::declared, seed, 0);
}

void gpu_task::fill_inputs(const std::vector<CUdeviceptr>& to, std::uint64_t seed, std::uint64_t twist) {
  for (std::size_t i = 0; i < task_.inputs.size(); ++i) draw_one(i, to[i], distribution::declared, seed, twist);
}

bool gpu_task::draws_with_reference() const {
  return std::any_of(program_of_.begin(), program_of_.begin() + static_cast<std::ptrdiff_t>(task_.inputs.size()), [](std::size_t program) { return program != 0; });
}

std::vector<gpu_output> gpu_task::call(std::size_t program, const std::vector<tensor_layout>& inputs, const std::vector<tensor_layout>& parameters, const std::function<void(gpu_session&)>& write) {
  ++reference_calls_;
  gpu_session& session = reference_();
  try {
    session.arrange(program, inputs, parameters, 1);
  } catch (const std::length_error& e) {
    throw reference_error(Outcome::INFRASTRUCTURE, e.what());
  }
  write(session);
  const auto until = std::chrono::steady_clock::now() + call_limit;
  const std::size_t set = 0;
  auto failed = session.prepare(until);
  if (!failed) failed = session.run({&set, 1}, until);
  if (failed) throw reference_error(failed->outcome, failed->message);
  auto outputs = session.outputs(0);
  if (const auto* wrong = std::get_if<program_failure>(&outputs)) throw reference_error(wrong->outcome, wrong->message);
  if (program == 0) aliases_ = session.aliases(0);
  return std::get<std::vector<gpu_output>>(std::move(outputs));
}

void gpu_task::keep(gpu_tensors& to, const std::vector<gpu_output>& outputs) {
  to.layouts.clear();
  to.memory.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    to.layouts.push_back(outputs[i].layout);
    gpu_->grow(to.memory[i], outputs[i].layout.bytes());
    if (is_dense(outputs[i])) {
      gpu_->copy(to.memory[i].at(), outputs[i].at, outputs[i].layout.bytes());
    } else {
      gpu_->gather(to.memory[i].at(), outputs[i].at, outputs[i].layout, outputs[i].strides);
    }
  }
}

void gpu_task::expect() {
  keep(own_, call(0, inputs_.layouts, parameters_.layouts, [&](gpu_session& session) {
    for (std::size_t i = 0; i < inputs_.layouts.size(); ++i) gpu_->copy(session.input(0, i), inputs_.memory[i].at(), inputs_.layouts[i].bytes());
    for (std::size_t i = 0; i < parameters_.layouts.size(); ++i) gpu_->copy(session.parameter(i), parameters_.memory[i].at(), parameters_.layouts[i].bytes());
  }));
  has_wide_ = false;
  if (!may_have_wide_ || (!has_narrow(inputs_.layouts) && !has_narrow(parameters_.layouts))) return;
  const auto aliases = aliases_;
  try {
    const auto wide_inputs = widened(inputs_.layouts);
    const auto wide_parameters = widened(parameters_.layouts);
    const auto outputs = call(0, wide_inputs, wide_parameters, [&](gpu_session& session) {
      for (std::size_t i = 0; i < wide_inputs.size(); ++i) gpu_->convert(session.input(0, i), wide_inputs[i].type, inputs_.memory[i].at(), inputs_.layouts[i].type, wide_inputs[i].elements());
      for (std::size_t i = 0; i < wide_parameters.size(); ++i) gpu_->convert(session.parameter(i), wide_parameters[i].type, parameters_.memory[i].at(), parameters_.layouts[i].type, wide_parameters[i].elements());
    });
    bool fits = outputs.size() == own_.layouts.size();
    for (std::size_t i = 0; fits && i < outputs.size(); ++i) {
      fits = outputs[i].layout.shape == own_.layouts[i].shape && is_floating(outputs[i].layout.type) == is_floating(own_.layouts[i].type);
    }
    if (fits) keep(wide_, outputs);
    has_wide_ = may_have_wide_ = fits;
  } catch (const reference_error& e) {
    if (e.outcome == Outcome::INFRASTRUCTURE || e.outcome == Outcome::TIMEOUT) throw;
    may_have_wide_ = false;  // it insists on its own types
  }
  aliases_ = aliases;
}

std::uint64_t gpu_task::expected_bytes() const {
  std::uint64_t bytes = 0;
  for (const tensor_layout& layout : own_.layouts) bytes += layout.bytes();
  return bytes;
}

agreement gpu_task::compare_one(const gpu_output& given, std::size_t index) {
  const tensor_layout& layout = own_.layouts[index];
  CUdeviceptr actual = given.at;
  if (!is_dense(given)) {
    gpu_->grow(dense_, layout.bytes());
    gpu_->gather(dense_.at(), given.at, layout, given.strides);
    actual = dense_.at();
  }
  const std::uint64_t n = layout.elements();
  const CUdeviceptr own = own_.memory[index].at();
  if (!is_floating(layout.type)) {
    const CUdeviceptr wide = has_wide_ && wide_.layouts[index].type == layout.type ? wide_.memory[index].at() : 0;
    const gpu_measures m = gpu_->measure_exact(actual, own, wide, layout.type, n);
    const auto first = m.first_bad < n ? std::optional<std::size_t>(m.first_bad) : std::nullopt;
    return conclude_exact(first, layout, [&](std::size_t i) { return element_text{gpu_->element(actual, layout.type, i), gpu_->element(own, layout.type, i), false}; });
  }
  const bool is_wide = has_wide_ && wide_.layouts[index].type == dtype::float64;
  const CUdeviceptr wide = is_wide ? wide_.memory[index].at() : 0;
  const tolerance allowed = tolerance_for(task_, layout.type);
  const gpu_measures m = gpu_->measure_floating(actual, own, wide, layout.type, n, allowed);
  output_errors errors;
  if (m.first_bad < n) errors.first_bad = m.first_bad;
  const double norm = std::max(std::sqrt(m.norm), tiny);
  errors.given = {m.worst, std::sqrt(m.error) / norm};
  errors.worst_at = m.worst_at;
  errors.own = {m.own_worst, std::sqrt(m.own_error) / norm};
  errors.given_error = m.error;
  errors.own_error = m.own_error;
  errors.expected_norm = m.squares;
  errors.expected_deviation = m.finite > 0 ? std::max(0.0, m.squares - m.sum * m.sum / static_cast<double>(m.finite)) : 0;
  errors.is_constant = m.varies == 0;
  errors.is_expected_constant = m.expected_varies == 0;
  return conclude(errors, layout, allowed, [&](std::size_t i) {
    std::vector<std::byte> bytes(bytes_of(layout.type));
    gpu_->download(bytes.data(), actual + i * bytes.size(), bytes.size());
    const bool is_poison = std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{poison_byte}; });
    return element_text{gpu_->element(actual, layout.type, i), wide != 0 ? gpu_->element(wide, dtype::float64, i) : gpu_->element(own, layout.type, i), is_poison};
  });
}

agreement gpu_task::compare(const std::vector<gpu_output>& actual) {
  agreement worst;
  if (actual.size() != own_.layouts.size()) {
    worst.problem = std::to_string(actual.size()) + " outputs, expected " + std::to_string(own_.layouts.size());
    return worst;
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::string name = actual.size() > 1 ? "output " + std::to_string(i) + ": " : "";
    if (actual[i].layout != own_.layouts[i]) {
      worst.problem = name + "is " + print_layout(actual[i].layout) + ", expected " + print_layout(own_.layouts[i]);
      return worst;
    }
    const agreement one = compare_one(actual[i], i);
    worst.worst_element = std::max(worst.worst_element, one.worst_element);
    worst.relative_l2 = std::max(worst.relative_l2, one.relative_l2);
    if (one.problem) {
      worst.problem = name + *one.problem;
      worst.only_by_tolerance = one.only_by_tolerance;
      return worst;
    }
  }
  return worst;
}

}  // namespace hone
