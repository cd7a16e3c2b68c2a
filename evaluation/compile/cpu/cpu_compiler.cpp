#include "evaluation/compile/cpu/cpu_compiler.hpp"

#include <fstream>
#include <iterator>
#include <utility>

#include "evaluation/compile/cpu/block_rewriting.hpp"
#include "evaluation/compile/cpu/cuda_on_cpu.hpp"
#include "evaluation/compile/cpu/host_toolchain.hpp"
#include "evaluation/compile/cpu/shared_object.hpp"
#include "evaluation/compile/cuda_source.hpp"
#include "evaluation/compile/normal_form.hpp"
#include "process/temporary_folder.hpp"

namespace hone {
namespace {

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Infinities and NaN stay what they are, as with NVRTC's --use_fast_math: a maximum may begin with
// -INFINITY.
void append_fast_math(std::vector<std::string>& arguments) {
  arguments.insert(arguments.end(), {"-ffast-math", "-fno-finite-math-only"});
}

}  // namespace

cpu_compiler::cpu_compiler(const std::string& target)
    : target_(words(target)),
      compiler_(tool_path("cc1plus")),
      assembler_(tool_path("as")),
      linker_(tool_path("ld")) {}

// With -nostdinc, standard input, and a filter that refuses to open sources, the preprocessor reads
// only this text.
std::vector<std::string> cpu_compiler::preprocess_arguments(bool fast_math) const {
  std::vector<std::string> arguments = {compiler_,   "-E",           "-quiet",
                                        "-nostdinc", "-std=gnu++20", "-w"};
  if (fast_math) append_fast_math(arguments);
  arguments.emplace_back("-");
  return arguments;
}

std::vector<std::string> cpu_compiler::compile_arguments(bool fast_math) const {
  std::vector<std::string> arguments = {compiler_,
                                        "-fpreprocessed",
                                        "-quiet",
                                        "-std=gnu++20",
                                        "-w",
                                        "-O3",
                                        "-fPIC",
                                        "-fvisibility=hidden",
                                        "-fno-exceptions",
                                        "-fno-rtti",
                                        "-fno-asynchronous-unwind-tables",
                                        "-fno-math-errno",
                                        "-fno-trapping-math",
                                        "-fno-threadsafe-statics",
                                        "-fno-stack-protector",
                                        "-fno-ident",
                                        "-fno-diagnostics-show-caret",
                                        "-fno-gnu-unique",
                                        "-fmax-errors=8",
                                        "-ftemplate-depth=200"};
  if (fast_math) append_fast_math(arguments);
  arguments.insert(arguments.end(), target_.begin(), target_.end());
  arguments.insert(arguments.end(), {"-", "-o", "block.s"});
  return arguments;
}

program_result<compiled_block> cpu_compiler::compile(std::string_view block,
                                                     const std::vector<std::string>& launched,
                                                     bool fast_math,
                                                     std::chrono::milliseconds time_limit) const {
  try {
    return build(block, launched, fast_math, std::chrono::steady_clock::now() + time_limit);
  } catch (const block_refused& e) {
    return failed(e.why);
  }
}

compiled_block cpu_compiler::build(std::string_view block, const std::vector<std::string>& launched,
                                   bool fast_math,
                                   std::chrono::steady_clock::time_point deadline) const {
  const include_scan includes = take_out_includes(block);
  if (!includes.refused.empty()) {
    const auto& first = includes.refused.front();
    throw block_refused("cuda:" + std::to_string(first.line) + ": <" + first.name +
                        "> cannot be included on the CPU device; accepted are cuda_runtime.h, "
                        "math_constants.h, float.h, math.h, cmath, stdint.h and cstdint");
  }
  const temporary_folder folder("compile");
  const auto run = [&](const std::vector<std::string>& arguments, std::string_view input) {
    return run_tool(arguments, input, deadline, folder.path());
  };

  const process_result preprocessed =
      run(preprocess_arguments(fast_math),
          "# 1 \"hone\"\n" + cuda_on_cpu() + "\n# 1 \"cuda\"\n" + includes.text + "\n");
  if (!preprocessed.succeeded()) refuse_diagnosed(preprocessed, "the preprocessor");
  const std::string_view own = block_part(preprocessed.out);
  const std::string_view prelude =
      std::string_view(preprocessed.out)
          .substr(0, static_cast<std::size_t>(own.data() - preprocessed.out.data()));
  const std::vector<cuda_token> tokens = tokenize(own);
  if (const auto problem = find_forbidden(tokens))
    throw block_refused("cuda:" + std::to_string(problem->line) + ": " + problem->message);

  const auto declared = declared_kernels(tokens);
  std::vector<std::string> kernels;
  for (const std::string& name : launched) {
    if (names_a_kernel(name, declared)) kernels.push_back(name);
  }
  const std::string rewritten = rewrite_block(own);
  const process_result compiled =
      run(compile_arguments(fast_math), std::string(prelude) + rewritten + launch_table(kernels));
  if (!compiled.succeeded()) refuse_diagnosed(compiled, "the compiler");
  if (!run({assembler_, "--64", "block.s", "-o", "block.o"}, "").succeeded())
    throw block_refused("the assembler refused the block");
  if (!run({linker_, "-shared", "-z", "noexecstack", "-z", "now", "-z", "relro", "--hash-style=gnu",
            "-s", "block.o", "-o", "block.so"},
           "")
           .succeeded())
    throw block_refused("the linker refused the block");

  compiled_block result;
  result.code = read_bytes(folder.path() + "/block.so");
  result.normal_form =
      normal_form(read_bytes(folder.path() + "/block.s"), {"hone_module"}, kernels);
  if (const auto problem = find_loading_problem(result.code))
    throw block_refused("cuda: the block " + *problem);
  for (const std::string& name : kernels)
    result.kernels.push_back({.name = name, .parameters = {}});
  return result;
}

}  // namespace hone
