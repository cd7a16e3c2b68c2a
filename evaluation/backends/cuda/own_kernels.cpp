#include "evaluation/backends/cuda/own_kernels.hpp"

#include <chrono>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

#include "embedded/judge_comparison.hpp"
#include "embedded/judge_drawing.hpp"
#include "embedded/judge_element_rule.hpp"
#include "embedded/judge_elements.hpp"
#include "embedded/judge_memory.hpp"
#include "embedded/judge_shared_memory.hpp"
#include "embedded/judge_varied_element.hpp"
#include "evaluation/compile/cuda/cuda_compiler.hpp"

namespace hone {
namespace {

constexpr auto compile_limit = std::chrono::seconds(60);

std::string joined(std::initializer_list<std::string_view> texts) {
  std::string all;
  for (const std::string_view text : texts) all += text;
  return all;
}

}  // namespace

const std::vector<own_kernels::part>& own_kernels::parts() {
  static const std::vector<part> all = {
      {joined({embedded::judge_elements, embedded::judge_memory, embedded::judge_element_rule,
               embedded::judge_comparison, embedded::judge_shared_memory}),
       {"scramble", "convert", "gather", "copy_ranges", "find_difference", "find_damage",
        "measure_expected", "measure_errors", "measure_exact", "spoil_shared"}},
      {joined({embedded::judge_elements, embedded::judge_varied_element, embedded::judge_drawing}),
       {"draw", "vary", "vary_data", "perturb"}}};
  return all;
}

own_kernels::own_kernels(const std::string& architecture) {
  for (const part& one : parts())
    compiling_.push_back(std::async(std::launch::async, compile, one, architecture));
}

own_kernels::compiled_part own_kernels::compile(const part& one, const std::string& architecture) {
  cuda_compiler compiler;
  auto compiled = compiler.compile(one.source, one.kernels, {}, architecture, compile_limit);
  if (!compiled)
    throw std::runtime_error("the judge's own kernels do not compile: " + compiled.error().message);
  return {compiler.name(), *std::move(compiled)};
}

const std::vector<compiled_block>& own_kernels::blocks() {
  for (auto& one : compiling_) {
    compiled_part made = one.get();
    toolchain_ = std::move(made.toolchain);
    blocks_.push_back(std::move(made.block));
  }
  compiling_.clear();
  return blocks_;
}

const compiled_block& own_kernels::tools() { return blocks().front(); }

}  // namespace hone
