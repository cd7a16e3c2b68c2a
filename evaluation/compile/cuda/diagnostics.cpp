#include "evaluation/compile/cuda/diagnostics.hpp"

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>

#include "evaluation/compile/cuda/cubin.hpp"

namespace hone {
namespace {

constexpr int max_diagnostics = 12;
constexpr std::size_t longest_diagnostic = 1000;

}  // namespace

std::string tidy_cuda_diagnostics(const std::string& log, std::string_view ptx) {
  static const std::regex own(R"(^(cuda|launch)\((\d+)\): ((?:catastrophic )?error.*)$)");
  static const std::regex elsewhere(R"(^\S+\(\d+\): ((?:catastrophic )?error.*)$)");
  static const std::regex assembler(R"(^ptxas .*, line (\d+); error\s*: (.*)$)");
  static const std::regex ptxas(R"(^ptxas .*(error|fatal).*$)");
  constexpr std::string_view end_of_assembly = "Ptx assembly aborted due to errors";
  std::istringstream in(log);
  std::string tidy;
  int kept = 0;
  for (std::string line; kept < max_diagnostics && std::getline(in, line);) {
    std::smatch match;
    std::string said;
    line.resize(std::min(line.size(), longest_diagnostic));
    if (std::regex_match(line, match, own)) {
      said = match[1].str() + ":" + match[2].str() + ": " + match[3].str();
    } else if (std::regex_match(line, match, elsewhere)) {
      said = "cuda: in a header: " + match[1].str();
    } else if (std::regex_match(line, match, assembler)) {
      const auto at =
          find_source_line(ptx, std::strtol(match[1].str().c_str(), nullptr, 10), "cuda");
      said = (at ? "cuda:" + std::to_string(*at) : "cuda") +
             ": error: in assembler: " + match[2].str();
    } else if (std::regex_match(line, ptxas) &&
               (tidy.empty() || line.find(end_of_assembly) == std::string::npos)) {
      said = "cuda: " + line;
    } else {
      continue;
    }
    tidy += (tidy.empty() ? "" : "\n") + said.substr(0, 400);
    ++kept;
  }
  return tidy;
}

std::string first_log_line(const std::string& log) {
  return std::regex_replace(log.substr(0, std::min<std::size_t>(log.find('\n'), 200)),
                            std::regex(R"(\S*/)"), "");
}

}  // namespace hone
