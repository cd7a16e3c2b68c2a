#include "evaluation/compile/cpu/block_rewriting.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "evaluation/compile/compiled_block.hpp"

namespace hone {
namespace {

constexpr std::size_t max_expanded_bytes = 1U << 20U;

std::string_view identifier_before(std::string_view text, std::size_t end) {
  while (end > 0 && std::isspace(static_cast<unsigned char>(text[end - 1])) != 0) --end;
  std::size_t begin = end;
  while (begin > 0 &&
         (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '_'))
    --begin;
  return text.substr(begin, end - begin);
}

// Removes pragmas and foreign line markers.
std::string without_directives(std::string_view preprocessed) {
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
      throw block_refused("cuda: a directive is left after preprocessing");
    if (!is_directive || is_marker) kept.append(line);
    kept += '\n';
    i = end + 1;
  }
  return kept;
}

std::string with_dynamic_shared_pointers(const std::string& source) {
  static const RE2 dynamic(
      R"(\bextern[[:space:]]+__shared__[[:space:]]+)"
      R"(([^;{}()=]*(?:\([^;{}()=]*\)[^;{}()=]*)?)\[[[:space:]]*\][[:space:]]*;)",
      RE2::Latin1);
  static const RE2 qualifiers(R"(\balignas[[:space:]]*\([^()]*\)|\bvolatile\b)", RE2::Latin1);
  std::string text;
  std::size_t from = 0;
  std::array<re2::StringPiece, 2> match;  // the declaration, and what follows the keywords
  while (dynamic.Match(source, from, source.size(), RE2::UNANCHORED, match.data(), match.size())) {
    const std::string_view declared(match[1].data(), match[1].size());
    const std::string_view name = identifier_before(declared, declared.size());
    std::string type(declared.substr(0, static_cast<std::size_t>(name.data() - declared.data())));
    RE2::GlobalReplace(&type, qualifiers, " ");
    const auto begin = static_cast<std::size_t>(match[0].data() - source.data());
    text.append(source, from, begin - from);
    text.append("static ").append(type).append("* const ").append(name);
    text.append(" = reinterpret_cast<").append(type).append("*>(hone::dynamic_shared);");
    from = begin + match[0].size();
  }
  return text.append(source, from);
}

}  // namespace

std::string_view block_part(std::string_view preprocessed) {
  const std::size_t at = preprocessed.find("\n# 1 \"cuda\"");
  if (at == std::string_view::npos)
    throw block_refused("cuda: the preprocessor's output does not contain the block");
  const std::string_view block = preprocessed.substr(at + 1);
  if (block.size() > max_expanded_bytes)
    throw block_refused("cuda: macros expand the block to more than a MiB");
  return block;
}

std::string rewrite_block(std::string_view preprocessed) {
  std::string text = with_dynamic_shared_pointers(without_directives(preprocessed));
  // alignas, to which __align__ expands, may follow or precede __shared__ in a block. C++ requires
  // it before the type.
  static const RE2 fixed(
      R"(\b(?:static[[:space:]]+)?(?:volatile[[:space:]]+)?__shared__\b[[:space:]]*)"
      R"((alignas[[:space:]]*\([^()]*\))?)",
      RE2::Latin1);
  static const RE2 global(R"(\b__global__\b)", RE2::Latin1);
  // Without the attribute "used", the compiler would replace a variable that the block never writes
  // by zero.
  RE2::GlobalReplace(&text, fixed, "\\1 __attribute__((used)) static thread_local ");
  RE2::GlobalReplace(&text, global, "");
  return text;
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

}  // namespace hone
