#include "evaluation/compile/cuda/cubin.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <sstream>
#include <utility>

namespace hone {
namespace {

constexpr unsigned max_parameters = 1024;

// A section of attributes of functions, and those attributes that state a function's stack in
// bytes: its frame, and the frame with those of the functions that it calls.
constexpr Elf64_Word section_of_attributes = 0x70000000;
constexpr unsigned char frame_attribute = 0x11;
constexpr unsigned char min_stack_attribute = 0x12;
constexpr unsigned char max_stack_attribute = 0x23;
constexpr unsigned char sized_format = 4;  // of an attribute whose value follows it

constexpr unsigned char is_entry = 0x10;  // bit of st_other: the function is a kernel

template <class T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// An ELF file of hostile bytes. Its tables are empty if they are malformed. A name is searched for
// its end only as far as the caller needs it, because all names may be the ends of one long name.
class elf_file {
 public:
  explicit elf_file(std::string_view file) : file_(file) {
    const auto header = read_at<Elf64_Ehdr>(file, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr))
      return;
    for (unsigned i = 0; i < header->e_shnum; ++i) {
      const auto section = read_at<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) break;
      sections_.push_back(*section);
    }
    if (header->e_shstrndx < sections_.size())
      section_names_ = contents(sections_[header->e_shstrndx]);
    const auto table =
        std::find_if(sections_.begin(), sections_.end(), [&](const Elf64_Shdr& section) {
          return section.sh_type == SHT_SYMTAB && section.sh_link < sections_.size();
        });
    if (table == sections_.end()) return;
    symbols_ = contents(*table);
    symbol_names_ = contents(sections_[table->sh_link]);
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  std::size_t size() const { return file_.size(); }
  std::string_view contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > file_.size() ||
        section.sh_size > file_.size() - section.sh_offset)
      return {};
    return file_.substr(section.sh_offset, section.sh_size);
  }
  bool is_named(const Elf64_Shdr& section, std::string_view prefix) const {
    return name_at(section_names_, section.sh_name, prefix.size()) == prefix;
  }

  std::size_t symbol_count() const { return symbols_.size() / sizeof(Elf64_Sym); }
  // Returns a symbol, which is empty beyond the last one.
  Elf64_Sym symbol(std::size_t i) const {
    return read_at<Elf64_Sym>(symbols_, i * sizeof(Elf64_Sym)).value_or(Elf64_Sym{});
  }
  // Returns the first `max` bytes of a symbol's name.
  std::string_view name_of(const Elf64_Sym& symbol, std::size_t max) const {
    return name_at(symbol_names_, symbol.st_name, max);
  }
  // Returns the size in bytes of a symbol's object.
  std::string_view object(const Elf64_Sym& symbol) const {
    if (symbol.st_shndx >= sections_.size()) return {};
    // A table of zeros takes no room in the file. The table of a kernel without parameters is such
    // a table.
    static constexpr std::array<char, 64> zeros{};
    if (sections_[symbol.st_shndx].sh_type == SHT_NOBITS)
      return {zeros.data(), std::min<std::size_t>(symbol.st_size, zeros.size())};
    const std::string_view data = contents(sections_[symbol.st_shndx]);
    if (symbol.st_value > data.size() || symbol.st_size > data.size() - symbol.st_value) return {};
    return data.substr(symbol.st_value, symbol.st_size);
  }

 private:
  static std::string_view name_at(std::string_view names, std::size_t offset, std::size_t max) {
    const std::string_view rest = names.substr(std::min(offset, names.size()), max);
    return rest.substr(0, rest.find('\0'));
  }

  std::string_view file_;
  std::vector<Elf64_Shdr> sections_;
  std::string_view section_names_;
  std::string_view symbols_;
  std::string_view symbol_names_;
};

std::optional<std::vector<kernel_parameter>> parse_parameters(std::string_view table) {
  const auto count = read_at<std::uint32_t>(table, 0);
  if (!count || *count > max_parameters) return std::nullopt;
  std::vector<kernel_parameter> parameters;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto kind = read_at<std::uint32_t>(table, 4 + 8 * i);
    const auto size = read_at<std::uint32_t>(table, 8 + 8 * i);
    if (!kind || !size ||
        *kind > static_cast<std::uint32_t>(schema::Kernel::Parameter::Kind::OTHER))
      return std::nullopt;
    parameters.push_back({static_cast<schema::Kernel::Parameter::Kind>(*kind), *size});
  }
  return parameters;
}

