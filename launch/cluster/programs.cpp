#include "launch/cluster/programs.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "process/find_program.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::streamoff max_tail_bytes = 4096;
constexpr std::size_t max_tail_lines = 10;

void trim_end(std::string& text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
}

}  // namespace

std::vector<std::string> launch_environment() {
  // Variables of the job in which this process may run. Slurm's programs take options from them,
  // which win over those of a script.
  constexpr std::array<std::string_view, 7> of_a_job = {"SLURM_",  "SBATCH_", "SALLOC_", "SRUN_",
                                                        "SLURMD_", "PMI_",    "PMIX_"};
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable = *one;
    const bool is_of_a_job = std::any_of(of_a_job.begin(), of_a_job.end(), [&](const auto prefix) {
      return variable.starts_with(prefix);
    });
    if (!is_of_a_job || variable.starts_with("SLURM_CONF=")) variables.emplace_back(variable);
  }
  return variables;
}

std::string run_program(std::vector<std::string> arguments, const std::string& input,
                        std::chrono::milliseconds limit) {
  const std::string shown = shell_line(arguments);
  child_options options;
  arguments[0] = find_program(arguments[0]);
  options.arguments = std::move(arguments);
  options.environment = launch_environment();
  process_result result = run_process(options, input, limit);
  if (result.succeeded()) return result.out;
  trim_end(result.err);
  const std::string why = result.timed_out
                              ? "took longer than " + std::to_string(limit.count() / 1000) + " s"
                          : result.too_much ? "printed too much"
                                            : "ended with " + describe_status(result.status);
  throw std::runtime_error(shown + " " + why + (result.err.empty() ? "" : ": " + result.err));
}

std::string shell_quoted(const std::string& word) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,+-@%=";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    // A first word with '=' would be an assignment.
    const bool is_assignment = line.empty() && word.find('=') != std::string::npos;
    line += (line.empty() ? "" : " ") +
            (is_assignment && shell_quoted(word) == word ? "'" + word + "'" : shell_quoted(word));
  }
  return line;
}

std::string last_lines(const fs::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - max_tail_bytes));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  trim_end(text);
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines < max_tail_lines && begin != std::string::npos; ++lines)
    begin = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
  return begin == std::string::npos ? text : text.substr(begin + 1);
}

}  // namespace hone
