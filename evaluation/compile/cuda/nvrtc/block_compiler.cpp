#include "evaluation/compile/cuda/nvrtc/block_compiler.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>

#include "embedded/cuda_prelude.hpp"
#include "embedded/nvrtc_functions.hpp"
#include "embedded/parameter_table.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

// A refused block is compiled again for its line numbers if the first compilation took at most this
// part of the time limit.
constexpr int hasty = 8;
constexpr std::size_t max_ptx_bytes = 1U << 20U;
constexpr std::size_t max_header_sets = 16;
const std::vector<std::string> use_precompiled = {"--pch", "--pch-dir=."};

std::vector<std::string> texts(const capnp::List<capnp::Text>::Reader& list) {
  std::vector<std::string> all;
  for (const auto text : list) all.emplace_back(text.cStr());
  return all;
}

// Returns true for blocks with cooperative groups that name no part of libcu++. Cooperative groups
// include libcu++, of which their own functions need little. Without it, a precompiled header has
// 14 MB instead of 100, and a block with fp16, bf16 and cooperative groups takes a third of the
// time.
bool can_do_without_libcu(const schema::NvrtcJob::Reader& job) {
  const std::string_view block = view(job.getBlock());
  for (const std::string_view need :
       {"cuda::", "<cuda/", "<cub/", "<thrust/", "_update", "thread_scope"}) {
    if (block.find(need) != std::string_view::npos) return false;
  }
  bool has_groups = false;
  for (const auto text : job.getHeaders()) {
    const std::string_view header = view(text);
    if (header.starts_with("cuda/") || header.starts_with("cub/") || header.starts_with("thrust/"))
      return false;
    has_groups = has_groups || header.starts_with("cooperative_groups");
  }
  return has_groups;
}

// Returns the part of the text that is precompiled: it is the same for all blocks with these
// headers.
std::string head_of(const schema::NvrtcJob::Reader& job) {
  std::string head = std::string("#include \"") + block_compiler::prelude_file + "\"\n";
  for (const auto header : job.getHeaders())
    head += "#include <" + std::string(header.cStr()) + ">\n";
  return head + "#pragma hdrstop\n";
}

// Returns true for options that do not affect precompiled headers. Variants try many numbers of
// registers.
bool is_for_back_end(const std::string& option) { return option.starts_with("--maxrregcount"); }

std::string key_of(const std::string& head, const std::vector<std::string>& options) {
  std::string key = head;
  for (const std::string& option : options) key += is_for_back_end(option) ? "" : option + "\n";
  return key;
}

}  // namespace

block_compiler::block_compiler() {
  std::ofstream(prelude_file) << embedded::cuda_prelude << embedded::nvrtc_functions
                              << embedded::parameter_table;
  const auto first =
      nvrtc_.compile("extern \"C\" __global__ void nothing() {}\n", {"-arch=sm_80"}, {});
  if (!first.compiled) throw std::runtime_error("NVRTC does not compile: " + first.log);
}

std::vector<std::string> block_compiler::options_of(const schema::NvrtcJob::Reader& job) const {
  std::vector<std::string> options = texts(job.getOptions());
  for (const std::string& folder : nvrtc_.include_folders()) options.push_back("-I" + folder);
  options.push_back("-I.");
  // NVRTC's own cache consists of files that a confined process cannot open.
  options.emplace_back("--no-cache");
  if (can_do_without_libcu(job)) options.emplace_back("-D_CG_LIMIT_INCLUDED_DEPENDENCIES");
  return options;
}

std::vector<std::string> block_compiler::all_options(const schema::NvrtcJob::Reader& job) const {
  std::vector<std::string> options = options_of(job);
  const auto precompiled = precompiled_.find(key_of(head_of(job), options));
  if (precompiled != precompiled_.end() && precompiled->second)
    options.insert(options.end(), use_precompiled.begin(), use_precompiled.end());
  return options;
}

bool block_compiler::precompile(const schema::NvrtcJob::Reader& job) {
  if (job.getHeaders().size() == 0) return false;
  const std::string head = head_of(job);
  std::vector<std::string> options = options_of(job);
  const std::string key = key_of(head, options);
  if (precompiled_.contains(key) || precompiled_.size() == max_header_sets) return false;
  std::erase_if(options, is_for_back_end);
  options.insert(options.end(), use_precompiled.begin(), use_precompiled.end());
  const auto made = nvrtc_.compile(head + "static void hone_nothing() {}\n", options, {});
  return precompiled_[key] = made.compiled;
}

void block_compiler::warm_up(const schema::NvrtcJob::Reader& job, std::string_view block) const {
  (void)nvrtc_.compile(head_of(job) + std::string(block), all_options(job), {});
}

nvrtc_library::result block_compiler::compile(const schema::NvrtcJob::Reader& job) const {
  const std::vector<std::string> options = all_options(job);
  const std::string source = head_of(job) + job.getBlock().cStr();
  const std::vector<std::string> kernels = texts(job.getKernels());
  if (job.getHeaders().size() == 0) {
    // --minimal leaves out textures and the runtime's own functions, which hardly any block uses,
    // and saves a tenth of the time.
    std::vector<std::string> fewer = options;
    fewer.emplace_back("--minimal");
    if (auto made = nvrtc_.compile(source, fewer, kernels); made.compiled) return made;
  }
  const auto begin = clock::now();
  auto made = nvrtc_.compile(source, options, kernels);
  const bool is_assemblers = made.log.find("ptxas application ptx input") != std::string::npos;
  if (made.compiled || !is_assemblers ||
      clock::now() - begin > std::chrono::milliseconds(job.getTimeMs()) / hasty)
    return made;
  try {
    return refused_with_lines(source, options_of(job), kernels).value_or(made);
  } catch (const std::exception&) {
    return made;
  }
}

// The assembler's errors name lines of PTX. Compiles again with the block's lines in the PTX, and
// returns the PTX together with the errors.
std::optional<nvrtc_library::result> block_compiler::refused_with_lines(
    const std::string& source, std::vector<std::string> options,
    const std::vector<std::string>& kernels) const {
  options.emplace_back("-lineinfo");
  auto made = nvrtc_.compile(source, options, kernels);
  if (made.compiled) return std::nullopt;
  constexpr std::string_view real = "-arch=sm_";
  const auto arch = std::find_if(options.begin(), options.end(), [&](const std::string& option) {
    return option.starts_with(real);
  });
  if (arch != options.end()) *arch = "-arch=compute_" + arch->substr(real.size());
  if (auto ptx = nvrtc_.compile(source, options, kernels).ptx; ptx.size() <= max_ptx_bytes)
    made.ptx = std::move(ptx);
  return made;
}

}  // namespace hone
