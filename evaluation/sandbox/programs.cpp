#include "evaluation/sandbox/programs.hpp"

namespace hone {
namespace {

void describe_layouts(capnp::List<schema::Layout>::Builder list,
                      const std::vector<tensor_layout>& layouts) {
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setDtype(static_cast<std::uint8_t>(layouts[i].type));
    auto shape = list[i].initShape(static_cast<unsigned>(layouts[i].shape.size()));
    for (unsigned d = 0; d < shape.size(); ++d) shape.set(d, layouts[i].shape[d]);
  }
}

}  // namespace

void describe_programs(schema::Open::Builder open, const std::vector<program_source>& programs) {
  auto list = open.initPrograms(static_cast<unsigned>(programs.size()));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setSource(programs[i].python);
    list[i].setInputs(static_cast<std::uint32_t>(programs[i].inputs));
    list[i].setParameters(static_cast<std::uint32_t>(programs[i].parameters));
    if (!programs[i].of_module) continue;
    list[i].setTaskModule(programs[i].of_module->text);
    const std::vector<std::string>& names = programs[i].of_module->parameters;
    auto parameters = list[i].initParameterNames(static_cast<unsigned>(names.size()));
    for (unsigned n = 0; n < parameters.size(); ++n) parameters.set(n, names[n]);
  }
}

opened_programs read_opened(schema::Opened::Reader opened) {
  opened_programs programs;
  programs.has_prepare = opened.getHasPrepare();
  programs.convolutions = opened.getConvolutions();
  programs.normal_form = program_id(opened.getNormalForm());
  for (const auto name : opened.getLaunches()) programs.launches.emplace_back(view(name));
  return programs;
}

std::string failure_text(schema::Failed::Reader failed) {
  return std::string(view(failed.getMessage()).substr(0, max_failure_text));
}

record<schema::Command> stage_command(const arena_plan& plan, std::span<const std::size_t> sets,
                                      bool parameters_changed, arena_region scratch,
                                      std::uint64_t poisoned_end, std::uint64_t row_major_outputs,
                                      unsigned char poison, std::uint64_t seed) {
  record_builder<schema::Command> command;
  auto stage = command->initStage();
  stage.setProgram(static_cast<std::uint32_t>(plan.program()));
  const auto& inputs = plan.input_layouts();
  describe_layouts(stage.initInputs(static_cast<unsigned>(inputs.size())), inputs);
  const auto& parameters = plan.parameter_layouts();
  describe_layouts(stage.initParameters(static_cast<unsigned>(parameters.size())), parameters);
  auto offsets = stage.initParameterOffsets(static_cast<unsigned>(plan.parameters().size()));
  for (unsigned i = 0; i < offsets.size(); ++i) offsets.set(i, plan.parameters()[i].begin);
  stage.setParametersChanged(parameters_changed);
  auto calls = stage.initCalls(static_cast<unsigned>(sets.size()));
  for (unsigned c = 0; c < calls.size(); ++c) {
    const auto& set = plan.inputs(sets[c]);
    auto list = calls[c].initInputOffsets(static_cast<unsigned>(set.size()));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, set[i].begin);
  }
  stage.setScratchBegin(scratch.begin);
  stage.setPoisonedEnd(poisoned_end);
  stage.setScratchEnd(scratch.end());
  stage.setPoison(poison);
  stage.setRowMajorOutputs(row_major_outputs);
  stage.setSeed(seed);
  return command.finish();
}

record<schema::Command> study_command(const study_plan& plan) {
  record_builder<schema::Command> command;
  auto study = command->initStudy();
  study.setTf32(plan.tf32);
  study.setIsSparse(plan.is_sparse);
  study.setHasSmallInputs(plan.has_small_inputs);
  auto runs = study.initRuns(static_cast<unsigned>(plan.runs.size()));
  for (unsigned i = 0; i < runs.size(); ++i) {
    runs[i].setAmplitude(plan.runs[i].amplitude);
    runs[i].setSeed(plan.seed + plan.runs[i].draw);
    runs[i].setWide(plan.runs[i].is_wide);
    runs[i].setDecisions(static_cast<schema::StudyCalls::Decisions>(plan.runs[i].use));
  }
  return command.finish();
}

}  // namespace hone
