#include "evaluation/compile/cuda/diagnostics.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "evaluation/compile/cuda/cubin.hpp"

namespace hone {
namespace {

constexpr int max_diagnostics = 12;
constexpr std::size_t max_line_bytes = 1000;
constexpr std::size_t max_diagnostic_bytes = 400;

// Takes the next line off `text`. Returns at most max_line_bytes of it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, std::min(end, max_line_bytes));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Returns the diagnostic that a line of the log reports, or an empty string. `is_first`: no line
// before it has reported one.
std::string diagnostic_in(std::string_view line, std::string_view ptx, bool is_first) {
  static const RE2 in_block(R"((cuda|launch)\((\d+)\): ((?:catastrophic )?error.*))", RE2::Latin1);
  static const RE2 in_header(R"(\S+\(\d+\): ((?:catastrophic )?error.*))", RE2::Latin1);
  static const RE2 in_assembler(R"(ptxas .*, line (\d+); error\s*: (.*))", RE2::Latin1);
  static const RE2 of_assembler(R"(ptxas .*(?:error|fatal).*)", RE2::Latin1);
  constexpr std::string_view end_of_assembly = "Ptx assembly aborted due to errors";
  const re2::StringPiece whole(line.data(), line.size());
  std::string file;
  std::string number;
  std::string message;
  if (RE2::FullMatch(whole, in_block, &file, &number, &message))
    return file + ":" + number + ": " + message;
  if (RE2::FullMatch(whole, in_header, &message)) return "cuda: in a header: " + message;
  if (RE2::FullMatch(whole, in_assembler, &number, &message)) {
    const auto at = find_source_line(ptx, std::strtol(number.c_str(), nullptr, 10), "cuda");
    return (at ? "cuda:" + std::to_string(*at) : "cuda") + ": error: in assembler: " + message;
  }
  const bool is_end = line.find(end_of_assembly) != std::string_view::npos;
  if (RE2::FullMatch(whole, of_assembler) && (is_first || !is_end))
    return "cuda: " + std::string(line);
  return "";
}

}  // namespace

std::string tidy_cuda_diagnostics(std::string_view log, std::string_view ptx) {
  std::string tidy;
  for (int kept = 0; kept < max_diagnostics && !log.empty();) {
    const std::string diagnostic = diagnostic_in(take_line(log), ptx, tidy.empty());
    if (diagnostic.empty()) continue;
    tidy += (tidy.empty() ? "" : "\n") + diagnostic.substr(0, max_diagnostic_bytes);
    ++kept;
  }
  return tidy;
}

std::string first_log_line(std::string_view log) {
  static const RE2 folders(R"(\S*/)", RE2::Latin1);
  std::string line(log.substr(0, std::min<std::size_t>(log.find('\n'), 200)));
  RE2::GlobalReplace(&line, folders, "");
  return line;
}

}  // namespace hone
