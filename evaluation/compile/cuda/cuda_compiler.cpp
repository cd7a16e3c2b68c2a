#include "evaluation/compile/cuda/cuda_compiler.hpp"

#include <fcntl.h>
#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "evaluation/compile/cuda/cubin.hpp"
#include "evaluation/compile/cuda/diagnostics.hpp"
#include "evaluation/compile/cuda/nvrtc/nvrtc.capnp.h"
#include "evaluation/compile/cuda_source.hpp"
#include "evaluation/compile/normal_form.hpp"
#include "evaluation/program/kernel_limits.hpp"
#include "messages/record.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

using clock_type = std::chrono::steady_clock;

constexpr auto start_limit = std::chrono::seconds(60);  // enough to load NVRTC from a cold disk
// Time beyond a block's own limit, for headers that are precompiled first.
constexpr auto answer_grace = std::chrono::seconds(20);

std::vector<std::string> options_for(const settings& asked, const std::string& architecture) {
  std::vector<std::string> options = {"-arch=" + architecture, "-std=c++20", "-default-device",
                                      "-w", "--ptxas-options=-v"};
  if (asked.fast_math) options.emplace_back("--use_fast_math");
  if (asked.max_registers)
    options.push_back("--maxrregcount=" + std::to_string(*asked.max_registers));
  return options;
}

constexpr std::string_view table_prefix = "hone_parameters_";

std::string parameter_tables(const std::vector<std::string>& kernels) {
  std::string text = "\n#line 1 \"launch\"\n";
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    text += "extern \"C\" __device__ const hone::parameters<decltype(&" + kernels[i] + ")> " +
            std::string(table_prefix) + std::to_string(i) + "{};\n";
  }
  return text;
}

record<schema::NvrtcJob> make_job(const std::vector<std::string>& headers,
                                  const std::string& source,
                                  const std::vector<std::string>& kernels,
                                  const std::vector<std::string>& options,
                                  std::chrono::milliseconds time_limit) {
  record_builder<schema::NvrtcJob> job;
  const auto fill = [](capnp::List<capnp::Text>::Builder list,
                       const std::vector<std::string>& from) {
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, from[i]);
  };
  fill(job->initHeaders(static_cast<unsigned>(headers.size())), headers);
  fill(job->initOptions(static_cast<unsigned>(options.size())), options);
  fill(job->initKernels(static_cast<unsigned>(kernels.size())), kernels);
  job->setBlock(source);
  job->setTimeMs(static_cast<std::uint32_t>(time_limit.count()));
  return job.finish();
}

block_refused stopped_at_deadline() {
  return block_refused("the compiler was stopped at its deadline, or crashed on the block",
                       Outcome::COMPILE_ERROR, true);
}

// Throws block_refused if the compiled code takes more memory of a GPU than a variant may take in
// addition to its tensors, or memory that would remain taken when the next variant runs.
void check_memory(std::string_view cubin) {
  const auto use = read_memory_use(cubin);
  if (!use) throw block_refused("cuda: the compiled code cannot be read");
  if (use->allocates)
    throw block_refused(
        "cuda: kernels cannot allocate memory (malloc, new): what is left on the device's heap "
        "would stay there for the programs that follow",
        Outcome::REJECTED);
  if (use->stack_bytes > max_local_bytes)
    throw block_refused("cuda: " + use->stack_symbol + " needs " +
                            std::to_string(use->stack_bytes) +
                            " bytes of local memory a thread (arrays and spilled registers), "
                            "the limit is " +
                            std::to_string(max_local_bytes),
                        Outcome::LAUNCH_ERROR);
  if (use->variable_bytes > max_variable_bytes)
    throw block_refused("cuda: the block's variables take " + std::to_string(use->variable_bytes) +
                            " bytes, the limit is " + std::to_string(max_variable_bytes),
                        Outcome::LAUNCH_ERROR);
}

// Reads the code and the facts about the kernels from NVRTC's result. Throws block_refused.
compiled_block read_result(const schema::NvrtcResult::Reader& made,
                           const std::vector<std::string>& kernels,
                           clock_type::time_point deadline) {
  const auto symbols = made.getSymbols();
  if (symbols.size() != kernels.size())
    throw block_refused("cuda: the compiler's answer does not name all kernels");
  compiled_block result;
  const auto code = made.getCode();
  result.code.assign(reinterpret_cast<const char*>(code.begin()), code.size());
  check_memory(result.code);
  std::vector<std::string> roots;
  for (const auto symbol : symbols) roots.emplace_back(view(symbol));
  result.normal_form = normal_form(view(made.getPtx()), roots, kernels);
  const grid_barriers barriers(view(made.getPtx()));
  auto parameters = read_parameter_tables(result.code, table_prefix, kernels.size());
  std::unordered_map<std::string, kernel_facts> usage;  // by symbol
  for (kernel_facts& used : read_resource_usage(view(made.getLog()))) {
    std::string symbol = used.name;
    usage.try_emplace(std::move(symbol), std::move(used));
  }
  for (unsigned i = 0; i < kernels.size(); ++i) {
    if (clock_type::now() > deadline) throw stopped_at_deadline();
    kernel_facts facts{.name = {}, .parameters = {}};
    const std::string symbol = symbols[i].cStr();
    if (const auto used = usage.find(symbol); used != usage.end()) facts = used->second;
    facts.name = kernels[i];
    facts.symbol = symbol;
    facts.cooperative = barriers.are_in(symbol);
    if (!parameters[i])
      throw block_refused("cuda: the parameters of " + kernels[i] +
                          " cannot be read from the compiled code");
    facts.parameters = *std::move(parameters[i]);
    result.kernels.push_back(std::move(facts));
  }
  return result;
}

}  // namespace

