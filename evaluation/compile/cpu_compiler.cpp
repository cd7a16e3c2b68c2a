#include "evaluation/compile/cpu_compiler.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "embedded/cuda_on_cpu.hpp"
#include "evaluation/compile/cuda_source.hpp"
#include "evaluation/compile/deep_stack.hpp"
#include "evaluation/compile/shared_object.hpp"
#include "evaluation/sandbox/child_process.hpp"
#include "evaluation/sandbox/temporary_folder.hpp"

namespace hone {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t compiler_memory = 3ULL << 30U;
constexpr std::size_t max_code_bytes = 32U << 20U;
constexpr std::size_t max_expanded_bytes = 1U << 20U;

struct failed {
  std::string message;
  Outcome outcome = Outcome::COMPILE_ERROR;
};

std::string ask_compiler(const std::vector<std::string>& arguments) {
  child_options options;
  options.arguments = {"/usr/bin/env", "g++"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.environment = {
      "PATH=" + std::string(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "/usr/bin:/bin"),
      "LC_ALL=C"};
  const process_result result = run_process(options, "", milliseconds(20000));
  if (!result.succeeded())
    throw std::runtime_error("the CPU device needs g++, which does not run: " + result.err);
  return result.out + result.err;
}

std::string tool_path(const std::string& name) {
  std::string path = ask_compiler({"-print-prog-name=" + name});
  while (path.ends_with('\n')) path.pop_back();
  if (!path.starts_with('/')) {
    std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH")
                                                              : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (access((folder + "/" + path).c_str(), X_OK) == 0) return folder + "/" + path;
    }
    throw std::runtime_error("g++ has no " + name);
  }
  return path;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// The compiler's own lines of the block only, without what other text it quotes, cut to a readable
// length.
std::string tidy_diagnostics(const std::string& raw) {
  std::istringstream in(raw);
  std::string tidy;
  int kept = 0;
  for (std::string line; std::getline(in, line) && kept < 12;) {
    if (line.find("error:") == std::string::npos) continue;
    if (!line.starts_with("cuda:") && !line.starts_with("launch:"))
      line = "cuda: " + line.substr(line.find("error:"));
    tidy += (tidy.empty() ? "" : "\n") + line.substr(0, 400);
    ++kept;
  }
  return tidy;
}

process_result run_tool(const std::vector<std::string>& arguments, std::string_view input,
                        steady_clock::time_point deadline, const std::string& folder) {
  child_options options;
  options.arguments = arguments;
  options.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=" + folder};
  options.folder = folder;
  options.address_space_bytes = compiler_memory;
  options.file_bytes = max_code_bytes;
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
  options.cpu_seconds =
      static_cast<std::uint64_t>(std::max<std::int64_t>(1, left.count() / 1000 + 1));
  options.filter = &toolchain_filter();
  process_result result = run_process(options, input, std::max(left, milliseconds(1)));
  if (result.timed_out || (WIFSIGNALED(result.status) && (WTERMSIG(result.status) == SIGXCPU ||
                                                          WTERMSIG(result.status) == SIGKILL))) {
    throw failed{"the compiler was stopped at its deadline"};
  }
  if (result.too_much || (WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGXFSZ))
    throw failed{"the compiler's output is too large"};
  return result;
}

[[noreturn]] void refuse(const process_result& result, const char* what) {
  const std::string tidy = tidy_diagnostics(result.err);
  if (!tidy.empty()) throw failed{tidy};
  throw failed{std::string(what) + " failed (" + describe_status(result.status) +
               "): too deep, too large, or not C++"};
}

// The preprocessed text from the block's first line on: what stands before is ours.
std::string_view block_part(std::string_view preprocessed) {
  const std::size_t at = preprocessed.find("\n# 1 \"cuda\"");
  if (at == std::string_view::npos) throw failed{"cuda: the preprocessor lost the block"};
  return preprocessed.substr(at + 1);
}

std::string_view identifier_before(std::string_view text, std::size_t end) {
  while (end > 0 && std::isspace(static_cast<unsigned char>(text[end - 1])) != 0) --end;
  std::size_t begin = end;
  while (begin > 0 &&
         (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '_'))
    --begin;
  return text.substr(begin, end - begin);
}

// g++ knows neither kernels nor shared memory. `__global__` goes. `__shared__ T x[N];` becomes a
// static of this thread's (all fibers of a block share the thread, and the sandbox can find and
// poison it); `extern __shared__ T x[];` becomes a pointer to the launch's dynamic part. Pragmas
// go, line markers other than the block's own too, and lines stay where they are.
std::string rewrite(std::string_view preprocessed) {
  if (preprocessed.size() > max_expanded_bytes)
    throw failed{"cuda: macros make more than a MiB of the block"};
  std::string kept;
  kept.reserve(preprocessed.size());
  for (std::size_t i = 0; i < preprocessed.size();) {
    const std::size_t end = std::min(preprocessed.find('\n', i), preprocessed.size());
    const std::string_view line = preprocessed.substr(i, end - i);
    const std::size_t first = line.find_first_not_of(" \t");
    const bool is_directive = first != std::string_view::npos &&
                              (line[first] == '#' || line.substr(first).starts_with("%:"));
    const bool is_marker =
        line.starts_with("# ") && line.find("\"cuda\"") != std::string_view::npos;
    if (is_directive && !is_marker && line.find("pragma") == std::string_view::npos)
      throw failed{"cuda: a directive is left after preprocessing"};
    if (!is_directive || is_marker) kept.append(line);
    kept += '\n';
    i = end + 1;
  }
  static const std::regex dynamic(
      R"(\bextern\s+__shared__\s+([^;{}()=]*(?:\([^;{}()=]*\)[^;{}()=]*)?)\[\s*\]\s*;)");
  std::string text;
  auto from = kept.cbegin();
  for (std::sregex_iterator it(kept.begin(), kept.end(), dynamic), none; it != none; ++it) {
    text.append(from, (*it)[0].first);
    const std::string declaration = (*it)[1];
    const std::string_view name = identifier_before(declaration, declaration.size());
    std::string type =
        declaration.substr(0, static_cast<std::size_t>(name.data() - declaration.data()));
    type = std::regex_replace(type, std::regex(R"(\balignas\s*\([^()]*\))"), " ");
    type = std::regex_replace(type, std::regex(R"(\bvolatile\b)"), " ");
    text += "static " + type + "* const " + std::string(name) + " = reinterpret_cast<" + type +
            "*>(hone::dynamic_shared);";
    from = (*it)[0].second;
  }
  text.append(from, kept.cend());
  // What __align__ has become stands behind __shared__ as often as before it, which is not C++'s
  // order.
  static const std::regex fixed(
      R"(\b(?:static\s+)?(?:volatile\s+)?__shared__\b\s*(alignas\s*\([^()]*\))?)");
  static const std::regex global(R"(\b__global__\b)");
  // "used": a variable that the block reads and never writes would otherwise be the constant zero,
  // not what lies there.
  return std::regex_replace(
      std::regex_replace(text, fixed, "$1 __attribute__((used)) static thread_local "), global, "");
}

std::string launch_table(const std::vector<std::string>& kernels) {
  std::string text = "\n# 1 \"launch\"\nstatic const hone::kernel hone_kernels[] = {";
  for (const std::string& name : kernels)
    text += "hone::entry<&" + name + ">::describe(\"" + name + "\"), ";
  text += "{nullptr, 0, nullptr, nullptr, nullptr}};\n";
  return text +
         "extern \"C\" __attribute__((visibility(\"default\"))) const hone::module hone_module;\n"
         "const hone::module hone_module = {1, " +
         std::to_string(kernels.size()) +
         ", hone_kernels, &hone::bind, &hone::set_launch, hone::dynamic_shared, sizeof "
         "hone::dynamic_shared, &hone::static_shared};\n";
}

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string native_target() {
  static const std::string target = [] {
    std::string options;
    for (std::string word :
         words(ask_compiler({"-march=native", "-###", "-E", "-x", "c++", "-"}))) {
      word.erase(std::remove(word.begin(), word.end(), '"'), word.end());
      static const std::regex relevant("-m(arch|tune)?[a-z0-9.=_-]+");
      if (std::regex_match(word, relevant) && options.find(word + " ") == std::string::npos)
        options += word + " ";
    }
    while (options.ends_with(' ')) options.pop_back();
    return options;
  }();
  return target;
}

std::string compiler_name() {
  static const std::string name = [] {
    const std::string version = ask_compiler({"-dumpfullversion"});
    return "gcc" + version.substr(0, version.find('.', version.find('.') + 1));
  }();
  return name;
}

cpu_compiler::cpu_compiler(std::string target)
    : target_(words(target)),
      compiler_(tool_path("cc1plus")),
      assembler_(tool_path("as")),
      linker_(tool_path("ld")) {}

compile_result cpu_compiler::compile(std::string_view block, const std::set<std::string>& launched,
                                     bool fast_math, std::chrono::milliseconds time_limit) const
    try {
  const auto deadline = steady_clock::now() + time_limit;
  const include_scan includes = take_out_includes(block);
  if (!includes.refused.empty()) {
    const auto& first = includes.refused.front();
    throw failed{"cuda:" + std::to_string(first.line) + ": <" + first.name +
                 "> cannot be included on the CPU device; accepted are cuda_runtime.h, "
                 "math_constants.h, float.h, math.h, cmath, stdint.h and cstdint"};
  }
  const temporary_folder folder("compile");
  // -nostdinc, standard input, and a filter that refuses to open sources: the preprocessor sees
  // this text and nothing else.
  std::vector<std::string> preprocess = {compiler_,   "-E",           "-quiet",
                                         "-nostdinc", "-std=gnu++20", "-w"};
  std::vector<std::string> generate = {compiler_,
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
  if (fast_math) {
    preprocess.push_back("-ffast-math");
    generate.push_back("-ffast-math");
  }
  generate.insert(generate.end(), target_.begin(), target_.end());
  generate.insert(generate.end(), {"-", "-o", "block.s"});
  preprocess.push_back("-");

  const process_result preprocessed =
      run_tool(preprocess,
               "# 1 \"hone\"\n" + std::string(embedded::cuda_on_cpu) + "\n# 1 \"cuda\"\n" +
                   includes.text + "\n",
               deadline, folder.path());
  if (!preprocessed.succeeded()) refuse(preprocessed, "the preprocessor");
  const std::string_view ours = block_part(preprocessed.out);
  const std::vector<cuda_token> tokens = tokenize(ours);
  if (const auto problem = find_forbidden(tokens))
    throw failed{"cuda:" + std::to_string(problem->line) + ": " + problem->message};

  const auto declared = declared_kernels(tokens);
  std::vector<std::string> kernels;
  for (const std::string& name : launched) {
    if (names_a_kernel(name, declared)) kernels.push_back(name);
  }
  const std::string_view prelude =
      std::string_view(preprocessed.out)
          .substr(0, static_cast<std::size_t>(ours.data() - preprocessed.out.data()));
  const process_result compiled = run_tool(generate, std::string(prelude) + on_deep_stack([&] {
                                                       return rewrite(ours);
                                                     }) + launch_table(kernels),
                                           deadline, folder.path());
  if (!compiled.succeeded()) refuse(compiled, "the compiler");
  const process_result assembled =
      run_tool({assembler_, "--64", "block.s", "-o", "block.o"}, "", deadline, folder.path());
  if (!assembled.succeeded()) throw failed{"the assembler refused the block"};
  const process_result linked =
      run_tool({linker_, "-shared", "-z", "noexecstack", "-z", "now", "-z", "relro",
                "--hash-style=gnu", "-s", "block.o", "-o", "block.so"},
               "", deadline, folder.path());
  if (!linked.succeeded()) throw failed{"the linker refused the block"};

  compiled_block result;
  result.code = read_bytes(folder.path() + "/block.so");
  if (const auto problem = find_loading_problem(result.code))
    throw failed{"cuda: the block " + *problem};
  for (const std::string& name : kernels)
    result.kernels.push_back({.name = name, .parameters = {}});
  return result;
} catch (const failed& e) {
  return compile_failure{e.outcome, e.message};
}

}  // namespace hone
