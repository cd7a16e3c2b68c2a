#include "evaluation/backends/cuda/gpu_task.hpp"

#include <algorithm>
#include <utility>

#include "evaluation/judge/variation.hpp"
#include "messages/ids.hpp"

namespace hone {
namespace {

// Memory for the outputs of runs with noise, and of runs that take their own decisions.
constexpr std::uint64_t bytes_of_runs = 2ULL << 30U;

std::vector<tensor_layout> layouts_of(const std::vector<gpu_output>& outputs) {
  std::vector<tensor_layout> layouts;
  for (const gpu_output& output : outputs) layouts.push_back(output.layout);
  return layouts;
}

// Returns the outputs of a call that the reference has made. Throws reference_error.
std::vector<gpu_output> outputs_of(const gpu_session& reference, std::size_t call) {
  auto outputs = reference.outputs(call);
  if (!outputs) throw reference_error(outputs.error().outcome, outputs.error().message);
  return *std::move(outputs);
}

}  // namespace

gpu_task::gpu_task(gpu_context& gpu, gpu_workspace& room, task t, reference_source reference)
    : gpu_(&gpu),
      room_(&room),
      task_(std::move(t)),
      reference_(std::move(reference)),
      program_of_(reference_oracle::program_numbers(task_)) {}

void gpu_task::choose(const task_case& at) {
  if (room_->user == task_.id && case_ != nullptr && *case_ == at) return;
  if (room_->user != task_.id) {
    room_->data = {};
    room_->data_offsets.clear();
    constructed_.reset();
  }
  room_->user = task_.id;
  case_ = &*std::find(task_.cases.begin(), task_.cases.end(), at);
  room_->inputs.layouts = layouts_of(task_.inputs, at);
  room_->parameters.layouts = layouts_of(task_.parameters, at);
  for (gpu_tensors* tensors : {&room_->inputs, &room_->parameters}) {
    tensors->memory.resize(std::max(tensors->memory.size(), tensors->layouts.size()));
    for (std::size_t i = 0; i < tensors->layouts.size(); ++i)
      gpu_->grow(tensors->memory[i], tensors->layouts[i].bytes());
  }
}

gpu_drawing gpu_task::drawing_of(std::size_t tensor, std::uint64_t seed) const {
  const tensor_spec& spec = tensor_of(task_, tensor);
  const tensor_layout layout{program_of_[tensor] != 0 ? raw_type(spec) : spec.type,
                             resolve_shape(spec, *case_)};
  gpu_drawing drawing;
  drawing.seed = seed;
  drawing.n = layout.elements();
  drawing.a = argument_of(spec.init.a, *case_);
  drawing.b = argument_of(spec.init.b, *case_);
  drawing.row = layout.shape.empty()
                    ? 1
                    : static_cast<std::uint64_t>(std::max<std::int64_t>(layout.shape.back(), 1));
  drawing.tensor = static_cast<std::int32_t>(tensor);
  drawing.type = static_cast<std::int32_t>(layout.type);
  drawing.of = static_cast<std::int32_t>(spec.init.of);
  if (spec.init.of == initializer::kind::integers && !(drawing.b > drawing.a)) {
    throw reference_error(Outcome::WRONG_RESULT, spec.name + ": integers(" +
                                                     std::to_string(drawing.a) + "," +
                                                     std::to_string(drawing.b) + ") is empty");
  }
  return drawing;
}

// Uploads the contents of all data files at once, each parameter aligned as a separate allocation.
void gpu_task::upload_data() {
  std::uint64_t bytes = 0;
  for (const data_file& file : task_.data_files)
    bytes += file.bytes().size() + task_.parameters.size() * arena_alignment;
  std::vector<std::byte> packed;
  packed.reserve(bytes);
  std::map<std::string, std::uint64_t> offsets;
  for (const tensor_spec& spec : task_.parameters) {
    if (spec.data_file.empty()) continue;
    const auto contents = data_of(task_, spec);
    offsets[spec.name] = packed.size();
    packed.insert(packed.end(), contents.begin(), contents.end());
    packed.resize(arena_aligned(packed.size()));
  }
  gpu_->grow(room_->data, packed.size());
  gpu_->upload(room_->data.at(), packed.data(), packed.size());
  room_->data_offsets = std::move(offsets);
}

void gpu_task::draw_one(std::size_t tensor, CUdeviceptr to, distribution how, std::uint64_t seed,
                        std::uint64_t perturbation) {
  const tensor_spec& spec = tensor_of(task_, tensor);
  const tensor_layout layout{spec.type, resolve_shape(spec, *case_)};
  const std::size_t program = program_of_[tensor];
  const gpu_drawing drawing = drawing_of(tensor, seed);
  const auto change = variation_of(task_, tensor, *case_, how, seed);
  CUdeviceptr raw = to;
  const tensor_layout raw_layout{raw_type(spec), layout.shape};
  if (program != 0) {
    gpu_->grow(room_->raw, raw_layout.bytes());
    raw = room_->raw.at();
  }
  gpu_->draw(raw, drawing);
  if (perturbation != 0)
    gpu_->perturb(raw, drawing, perturbation, static_cast<int>(perturbed_elements));
  if (change) gpu_->vary(raw, static_cast<dtype>(drawing.type), *change);
  if (program == 0) return;
  const auto outputs = call(program, {raw_layout}, {}, [&](gpu_session& session) {
    gpu_->copy(session.input(0, 0), raw, raw_layout.bytes());
  });
  check_expression(spec, layouts_of(outputs), raw_layout);
  gpu_->grow(room_->dense, outputs[0].layout.bytes());
  gpu_->gather(room_->dense.at(), outputs[0].at, outputs[0].layout, outputs[0].strides);
  gpu_->convert(to, spec.type, room_->dense.at(), outputs[0].layout.type, layout.elements());
}

void gpu_task::draw_inputs(distribution how, std::uint64_t seed, std::uint64_t perturbation) {
  how_ = how;
  for (std::size_t i = 0; i < task_.inputs.size(); ++i)
    draw_one(i, room_->inputs.memory[i].at(), how, seed, perturbation);
}

void gpu_task::construct_with(parameter_constructor constructor) {
  constructor_ = std::move(constructor);
  constructed_.reset();
}

void gpu_task::draw_parameters(distribution how, std::uint64_t seed) {
  if (constructor_) {
    if (constructed_ == seed) return;
    ++reference_calls_;  // it uses the reference's arena
    constructed_.reset();
    constructor_(seed, room_->parameters);
    constructed_ = seed;
    return;
  }
  std::vector<gpu_context::range_pair> copies;
  std::vector<gpu_placed_drawing> drawings;
  for (std::size_t i = 0; i < task_.parameters.size(); ++i) {
    const tensor_spec& spec = task_.parameters[i];
    const std::size_t tensor = task_.inputs.size() + i;
    const tensor_layout& layout = room_->parameters.layouts[i];
    const CUdeviceptr to = room_->parameters.memory[i].at();
    const auto change = variation_of(task_, tensor, *case_, how, seed);
    if (!spec.data_file.empty()) {
      if (room_->data_offsets.empty()) upload_data();
      const CUdeviceptr from = room_->data.at() + room_->data_offsets.at(spec.name);
      if (change) {
        gpu_->vary_data(to, from, layout.type, layout.elements(), *change);
      } else {
        copies.push_back({to, from, layout.bytes()});
      }
    } else if (program_of_[tensor] != 0 || change) {
      draw_one(tensor, to, how, seed, 0);
    } else {
      drawings.push_back({to, drawing_of(tensor, seed)});
    }
  }
  gpu_->copy_all(copies);
  gpu_->draw_all(drawings);
}

void gpu_task::fill_inputs(const std::vector<CUdeviceptr>& to, distribution how,
                           std::uint64_t seed) {
  for (std::size_t i = 0; i < task_.inputs.size(); ++i) draw_one(i, to[i], how, seed, 0);
}

bool gpu_task::draws_with_reference() const {
  return std::any_of(program_of_.begin(),
                     program_of_.begin() + static_cast<std::ptrdiff_t>(task_.inputs.size()),
                     [](std::size_t program) { return program != 0; });
}

std::vector<gpu_output> gpu_task::call(std::size_t program,
                                       const std::vector<tensor_layout>& inputs,
                                       const std::vector<tensor_layout>& parameters,
                                       const std::function<void(gpu_session&)>& write) {
  ++reference_calls_;
  gpu_session& session = reference_(task_);
  try {
    session.arrange(program, inputs, parameters, 1);
  } catch (const std::length_error& e) {
    // Tensors in float64 may not fit where those in the reference's own types do. expect() must be
    // able to go on without them, so the outcome is not `infrastructure`.
    throw reference_error(Outcome::CRASH, e.what());
  }
  write(session);
  const auto deadline = std::chrono::steady_clock::now() + reference_call_limit;
  const std::size_t set = 0;
  if (const auto ran = session.run_anew({&set, 1}, deadline); !ran)
    throw reference_error(ran.error().outcome, ran.error().message);
  auto outputs = outputs_of(session, 0);
  if (program == 0) {
    aliases_ = session.aliases(0);
    row_major_outputs_ = session.row_major_outputs(0);
    flops_ = session.flops();
  }
  return outputs;
}

void gpu_task::keep(gpu_tensors& to, const std::vector<gpu_output>& outputs) {
  to.layouts.clear();
  to.memory.resize(std::max(to.memory.size(), outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    to.layouts.push_back(outputs[i].layout);
    gpu_->grow(to.memory[i], outputs[i].layout.bytes());
    if (is_row_major(outputs[i].layout, outputs[i].strides)) {
      gpu_->copy(to.memory[i].at(), outputs[i].at, outputs[i].layout.bytes());
    } else {
      gpu_->gather(to.memory[i].at(), outputs[i].at, outputs[i].layout, outputs[i].strides);
    }
  }
}

void gpu_task::forget_runs() {
  has_wide_ = has_settled_ = false;
  noisy_ = alternatives_ = 0;
  takes_decisions_ = true;
}

void gpu_task::expect(evidence wanted) {
  forget_runs();
  keep(room_->own,
       call(0, room_->inputs.layouts, room_->parameters.layouts, [&](gpu_session& session) {
         session.write_inputs(0, room_->inputs);
         session.write_parameters(room_->parameters);
       }));
  gather(wanted);
}

std::size_t gpu_task::affordable_runs() const {
  const std::uint64_t bytes = std::max<std::uint64_t>(1, total_bytes(room_->own.layouts));
  return static_cast<std::size_t>(std::max<std::uint64_t>(1, bytes_of_runs / bytes));
}

bool gpu_task::study(reference_study study) {
  ++reference_calls_;
  complete(study, task_, how_, random_bits());
  gpu_session& session = reference_(task_);
  session.arrange(0, room_->inputs.layouts, room_->parameters.layouts, 1);
  session.write_inputs(0, room_->inputs);
  session.write_parameters(room_->parameters);
  const auto deadline = std::chrono::steady_clock::now() +
                        reference_call_limit * static_cast<int>(study.plan.runs.size());
  const auto decisions = session.study(study.plan, deadline);
  if (!decisions) throw reference_error(decisions.error().outcome, decisions.error().message);
  const auto keep_run = [&](std::size_t run, gpu_tensors& to) {
    const auto outputs = outputs_of(session, run);
    if (!stands_for(layouts_of(outputs), room_->own.layouts))
      throw reference_error(Outcome::CRASH, "its outputs are others with noise or in float64");
    keep(to, outputs);
  };
  room_->noisy.resize(std::max(room_->noisy.size(), study.noisy));
  for (std::size_t i = 0; i < study.noisy; ++i) keep_run(study.first_noisy + i, room_->noisy[i]);
  room_->alternatives.resize(std::max(room_->alternatives.size(), study.alternatives));
  for (std::size_t i = 0; i < study.alternatives; ++i)
    keep_run(study.first_alternative + i, room_->alternatives[i]);
  if (study.wide) keep_run(*study.wide, room_->wide);
  if (study.settled) keep_run(*study.settled, room_->settled);
  noisy_ = std::max(noisy_, study.noisy);
  alternatives_ = study.alternatives;
  has_wide_ = has_wide_ || study.wide.has_value();
  has_settled_ = study.settled.has_value();
  return *decisions > 0;
}

void gpu_task::gather(evidence wanted) {
  if (wanted == evidence::own_types) return;
  const auto aliases = aliases_;
  const auto row_major_outputs = row_major_outputs_;
  const bool is_narrow = has_narrow(room_->inputs.layouts) || has_narrow(room_->parameters.layouts);
  takes_decisions_ = facts_[case_].gather(
      wanted, is_narrow, affordable_runs(),
      [this](const reference_study& one) { return study(one); }, [this] { forget_runs(); });
  aliases_ = aliases;
  row_major_outputs_ = row_major_outputs;
}

void gpu_task::expect_outputs_of(const gpu_session& reference, std::size_t call) {
  forget_runs();
  keep(room_->own, outputs_of(reference, call));
  aliases_ = reference.aliases(call);
  // A call that is computed for its outputs has none before it.
  std::erase_if(aliases_, [](const output_alias& shared) {
    return shared.what == output_alias::with::earlier_call;
  });
  row_major_outputs_ = reference.row_major_outputs(call);
}

gpu_runs gpu_task::runs_of(std::size_t output) const {
  const dtype type = room_->own.layouts[output].type;
  const dtype wide_type = is_floating(type) ? dtype::float64 : type;
  const auto wide = [&](bool exists, const gpu_tensors& run) {
    return exists && run.layouts[output].type == wide_type ? run.memory[output].at() : 0;
  };
  gpu_runs runs;
  runs.own = room_->own.memory[output].at();
  runs.wide = wide(has_wide_, room_->wide);
  runs.settled = wide(has_settled_, room_->settled);
  const auto add = [&](std::vector<CUdeviceptr>& to, const std::vector<gpu_tensors>& all,
                       std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (all[i].layouts[output].type == type) to.push_back(all[i].memory[output].at());
    }
  };
  add(runs.noisy, room_->noisy, noisy_);
  add(runs.alternatives, room_->alternatives, alternatives_);
  return runs;
}

bool gpu_task::expects_finite() {
  for (std::size_t i = 0; i < room_->own.layouts.size(); ++i) {
    const tensor_layout& layout = room_->own.layouts[i];
    if (!is_floating(layout.type)) continue;
    gpu_->grow(room_->dense, layout.bytes());
    gpu_->fill(room_->dense.at(), other_poison_byte, layout.bytes());  // finite in every type
    const output_errors compared = gpu_->measure_floating(room_->dense.at(), runs_of(i),
                                                          layout.type, layout.elements(), {}, 0);
    if (compared.count < layout.elements()) return false;
  }
  return true;
}

agreement gpu_task::agreement_of_others(random_stream& random) {
  const auto draw = [&] {
    draw_parameters(distribution::declared, random.bits());
    draw_inputs(distribution::declared, random.bits());
  };
  draw();
  expect(evidence::own_types);
  std::vector<gpu_output> outputs;
  for (std::size_t i = 0; i < room_->own.layouts.size(); ++i)
    outputs.push_back({room_->own.layouts[i], row_major_strides(room_->own.layouts[i]),
                       room_->own.memory[i].at()});
  keep(room_->others, outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].at = room_->others.memory[i].at();
  draw();
  expect(evidence::full);
  return compare(outputs);
}

agreement gpu_task::compare_one(const gpu_output& given, std::size_t index) {
  const tensor_layout& layout = room_->own.layouts[index];
  CUdeviceptr actual = given.at;
  if (!is_row_major(given.layout, given.strides)) {
    gpu_->grow(room_->dense, layout.bytes());
    gpu_->gather(room_->dense.at(), given.at, layout, given.strides);
    actual = room_->dense.at();
  }
  const std::uint64_t n = layout.elements();
  const gpu_runs runs = runs_of(index);
  if (!is_floating(layout.type)) {
    const auto first = gpu_->find_wrong_element(actual, runs, layout.type, n);
    return conclude_exact(first, layout, [&](std::size_t i) {
      return element_text{gpu_->element(actual, layout.type, i),
                          gpu_->element(runs.own, layout.type, i), false};
    });
  }
  const output_errors errors =
      gpu_->measure_floating(actual, runs, layout.type, n, declared_tolerance(task_, layout.type),
                             facts().typical_error(how_, index));
  return conclude(errors, layout, [&](std::size_t i) {
    std::vector<std::byte> bytes(bytes_of(layout.type));
    gpu_->download(bytes.data(), actual + i * bytes.size(), bytes.size());
    const bool is_poison = std::all_of(bytes.begin(), bytes.end(),
                                       [](std::byte b) { return b == std::byte{poison_byte}; });
    return element_text{gpu_->element(actual, layout.type, i),
                        runs.wide != 0 ? gpu_->element(runs.wide, dtype::float64, i)
                                       : gpu_->element(runs.own, layout.type, i),
                        is_poison};
  });
}

agreement gpu_task::compare(const std::vector<gpu_output>& actual) {
  agreement agreed = compare_all(layouts_of(actual), room_->own.layouts,
                                 [&](std::size_t i) { return compare_one(actual[i], i); });
  if (noisy_ > 0) facts_[case_].learn(how_, agreed);
  facts().possible().complete(agreed);
  return agreed;
}

}  // namespace hone