// Calls `see`(symbol's number, bytes) for each function's stack that the attributes state. Returns
// false if they are malformed.
template <class See>
bool read_stacks(std::string_view attributes, See&& see) {
  for (std::uint64_t at = 0; at < attributes.size();) {
    const auto format = read_at<unsigned char>(attributes, at);
    const auto attribute = read_at<unsigned char>(attributes, at + 1);
    const auto bytes = read_at<std::uint16_t>(attributes, at + 2);
    if (!format || !attribute || !bytes) return false;
    at += 4;
    if (*format != sized_format) continue;
    const bool is_stack = *attribute == frame_attribute || *attribute == min_stack_attribute ||
                          *attribute == max_stack_attribute;
    if (is_stack) {
      const auto symbol = read_at<std::uint32_t>(attributes, at);
      const auto stack = read_at<std::uint32_t>(attributes, at + 4);
      if (!symbol || !stack || *bytes != 8) return false;
      see(*symbol, *stack);
    }
    at += *bytes;
  }
  return true;
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

std::vector<std::optional<std::vector<kernel_parameter>>> read_parameter_tables(
    std::string_view cubin, std::string_view prefix, std::size_t count) {
  constexpr std::size_t max_digits = 10;
  std::vector<std::optional<std::vector<kernel_parameter>>> tables(count);
  std::vector<bool> is_read(count);  // also of malformed tables, of which there may be many
  const elf_file file(cubin);
  for (std::size_t i = 0; i < file.symbol_count(); ++i) {
    const Elf64_Sym symbol = file.symbol(i);
    std::string_view name = file.name_of(symbol, prefix.size() + max_digits + 1);
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    std::size_t number = count;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number >= count ||
        is_read[number])
      continue;
    tables[number] = parse_parameters(file.object(symbol));
    is_read[number] = true;
  }
  return tables;
}

std::optional<cubin_memory> read_memory_use(std::string_view cubin) {
  constexpr std::size_t max_name_bytes = 200;
  const elf_file file(cubin);
  if (file.sections().empty()) return std::nullopt;
  cubin_memory use;
  // Shared memory is loaded as well, but not into global memory.
  const auto is_loaded = [&](const Elf64_Shdr& section) {
    return (section.sh_flags & SHF_ALLOC) != 0 && !file.is_named(section, ".nv.shared");
  };
  const auto add = [](std::uint64_t& sum, std::uint64_t bytes) { sum += std::min(bytes, ~sum); };
  std::uint64_t attribute_bytes = 0;
  std::size_t hungriest = 0;
  for (const Elf64_Shdr& section : file.sections()) {
    if (is_loaded(section)) add(use.variable_bytes, section.sh_size);
    if (section.sh_type != section_of_attributes) continue;
    const std::string_view attributes = file.contents(section);
    attribute_bytes += attributes.size();
    // Many sections that overlap would take time with the square of the file's length.
    if (attribute_bytes > file.size()) return std::nullopt;
    const auto see = [&](std::size_t symbol, std::uint64_t stack) {
      const bool is_kernel = (file.symbol(symbol).st_other & is_entry) != 0;
      if (stack < use.stack_bytes || (stack == use.stack_bytes && !is_kernel)) return;
      use.stack_bytes = stack;
      hungriest = symbol;
    };
    if (!read_stacks(attributes, see)) return std::nullopt;
  }
  use.stack_symbol = file.name_of(file.symbol(hungriest), max_name_bytes);
  std::uint64_t object_bytes = 0;
  for (std::size_t i = 0; i < file.symbol_count(); ++i) {
    const Elf64_Sym symbol = file.symbol(i);
    if (symbol.st_shndx == SHN_UNDEF) {
      use.allocates = use.allocates || file.name_of(symbol, 7) == "malloc";
    } else if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT &&
               symbol.st_shndx < file.sections().size() &&
               is_loaded(file.sections()[symbol.st_shndx])) {
      add(object_bytes, symbol.st_size);
    }
  }
  // ptxas keeps 32 bits of a section's size.
  use.variable_bytes = std::max(use.variable_bytes, object_bytes);
  return use;
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

grid_barriers::grid_barriers(std::string_view ptx) {
  constexpr std::string_view entry_word = ".entry ";
  constexpr std::string_view function_word = ".func ";
  std::size_t entry = ptx.find(entry_word);
  std::size_t function = ptx.find(function_word);
  // The kernel that the current place belongs to; empty outside of kernels.
  std::string_view kernel;
  bool is_noted = false;  // `kernel` is in kernels_
  for (std::size_t at = ptx.find("%envreg"); at != std::string_view::npos;
       at = ptx.find("%envreg", at + 1)) {
    while (std::min(entry, function) < at) {
      if (entry < function) {
        const std::string_view name = ptx.substr(entry + entry_word.size());
        kernel = name.substr(0, name.find_first_of("( \n"));
        is_noted = false;
        entry = ptx.find(entry_word, entry + 1);
      } else {
        kernel = {};
        function = ptx.find(function_word, function + 1);
      }
    }
    if (kernel.empty()) {
      is_in_function_ = true;
    } else if (!std::exchange(is_noted, true)) {
      kernels_.emplace(kernel);
    }
  }
}

bool grid_barriers::are_in(const std::string& symbol) const {
  return is_in_function_ || kernels_.contains(symbol);
}

}  // namespace hone
