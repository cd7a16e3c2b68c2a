#include "evaluation/compile/cpu/host_toolchain.hpp"

#include <re2/re2.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "evaluation/compile/compiled_block.hpp"
#include "process/find_program.hpp"

namespace hone {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t compiler_memory = 3ULL << 30U;
constexpr std::size_t max_code_bytes = 32U << 20U;

std::string ask_compiler(const std::vector<std::string>& arguments) {
  child_options options;
  options.ignores_stop_signals = true;
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

// Keeps the lines of the compiler that report errors, without other text that it quotes. Limits
// their number and length.
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

}  // namespace

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::string native_target() {
  static const std::string target = [] {
    std::string options;
    for (std::string word :
         words(ask_compiler({"-march=native", "-###", "-E", "-x", "c++", "-"}))) {
      word.erase(std::remove(word.begin(), word.end(), '"'), word.end());
      static const RE2 relevant("-m[a-z0-9.=_-]+");
      if (RE2::FullMatch(word, relevant) && options.find(word + " ") == std::string::npos)
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

std::string tool_path(const std::string& name) {
  std::string path = ask_compiler({"-print-prog-name=" + name});
  while (path.ends_with('\n')) path.pop_back();
  return find_program(path);  // g++ says the mere name of a program that is not its own
}

process_result run_tool(const std::vector<std::string>& arguments, std::string_view input,
                        steady_clock::time_point deadline, const std::string& folder) {
  child_options options;
  options.ignores_stop_signals = true;
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
  const int ended_by = WIFSIGNALED(result.status) ? WTERMSIG(result.status) : 0;
  if (result.timed_out || ended_by == SIGXCPU)
    throw block_refused("the compiler was stopped at its deadline");
  if (result.too_much || ended_by == SIGXFSZ)
    throw block_refused("the compiler's output is too large");
  // Nothing here kills it before the deadline; a kernel without memory does.
  if (ended_by == SIGKILL)
    throw block_refused("the compiler was killed", Outcome::INFRASTRUCTURE, true);
  return result;
}

void refuse_diagnosed(const process_result& result, const char* what) {
  const std::string tidy = tidy_diagnostics(result.err);
  if (!tidy.empty()) throw block_refused(tidy);
  throw block_refused(std::string(what) + " failed (" + describe_status(result.status) +
                      "): too deep, too large, or not C++");
}

}  // namespace hone
