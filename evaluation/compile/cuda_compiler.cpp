#include "evaluation/compile/cuda_compiler.hpp"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "evaluation/compile/cubin.hpp"
#include "evaluation/compile/cuda_source.hpp"
#include "evaluation/compile/deep_stack.hpp"
#include "evaluation/compile/nvrtc/nvrtc.capnp.h"
#include "evaluation/sandbox/framing.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

using clock_type = std::chrono::steady_clock;

constexpr auto start_limit = std::chrono::seconds(60);  // the library from a cold disk
constexpr auto answer_grace =
    std::chrono::seconds(20);  // beyond a block's own time: headers that are precompiled first
constexpr int max_diagnostics = 12;
constexpr std::size_t longest_diagnostic = 1000;

struct failed {
  std::string message;
  Outcome outcome = Outcome::COMPILE_ERROR;
  bool may_be_chance = false;
};

std::vector<std::string> options_for(const settings& asked, const std::string& architecture) {
  std::vector<std::string> options = {"-arch=" + architecture, "-std=c++20", "-default-device",
                                      "-w", "--ptxas-options=-v"};
  if (asked.fast_math) options.emplace_back("--use_fast_math");
  if (asked.max_registers)
    options.push_back("--maxrregcount=" + std::to_string(*asked.max_registers));
  return options;
}

// "inner::tiled<16>" -> "tiled"
std::string base_name(const std::string& launched) {
  const std::string name = launched.substr(0, launched.find('<'));
  const std::size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

std::string table_name(std::size_t kernel) { return "hone_parameters_" + std::to_string(kernel); }

std::string parameter_tables(const std::vector<std::string>& kernels) {
  std::string text = "\n#line 1 \"launch\"\n";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    text += "extern \"C\" __device__ const hone::parameters<decltype(&" + kernels[i] + ")> " +
            table_name(i) + "{};\n";
  }
  return text;
}

// "cuda(12): error: ..." becomes "cuda:12: error: ..."; what the compiler says of other files, and
// the text that it quotes, is left out. What the assembler says of a line of `ptx` is said of the
// block's line.
std::string tidy_diagnostics(const std::string& log, std::string_view ptx) {
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

// Without folders: those are the machine's.
std::string first_line(const std::string& log) {
  return std::regex_replace(log.substr(0, std::min<std::size_t>(log.find('\n'), 200)),
                            std::regex(R"(\S*/)"), "");
}

}  // namespace

cuda_compiler::cuda_compiler() { start(); }

