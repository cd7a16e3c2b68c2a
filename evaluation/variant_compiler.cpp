#include "evaluation/variant_compiler.hpp"

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/compile/compiled_block.hpp"
#include "evaluation/compile/cpu/cpu_compiler.hpp"
#include "evaluation/compile/cuda/cuda_compiler.hpp"
#include "evaluation/compile/recently_used.hpp"
#include "evaluation/program/kernel_limits.hpp"
#include "evaluation/sandbox/client/zygote.hpp"
#include "evaluation/sandbox/module_programs.hpp"
#include "messages/ids.hpp"
#include "tasks/program_functions.hpp"
#include "tasks/settings.hpp"

namespace hone {
namespace {

using clock_type = std::chrono::steady_clock;

// The part of a host program's check that later steps need.
struct checked_program {
  std::vector<std::string> launches;
  program_id normal_form;
};

struct compiled_program {
  compiled_block block;
  program_id host;
};

constexpr std::uint64_t checker_memory = 2ULL << 30U;

record<schema::Artifact> make_artifact(const schema::CompileJob::Reader& job,
                                       const schema::DeviceType::Reader& device_type,
                                       const compiled_program& program, double compile_ms) {
  const compiled_block& block = program.block;
  record_builder<schema::Artifact> artifact;
  content_id<artifact_id>(
      {device_type.getName().cStr(), job.getSettings().cStr(), job.getPython().cStr(), block.code})
      .store(artifact->initId());
  content_id<program_id>({to_string(program.host), block.normal_form, job.getSettings().cStr()})
      .store(artifact->initProgramId());
  artifact->setVariantId(job.getHeader().getVariantId());
  artifact->setDeviceType(device_type.getName());
  artifact->setSettings(job.getSettings());
  artifact->setPython(job.getPython());
  artifact->setCode(as_data(block.code));
  auto kernels = artifact->initKernels(static_cast<unsigned>(block.kernels.size()));
  for (unsigned i = 0; i < kernels.size(); ++i) {
    const kernel_facts& facts = block.kernels[i];
    kernels[i].setName(facts.name);
    kernels[i].setRegisters(facts.registers);
    kernels[i].setStaticSharedBytes(facts.static_shared_bytes);
    kernels[i].setLocalBytes(facts.local_bytes);
    kernels[i].setSpilledBytes(facts.spilled_bytes);
    kernels[i].setMaxThreadsPerBlock(facts.max_threads_per_block);
    kernels[i].setSymbol(facts.symbol);
    kernels[i].setCooperative(facts.cooperative);
    auto parameters = kernels[i].initParameters(static_cast<unsigned>(facts.parameters.size()));
    for (unsigned p = 0; p < parameters.size(); ++p) {
      parameters[p].setKind(facts.parameters[p].kind);
      parameters[p].setBytes(facts.parameters[p].bytes);
    }
  }
  artifact->setLog(block.log);
  artifact->setCompileMs(compile_ms);
  return artifact.finish();
}

}  // namespace

struct variant_compiler::state {
  explicit state(const limits& l)
      : options(l), artifacts(l.kept_artifacts), blocks(l.kept_blocks) {}

  program_result<record<schema::Artifact>> compile(const schema::CompileJob::Reader& job,
                                                   const task& t,
                                                   const schema::DeviceType::Reader& device_type);
  program_result<compiled_program> compile_program(const schema::CompileJob::Reader& job,
                                                   const task& t,
                                                   const schema::DeviceType::Reader& device_type);
  static std::unique_ptr<sandbox_session> fork_checker(std::shared_ptr<sandbox_zygote>& zygote,
                                                       std::shared_ptr<sandbox_zygote> (*start)());
  program_result<checked_program> check_host_program(const std::string& python, const task& t);
  program_result<checked_program> check_module(const schema::CompileJob::Reader& job, const task& t,
                                               const schema::DeviceType::Reader& device_type);
  std::string toolchain_of(const schema::DeviceType::Reader& device_type);
  program_result<compiled_block> compile_block(std::string_view cuda,
                                               const std::vector<std::string>& launches,
                                               const settings& asked,
                                               const schema::DeviceType::Reader& device_type);
  program_result<compiled_block> compile_anew(std::string_view cuda,
                                              const std::vector<std::string>& launches,
                                              const settings& asked,
                                              const schema::DeviceType::Reader& device_type);

