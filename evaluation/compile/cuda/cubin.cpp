#include "evaluation/compile/cuda/cubin.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
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
  if (section.sh_type == SHT_NOBITS || section.sh_offset > file.size() ||
      section.sh_size > file.size() - section.sh_offset)
    return {};
  return file.substr(section.sh_offset, section.sh_size);
}

std::vector<Elf64_Shdr> sections_of(std::string_view file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr))
    return {};
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
      // A table of zeros takes no room in the file. The table of a kernel without parameters is
      // such a table.
      static constexpr std::array<char, 64> zeros{};
      if (sections[symbol.st_shndx].sh_type == SHT_NOBITS && symbol.st_size <= zeros.size())
        return {zeros.data(), symbol.st_size};
      const std::string_view data = contents(file, sections[symbol.st_shndx]);
      if (symbol.st_value <= data.size() && symbol.st_size <= data.size() - symbol.st_value)
        return data.substr(symbol.st_value, symbol.st_size);
    }
  }
  return {};
}

unsigned number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos || end == 0) return 0;
  std::size_t begin = end - 1;  // the blank before the unit
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0) --begin;
  unsigned number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

}  // namespace

std::optional<std::vector<kernel_parameter>> read_parameter_table(std::string_view cubin,
                                                                  const std::string& object) {
  const std::string_view bytes = object_bytes(cubin, object);
  const auto count = read_at<std::uint32_t>(bytes, 0);
  if (!count || *count > max_parameters) return std::nullopt;
  std::vector<kernel_parameter> parameters;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto kind = read_at<std::uint32_t>(bytes, 4 + 8 * i);
    const auto size = read_at<std::uint32_t>(bytes, 8 + 8 * i);
    if (!kind || !size ||
        *kind > static_cast<std::uint32_t>(schema::Kernel::Parameter::Kind::OTHER))
      return std::nullopt;
    parameters.push_back({static_cast<schema::Kernel::Parameter::Kind>(*kind), *size});
  }
  return parameters;
}

std::vector<kernel_facts> read_resource_usage(std::string_view log) {
  constexpr std::string_view entry = "Compiling entry function '";
  std::vector<kernel_facts> all;
  std::istringstream in{std::string(log)};
  for (std::string line; std::getline(in, line);) {
    if (const std::size_t at = line.find(entry); at != std::string::npos) {
      const std::size_t begin = at + entry.size();
      all.push_back({.name = line.substr(begin, line.find('\'', begin) - begin), .parameters = {}});
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

// The author of the block may have written into the PTX as well, so malformed lines are skipped.
std::optional<int> find_source_line(std::string_view ptx, long line, std::string_view file) {
  const auto take_word = [](std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(" \t"));
    text.remove_prefix(word.size());
    return word;
  };
  const auto take_number = [&](std::string_view& text) {
    const std::string_view word = take_word(text);
    int number = 0;
    return std::from_chars(word.data(), word.data() + word.size(), number).ec == std::errc()
               ? number
               : 0;
  };
  int file_there = 0;
  int line_there = 0;
  long at = 0;
  while (!ptx.empty()) {
    std::string_view text = ptx.substr(0, ptx.find('\n'));
    ptx.remove_prefix(std::min(text.size() + 1, ptx.size()));
    const std::string_view word =
        ++at < line || line_there > 0 ? take_word(text) : std::string_view();
    if (at < line && word == ".loc") {
      file_there = take_number(text);
      line_there = take_number(text);
    } else if (word == ".file" && take_number(text) == file_there) {
      // The PTX names its files at the end.
      std::string_view name = take_word(text);
      if (name.size() < 2 || name.front() != '"' || name.back() != '"') continue;
      name = name.substr(1, name.size() - 2);
      name.remove_prefix(name.rfind('/') + 1);  // removes the folder
      if (name == file) return line_there > 0 ? std::optional(line_there) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<std::string> find_persisting_cache_use(std::string_view ptx) {
  for (const std::string_view word :
       {"L2::evict_last", "createpolicy", "applypriority", "L2::cache_hint"}) {
    if (ptx.find(word) != std::string_view::npos)
      return "the instruction modifier '" + std::string(word) +
             "' could keep memory in the L2 cache from call to call";
  }
  return std::nullopt;
}

bool synchronises_grid(std::string_view ptx, const std::string& symbol) {
  constexpr std::string_view entry_word = ".entry ";
  std::size_t entry = ptx.find(entry_word);
  std::size_t function = ptx.find(".func ");
  // Whether the function that the text so far ends in may be part of the kernel.
  bool is_part = true;
  for (std::size_t at = ptx.find("%envreg"); at != std::string_view::npos;
       at = ptx.find("%envreg", at + 1)) {
    while (std::min(entry, function) < at) {
      if (entry < function) {
        const std::string_view name = ptx.substr(entry + entry_word.size());
        is_part = name.starts_with(symbol) &&
                  (name.size() == symbol.size() ||
                   std::string_view("( \n").find(name[symbol.size()]) != std::string_view::npos);
        entry = ptx.find(entry_word, entry + 1);
      } else {
        is_part = true;
        function = ptx.find(".func ", function + 1);
      }
    }
    if (is_part) return true;
  }
  return false;
}

}  // namespace hone