void cuda_compiler::start() {
  auto [ours, theirs] = socket_pair();
  socket_ = std::move(ours);
  child_options options;
  options.arguments = {companion_program("hone-nvrtc", "HONE_NVRTC")};
  options.environment = {"LC_ALL=C", "TMPDIR=" + folder_.path()};
  inherit(options.environment,
          {"LD_LIBRARY_PATH", "HONE_CUDA", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"});
  const unique_fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  options.descriptors = {{null.get(), 0}, {null.get(), 1}, {null.get(), 2}, {theirs.get(), 3}};
  options.folder = folder_.path();
  process_ = child_process(options);
  theirs.reset();
  auto message = receive_message(socket_.get(), clock_type::now() + start_limit);
  if (!message) throw std::runtime_error("hone-nvrtc did not start within a minute");
  const auto greeting = record<schema::NvrtcGreeting>::from_bytes(std::move(message->bytes));
  if (greeting->getProblem().size() > 0) throw std::runtime_error(greeting->getProblem().cStr());
  name_ =
      "nvrtc" + std::to_string(greeting->getMajor()) + "." + std::to_string(greeting->getMinor());
  include_folders_.clear();
  for (const auto folder : greeting->getIncludeFolders())
    include_folders_.emplace_back(folder.cStr());
}

bool cuda_compiler::is_cuda_header(const std::string& name) const {
  if (name.empty() || name.front() == '/' || name.find("..") != std::string::npos) return false;
  return std::any_of(
      include_folders_.begin(), include_folders_.end(), [&](const std::string& folder) {
        return std::filesystem::is_regular_file(std::filesystem::path(folder) / name);
      });
}

compile_result cuda_compiler::compile(std::string_view block, const std::set<std::string>& launched,
                                      const settings& asked, const std::string& architecture,
                                      std::chrono::milliseconds time_limit) try {
  include_scan includes = take_out_includes(block);
  if (const auto hidden = on_deep_stack([&] { return find_hidden_include(includes); }))
    throw failed{"cuda:" + std::to_string(hidden->line) + ": " + hidden->message};
  for (const auto& include : includes.refused) {
    if (!is_cuda_header(include.name))
      throw failed{"cuda:" + std::to_string(include.line) + ": <" + include.name +
                   "> is none of CUDA's headers"};
  }
  const std::vector<std::string> headers = take_out_leading_headers(includes);
  const std::string readable = blank_comments(includes.text);
  const std::vector<cuda_token> tokens = tokenize(readable);
  for (const cuda_token& token : tokens) {
    if (token.text == "hone" || token.text.starts_with("hone_"))
      throw failed{"cuda:" + std::to_string(token.line) +
                   ": names that begin with 'hone' are reserved"};
  }
  // What macros declare does not show in the text: there, a name is taken at its word.
  static const std::regex by_macro(R"(#\s*define\b.*\b__global__\b)");
  const bool is_by_macro = on_deep_stack([&] { return std::regex_search(readable, by_macro); });
  const auto declared = declared_kernels(tokens);
  std::vector<std::string> kernels;
  for (const std::string& name : launched) {
    if (names_a_kernel(
            name, is_by_macro ? std::set<std::string, std::less<>>{base_name(name)} : declared))
      kernels.push_back(name);
  }

  record_builder<schema::NvrtcJob> job;
  auto list = job->initHeaders(static_cast<unsigned>(headers.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, headers[i]);
  job->setBlock("#line 1 \"cuda\"\n" + includes.text + parameter_tables(kernels));
  const auto options = options_for(asked, architecture);
  auto words = job->initOptions(static_cast<unsigned>(options.size()));
  for (unsigned i = 0; i < words.size(); ++i) words.set(i, options[i]);
  auto names = job->initKernels(static_cast<unsigned>(kernels.size()));
  for (unsigned i = 0; i < names.size(); ++i) names.set(i, kernels[i]);
  job->setTimeMs(static_cast<std::uint32_t>(time_limit.count()));

  if (!process_.running()) start();
  std::optional<received_message> message;
  try {
    send_message(socket_.get(), job.finish().bytes());
    message = receive_message(socket_.get(), clock_type::now() + time_limit + answer_grace);
  } catch (const connection_lost&) {
  }
  if (!message) {
    process_.kill();  // started again by the next block
    throw failed{"the compiler was stopped at its deadline, or died of the block",
                 Outcome::COMPILE_ERROR, true};
  }
  const auto made = record<schema::NvrtcResult>::from_bytes(std::move(message->bytes));
  if (made->getStopped().size() > 0)
    throw failed{made->getStopped().cStr(), Outcome::COMPILE_ERROR, true};
  const std::string log = made->getLog().cStr();
  if (!made->getCompiled()) {
    const std::string tidy = tidy_diagnostics(log, view(made->getPtx()));
    throw failed{tidy.empty() ? "cuda: the compiler refused the block: " + first_line(log) : tidy};
  }
  if (const auto persisting = find_persisting_cache_use(view(made->getPtx())))
    throw failed{"cuda: " + *persisting, Outcome::REJECTED};

  compiled_block result;
  const auto code = made->getCode();
  result.code.assign(reinterpret_cast<const char*>(code.begin()), code.size());
  const std::vector<kernel_facts> usage = read_resource_usage(log);
  for (unsigned i = 0; i < kernels.size(); ++i) {
    kernel_facts facts{.name = kernels[i], .parameters = {}};
    const std::string symbol = made->getSymbols()[i].cStr();
    const auto used = std::find_if(usage.begin(), usage.end(),
                                   [&](const kernel_facts& u) { return u.name == symbol; });
    if (used != usage.end()) facts = *used;
    facts.name = kernels[i];
    facts.symbol = symbol;
    facts.cooperative = synchronises_grid(view(made->getPtx()), symbol);
    const auto parameters = read_parameter_table(result.code, table_name(i));
    if (!parameters)
      throw failed{"cuda: the parameters of " + kernels[i] +
                   " cannot be read from what was compiled"};
    facts.parameters = *parameters;
    result.kernels.push_back(std::move(facts));
  }
  return result;
} catch (const failed& e) {
  return compile_failure{e.outcome, e.message, e.may_be_chance};
}

}  // namespace hone
