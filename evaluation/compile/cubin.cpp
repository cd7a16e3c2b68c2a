#include "evaluation/compile/cubin.hpp"

#include <elf.h>

#include <array>
#include <cstring>
#include <regex>
#include <sstream>

namespace hone {
namespace {

constexpr unsigned max_parameters = 1024;

template <class T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view name_at(std::string_view strings, std::uint64_t offset) {
  if (offset >= strings.size()) return {};
  const std::size_t end = strings.find('\0', offset);
  return end == std::string_view::npos ? std::string_view{} : strings.substr(offset, end - offset);
}

std::string_view contents(std::string_view file, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > file.size() || section.sh_size > file.size() - section.sh_offset) return {};
  return file.substr(section.sh_offset, section.sh_size);
}

std::vector<Elf64_Shdr> sections_of(std::string_view file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr)) return {};
  std::vector<Elf64_Shdr> sections;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return {};
    sections.push_back(*section);
  }
  return sections;
}

std::string_view object_bytes(std::string_view file, const std::string& object) {
  const std::vector<Elf64_Shdr> sections = sections_of(file);
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections.size()) continue;
    const std::string_view symbols = contents(file, table);
    const std::string_view names = contents(file, sections[table.sh_link]);
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
      const Elf64_Sym symbol = *read_at<Elf64_Sym>(symbols, at);
      if (name_at(names, symbol.st_name) != object || symbol.st_shndx >= sections.size()) continue;
      // A table of nothing but zeros, that of a kernel without parameters, takes no room in the file.
      static constexpr std::array<char, 64> zeros{};
      if (sections[symbol.st_shndx].sh_type == SHT_NOBITS && symbol.st_size <= zeros.size()) return {zeros.data(), symbol.st_size};
      const std::string_view data = contents(file, sections[symbol.st_shndx]);
      if (symbol.st_value <= data.size() && symbol.st_size <= data.size() - symbol.st_value) return data.substr(symbol.st_value, symbol.st_size);
    }
  }
  return {};
}

unsigned number_before(const std::string& line, const std::string& unit) {
  std::smatch match;
  return std::regex_search(line, match, std::regex("(\\d+) " + unit)) ? static_cast<unsigned>(std::stoul(match[1])) : 0;
}

}  // namespace

std::optional<std::vector<kernel_parameter>> read_parameter_table(std::string_view cubin, const std::string& object) {
  const std::string_view bytes = object_bytes(cubin, object);
  const auto count = read_at<std::uint32_t>(bytes, 0);
  if (!count || *count > max_parameters) return std::nullopt;
  std::vector<kernel_parameter> parameters;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto kind = read_at<std::uint32_t>(bytes, 4 + 8 * i);
    const auto size = read_at<std::uint32_t>(bytes, 8 + 8 * i);
    if (!kind || !size || *kind > static_cast<std::uint32_t>(schema::Kernel::Parameter::Kind::OTHER)) return std::nullopt;
    parameters.push_back({static_cast<schema::Kernel::Parameter::Kind>(*kind), *size});
  }
  return parameters;
}

std::vector<kernel_facts> read_resource_usage(std::string_view log) {
  static const std::regex entry(R"(Compiling entry function '([^']+)')");
  std::vector<kernel_facts> all;
  std::istringstream in{std::string(log)};
  for (std::string line; std::getline(in, line);) {
    std::smatch match;
    if (std::regex_search(line, match, entry)) {
      all.push_back({.name = match[1], .parameters = {}});
    } else if (!all.empty() && line.find("bytes stack frame") != std::string::npos) {
      all.back().local_bytes = number_before(line, "bytes stack frame");
      all.back().spilled_bytes = number_before(line, "bytes spill stores");
    } else if (!all.empty() && line.find("Used ") != std::string::npos) {
      all.back().registers = number_before(line, "registers");
      all.back().static_shared_bytes = number_before(line, "bytes smem");
    }
  }
  return all;
}

std::optional<int> find_source_line(std::string_view ptx, int line, std::string_view file) {
  static const std::regex location(R"(^\s*\.loc\s+(\d+)\s+(\d+)\s.*)");
  static const std::regex name(R"re(^\s*\.file\s+(\d+)\s+"(?:[^"]*/)?([^"/]*)".*)re");  // without its folder
  std::istringstream in{std::string(ptx)};
  std::pair<int, int> last{0, 0};  // file and line
  std::smatch match;
  int at = 0;
  bool is_its_own = false;
  for (std::string text; std::getline(in, text);) {
    ++at;
    if (at < line && std::regex_match(text, match, location)) last = {std::stoi(match[1]), std::stoi(match[2])};
    if (std::regex_match(text, match, name) && match[2].str() == file) is_its_own = is_its_own || std::stoi(match[1]) == last.first;
  }
  // Files are named at the end.
  return is_its_own && last.second > 0 ? std::optional(last.second) : std::nullopt;
}

std::optional<std::string> find_persisting_cache_use(std::string_view ptx) {
  for (const std::string_view word : {"L2::evict_last", "createpolicy", "applypriority", "L2::cache_hint"}) {
    if (ptx.find(word) != std::string_view::npos) return "the instruction modifier '" + std::string(word) + "' could keep memory in the L2 cache from call to call";
  }
  return std::nullopt;
}

bool synchronises_grid(std::string_view ptx, const std::string& symbol) {
  for (std::size_t at = ptx.find("%envreg"); at != std::string_view::npos; at = ptx.find("%envreg", at + 1)) {
    const std::size_t entry = ptx.rfind(".entry ", at);
    const std::size_t function = ptx.rfind(".func ", at);
    if (entry == std::string_view::npos || (function != std::string_view::npos && function > entry)) return true;
    const std::string_view name = ptx.substr(entry + 7);
    if (name.substr(0, name.find_first_of("( \n")) == symbol) return true;
  }
  return false;
}

}  // namespace hone
