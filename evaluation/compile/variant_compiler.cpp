#include "evaluation/compile/variant_compiler.hpp"

#include "messages/ids.hpp"

namespace hone {
namespace {

using clock_type = std::chrono::steady_clock;

constexpr std::uint64_t checker_memory = 2ULL << 30U;

}  // namespace

variant_compiler::variant_compiler(const limits& l)
    : limits_(l), artifacts_(l.kept_artifacts), blocks_(l.kept_blocks) {}
variant_compiler::variant_compiler() : variant_compiler(limits{}) {}

std::variant<std::set<std::string>, program_failure> variant_compiler::check_host_program(
    const std::string& python, const task& t) {
  if (checker_ == nullptr) checker_ = sandbox_zygote::start();
  std::unique_ptr<sandbox_session> session;
  try {
    session = checker_->fork_session(nullptr, checker_memory);
  } catch (const std::exception&) {
    checker_ = sandbox_zygote::start();  // it died: once more with a new one
    session = checker_->fork_session(nullptr, checker_memory);
  }
  const auto opened = session->open({{python, t.inputs.size(), t.parameters.size()}}, "", true,
                                    clock_type::now() + limits_.host_limit);
  if (const auto* failed = std::get_if<session_failure>(&opened)) {
    if (failed->outcome == Outcome::INFRASTRUCTURE) throw std::runtime_error(failed->message);
    if (failed->gone)
      return program_failure{
          Outcome::COMPILE_ERROR, "",
          "the host program cannot be compiled (nested too deeply, or too large): " +
              failed->message};
    return program_failure{failed->outcome, "", failed->message};
  }
  const auto& launches = std::get<opened_programs>(opened).launches;
  return std::set<std::string>(launches.begin(), launches.end());
}

std::string variant_compiler::toolchain_of(const schema::DeviceType::Reader& device_type) {
  if (device_type.getKind() != schema::DeviceType::Kind::CUDA)
    return std::string(view(device_type.getName()));  // which names its compiler
  if (cuda_compiler_ == nullptr) cuda_compiler_ = std::make_unique<cuda_compiler>();
  return cuda_compiler_->name();
}

compile_result variant_compiler::compile_anew(std::string_view cuda,
                                              const std::set<std::string>& launches,
                                              const settings& asked,
                                              const schema::DeviceType::Reader& device_type) {
  const std::string target = device_type.getTarget();
  switch (device_type.getKind()) {
    case schema::DeviceType::Kind::CPU:
      return cpu_compilers_.try_emplace(target, target)
          .first->second.compile(cuda, launches, asked.fast_math, limits_.block_limit);
    case schema::DeviceType::Kind::CUDA:
      return cuda_compiler_->compile(cuda, launches, asked, target, limits_.block_limit);
    case schema::DeviceType::Kind::SIMULATED:
      return compiled_block{};
  }
  return compiled_block{};
}

compile_result variant_compiler::compile_block(std::string_view cuda,
                                               const std::set<std::string>& launches,
                                               const settings& asked,
                                               const schema::DeviceType::Reader& device_type) {
  const std::string options = std::string(asked.fast_math ? "fast_math" : "") + " " +
                              std::to_string(asked.max_registers.value_or(0));
  std::string names;
  for (const std::string& name : launches) names += std::to_string(name.size()) + ":" + name;
  const std::string key = to_string(content_id<artifact_id>(
      {toolchain_of(device_type), view(device_type.getTarget()), options, names, cuda}));
  if (auto known = blocks_.find(key)) return *known;
  ++blocks_compiled_;
  compile_result result = compile_anew(cuda, launches, asked, device_type);
  const auto* failure = std::get_if<compile_failure>(&result);
  if (failure == nullptr || !failure->may_be_chance) blocks_.keep(key, result);
  return result;
}

artifact_result variant_compiler::compile(const schema::CompileJob::Reader& job, const task& t,
                                          const schema::DeviceType::Reader& device_type) {
  const variant_id variant(job.getHeader().getVariantId());
  const std::string key = to_string(variant) + " " + device_type.getName().cStr();
  if (auto known = artifacts_.find(key)) return *known;
  const auto begin = clock_type::now();
  const settings asked = parse_settings(view(job.getSettings()));
  compiled_block block;
  if (device_type.getKind() != schema::DeviceType::Kind::SIMULATED) {
    const auto launches = check_host_program(job.getPython(), t);
    if (const auto* failed = std::get_if<program_failure>(&launches)) {
      artifacts_.keep(key, *failed);
      return *failed;
    }
    if (job.getCuda().size() > 0) {
      auto compiled = compile_block(view(job.getCuda()), std::get<std::set<std::string>>(launches),
                                    asked, device_type);
      if (const auto* failed = std::get_if<compile_failure>(&compiled)) {
        const program_failure failure{failed->outcome, "", failed->message};
        artifacts_.keep(key, failure);
        return failure;
      }
      block = std::get<compiled_block>(std::move(compiled));
    }
  }
  record_builder<schema::Artifact> artifact;
  content_id<artifact_id>(
      {device_type.getName().cStr(), job.getSettings().cStr(), job.getPython().cStr(), block.code})
      .store(artifact->initId());
  variant.store(artifact->initVariantId());
  artifact->setDeviceType(device_type.getName());
  artifact->setSettings(job.getSettings());
  artifact->setPython(job.getPython());
  artifact->setCode(as_data(block.code));
  auto kernels = artifact->initKernels(static_cast<unsigned>(block.kernels.size()));
  for (unsigned i = 0; i < kernels.size(); ++i) {
    kernels[i].setName(block.kernels[i].name);
    kernels[i].setRegisters(block.kernels[i].registers);
    kernels[i].setStaticSharedBytes(block.kernels[i].static_shared_bytes);
    kernels[i].setLocalBytes(block.kernels[i].local_bytes);
    kernels[i].setSpilledBytes(block.kernels[i].spilled_bytes);
    kernels[i].setMaxThreadsPerBlock(block.kernels[i].max_threads_per_block);
    kernels[i].setSymbol(block.kernels[i].symbol);
    kernels[i].setCooperative(block.kernels[i].cooperative);
    auto parameters =
        kernels[i].initParameters(static_cast<unsigned>(block.kernels[i].parameters.size()));
    for (unsigned p = 0; p < parameters.size(); ++p) {
      parameters[p].setKind(block.kernels[i].parameters[p].kind);
      parameters[p].setBytes(block.kernels[i].parameters[p].bytes);
    }
  }
  artifact->setLog(block.log);
  artifact->setCompileMs(
      std::chrono::duration<double, std::milli>(clock_type::now() - begin).count());
  const artifact_result result = artifact.finish();
  artifacts_.keep(key, result);
  return result;
}

}  // namespace hone