  limits options;
  std::map<std::string, cpu_compiler> cpu_compilers;  // by target
  std::unique_ptr<cuda_compiler> cuda;                // made by toolchain_of()
  std::shared_ptr<sandbox_zygote> checker;
  std::shared_ptr<sandbox_zygote> module_checker;
  recently_used<program_result<record<schema::Artifact>>> artifacts;
  recently_used<program_result<compiled_block>> blocks;
  std::uint64_t blocks_compiled = 0;
};

variant_compiler::variant_compiler(const limits& l) : state_(std::make_unique<state>(l)) {}
variant_compiler::variant_compiler() : variant_compiler(limits{}) {}
variant_compiler::~variant_compiler() = default;
variant_compiler::variant_compiler(variant_compiler&&) noexcept = default;
variant_compiler& variant_compiler::operator=(variant_compiler&&) noexcept = default;

std::uint64_t variant_compiler::blocks_compiled() const { return state_->blocks_compiled; }

void variant_compiler::require_cuda_toolchain() { (void)cuda_compiler(); }

program_result<record<schema::Artifact>> variant_compiler::compile(
    const schema::CompileJob::Reader& job, const task& t,
    const schema::DeviceType::Reader& device_type) {
  return state_->compile(job, t, device_type);
}

// Returns a session that only loads programs.
std::unique_ptr<sandbox_session> variant_compiler::state::fork_checker(
    std::shared_ptr<sandbox_zygote>& zygote, std::shared_ptr<sandbox_zygote> (*start)()) {
  if (zygote == nullptr) zygote = start();
  try {
    return zygote->fork_session(nullptr, checker_memory);
  } catch (const std::exception&) {
    zygote = start();  // the old zygote has died; a new one is tried once
    return zygote->fork_session(nullptr, checker_memory);
  }
}

// Executes the text of a Python module in a confined process, which defines its classes. Those for
// GPUs may need one for that, so the device does it.
program_result<checked_program> variant_compiler::state::check_module(
    const schema::CompileJob::Reader& job, const task& t,
    const schema::DeviceType::Reader& device_type) {
  if (job.getCuda().size() > 0 || job.getSettings().size() > 0)
    return failed(Outcome::REJECTED,
                  "a Python module has no cuda block and no settings: it compiles its own kernels "
                  "and makes PyTorch's settings itself");
  if (const std::string problem = problem_of_modules(t); !problem.empty())
    return failed(Outcome::REJECTED, problem);
  if (device_type.getKind() == schema::DeviceType::Kind::CUDA)
    return checked_program{{}, content_id<program_id>({view(job.getPython())})};
  const auto session = fork_checker(module_checker, sandbox_zygote::start_for_modules);
  const auto opened = session->open({module_program(job.getPython(), t)}, "", true,
                                    clock_type::now() + options.host_program);
  if (!opened) return failed(opened.error());
  return checked_program{{}, opened->normal_form};
}

// Compiles the host program in a sandbox process that does not run it. Returns the kernels that it
// launches.
program_result<checked_program> variant_compiler::state::check_host_program(
    const std::string& python, const task& t) {
  const auto session = fork_checker(checker, sandbox_zygote::start);
  const auto opened = session->open({{python, t.inputs.size(), t.parameters.size()}}, "", true,
                                    clock_type::now() + options.host_program);
  if (opened && opened->launches.size() > max_launched_kernels)
    return failed(Outcome::REJECTED,
                  "the host program launches " + std::to_string(opened->launches.size()) +
                      " kernels by name, the limit is " + std::to_string(max_launched_kernels));
  if (opened) return checked_program{opened->launches, opened->normal_form};
  const program_failure& why = opened.error();
  if (why.outcome == Outcome::INFRASTRUCTURE) throw std::runtime_error(why.message);
  if (session->alive()) return failed(why);
  return failed(
      Outcome::COMPILE_ERROR,
      "the host program cannot be compiled (nested too deeply, or too large): " + why.message);
}

std::string variant_compiler::state::toolchain_of(const schema::DeviceType::Reader& device_type) {
  if (device_type.getKind() != schema::DeviceType::Kind::CUDA)
    return std::string(view(device_type.getName()));  // a CPU type's name includes the compiler
  if (cuda == nullptr) cuda = std::make_unique<cuda_compiler>();
  return cuda->name();
}

// Requires an earlier call of toolchain_of() for the device type, which makes the CUDA compiler.
program_result<compiled_block> variant_compiler::state::compile_anew(
    std::string_view block, const std::vector<std::string>& launches, const settings& asked,
    const schema::DeviceType::Reader& device_type) {
  const std::string target = device_type.getTarget();
  switch (device_type.getKind()) {
    case schema::DeviceType::Kind::CPU:
      return cpu_compilers.try_emplace(target, target)
          .first->second.compile(block, launches, asked.fast_math, options.block);
    case schema::DeviceType::Kind::CUDA:
      return cuda->compile(block, launches, asked, target, options.block);
    case schema::DeviceType::Kind::SIMULATED:
      return compiled_block{};
  }
  return compiled_block{};
}

program_result<compiled_block> variant_compiler::state::compile_block(
    std::string_view block, const std::vector<std::string>& launches, const settings& asked,
    const schema::DeviceType::Reader& device_type) {
  const std::string flags = std::string(asked.fast_math ? "fast_math" : "") + " " +
                            std::to_string(asked.max_registers.value_or(0));
  std::string names;
  for (const std::string& name : launches) names += std::to_string(name.size()) + ":" + name;
  const std::string key = to_string(content_id<artifact_id>(
      {toolchain_of(device_type), view(device_type.getTarget()), flags, names, block}));
  if (auto known = blocks.find(key)) return *known;
  ++blocks_compiled;
  auto result = compile_anew(block, launches, asked, device_type);
  if (result || !result.error().is_transient) blocks.keep(key, result);
  return result;
}

program_result<compiled_program> variant_compiler::state::compile_program(
    const schema::CompileJob::Reader& job, const task& t,
    const schema::DeviceType::Reader& device_type) {
  if (device_type.getKind() == schema::DeviceType::Kind::SIMULATED) {
    // Nothing is compiled: the texts themselves are the program.
    compiled_program texts;
    texts.block.normal_form = view(job.getCuda());
    texts.host = content_id<program_id>({view(job.getPython())});
    return texts;
  }
  const auto host = is_python_module(view(job.getPython()))
                        ? check_module(job, t, device_type)
                        : check_host_program(job.getPython(), t);
  if (!host) return failed(host.error());
  if (job.getCuda().size() == 0) return compiled_program{{}, host->normal_form};
  return compile_block(view(job.getCuda()), host->launches, parse_settings(view(job.getSettings())),
                       device_type)
      .map([&](const compiled_block& block) {
        return compiled_program{block, host->normal_form};
      });
}

program_result<record<schema::Artifact>> variant_compiler::state::compile(
    const schema::CompileJob::Reader& job, const task& t,
    const schema::DeviceType::Reader& device_type) {
  const std::string key =
      to_string(variant_id(job.getHeader().getVariantId())) + " " + device_type.getName().cStr();
  if (auto known = artifacts.find(key)) return *known;
  const auto begin = clock_type::now();
  const auto program = compile_program(job, t, device_type);
  program_result<record<schema::Artifact>> result = program.map([&](const auto& compiled) {
    const std::chrono::duration<double, std::milli> took = clock_type::now() - begin;
    return make_artifact(job, device_type, compiled, took.count());
  });
  if (result || !result.error().is_transient) artifacts.keep(key, result);
  return result;
}

}  // namespace hone