cuda_compiler::cuda_compiler() { start(); }

void cuda_compiler::start() {
  auto [ours, theirs] = socket_pair();
  socket_ = std::move(ours);
  child_options options;
  options.ignores_stop_signals = true;
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

program_result<compiled_block> cuda_compiler::compile(std::string_view block,
                                                      const std::vector<std::string>& launched,
                                                      const settings& asked,
                                                      const std::string& architecture,
                                                      std::chrono::milliseconds time_limit) {
  try {
    return build(block, launched, asked, architecture, time_limit);
  } catch (const block_refused& e) {
    return failed(e.why);
  }
}

// Returns the kernels among `launched` that the block declares. Throws block_refused for names that
// are reserved.
std::vector<std::string> cuda_compiler::find_kernels(const std::string& source,
                                                     const std::vector<std::string>& launched) {
  const std::string readable = blank_comments(source);
  const std::vector<cuda_token> tokens = tokenize(readable);
  for (const cuda_token& token : tokens) {
    if (token.text == "hone" || token.text.starts_with("hone_"))
      throw block_refused("cuda:" + std::to_string(token.line) +
                          ": names that begin with 'hone' are reserved");
  }
  // The text does not show kernels that a macro declares. If there is such a macro, every launched
  // name is taken to be a kernel.
  static const RE2 by_macro(R"(#[[:space:]]*define\b.*\b__global__\b)", RE2::Latin1);
  const bool is_by_macro = RE2::PartialMatch(readable, by_macro);
  const auto declared = declared_kernels(tokens);
  std::vector<std::string> kernels;
  for (const std::string& name : launched) {
    const std::set<std::string, std::less<>> own_name = {kernel_base_name(name)};
    if (names_a_kernel(name, is_by_macro ? own_name : declared)) kernels.push_back(name);
  }
  return kernels;
}

std::vector<char> cuda_compiler::request(const std::vector<char>& job,
                                         std::chrono::steady_clock::time_point deadline) {
  if (!process_.running()) start();
  std::optional<received_message> message;
  try {
    if (send_message_by(deadline, socket_.get(), job))
      message = receive_message(socket_.get(), deadline);
  } catch (const connection_lost&) {
    // Reported below like a missed deadline.
  }
  if (!message) {
    process_.kill();  // the next block starts the process again
    throw stopped_at_deadline();
  }
  return std::move(message->bytes);
}

compiled_block cuda_compiler::build(std::string_view block,
                                    const std::vector<std::string>& launched, const settings& asked,
                                    const std::string& architecture,
                                    std::chrono::milliseconds time_limit) {
  const auto deadline = clock_type::now() + time_limit + answer_grace;
  include_scan includes = take_out_includes(block);
  if (const auto hidden = find_hidden_include(includes))
    throw block_refused("cuda:" + std::to_string(hidden->line) + ": " + hidden->message);
  for (const auto& include : includes.refused) {
    if (!is_cuda_header(include.name))
      throw block_refused("cuda:" + std::to_string(include.line) + ": <" + include.name +
                          "> is not one of CUDA's headers");
  }
  const std::vector<std::string> headers = take_out_leading_headers(includes);
  const std::vector<std::string> kernels = find_kernels(includes.text, launched);
  const auto job =
      make_job(headers, "#line 1 \"cuda\"\n" + includes.text + parameter_tables(kernels), kernels,
               options_for(asked, architecture), time_limit);
  const auto made = record<schema::NvrtcResult>::from_bytes(request(job.bytes(), deadline));
  if (made->getStopped().size() > 0)
    throw block_refused(made->getStopped().cStr(), Outcome::COMPILE_ERROR, true);
  if (!made->getCompiled()) {
    const std::string_view log = view(made->getLog());
    const std::string tidy = tidy_cuda_diagnostics(log, view(made->getPtx()));
    throw block_refused(
        tidy.empty() ? "cuda: the compiler refused the block: " + first_log_line(log) : tidy);
  }
  if (const auto persisting = find_persisting_cache_use(view(made->getPtx())))
    throw block_refused("cuda: " + *persisting, Outcome::REJECTED);
  return read_result(*made, kernels, deadline);
}

}  // namespace hone
