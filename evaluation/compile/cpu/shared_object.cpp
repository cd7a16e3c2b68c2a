#include "evaluation/compile/cpu/shared_object.hpp"

#include <elf.h>
#include <re2/re2.h>

#include <array>
#include <cstring>
#include <set>
#include <vector>

namespace hone {
namespace {

// Thrown by the checks. `what` continues a sentence about the block, such as "needs another
// library".
struct malformed {
  std::string what;
};

// Copies a T out of the bytes, after checking that it lies within them.
template <class T>
T read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    throw malformed{"has a structure outside its file"};
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view string_at(std::string_view bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) throw malformed{"has a name outside its file"};
  const std::size_t end = bytes.find('\0', offset);
  if (end == std::string_view::npos) throw malformed{"has a name without an end"};
  return bytes.substr(offset, end - offset);
}

// Returns a name for a message, cut if it is long.
std::string quoted(std::string_view name) { return "'" + std::string(name.substr(0, 200)) + "'"; }

bool is_allowed_import(std::string_view name) {
  static const std::set<std::string, std::less<>> memory = {"memcpy", "memmove", "memset", "memcmp",
                                                            "__tls_get_addr"};
  if (memory.contains(name)) return true;
  static const std::set<std::string, std::less<>> mathematics = {
      "exp",       "exp2",   "exp10",     "expm1",     "log",   "log2",     "log10",
      "log1p",     "sin",    "cos",       "tan",       "asin",  "acos",     "atan",
      "sinh",      "cosh",   "tanh",      "asinh",     "acosh", "atanh",    "erf",
      "erfc",      "tgamma", "lgamma",    "cbrt",      "logb",  "pow",      "atan2",
      "fmod",      "hypot",  "remainder", "nextafter", "ldexp", "frexp",    "modf",
      "sincos",    "sqrt",   "floor",     "ceil",      "trunc", "rint",     "round",
      "nearbyint", "fma",    "fmin",      "fmax",      "fabs",  "copysign", "fdim"};
  std::string_view base = name;
  if (base.starts_with("__") && base.ends_with("_finite")) base = base.substr(2, base.size() - 9);
  if (mathematics.contains(base)) return true;
  if (base.ends_with('f') && mathematics.contains(base.substr(0, base.size() - 1))) return true;
  // A pattern of <regex> would take a frame of the stack for each character of a hostile name.
  static const RE2 vectorized(
      "_ZGV[bcde]N(?:2|4|8|16)vv?_(?:expf?|logf?|sinf?|cosf?|tanhf?|erff?|powf?)");
  return RE2::FullMatch(re2::StringPiece(name.data(), name.size()), vectorized);
}

std::vector<Elf64_Phdr> read_segments(std::string_view bytes) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_type != ET_DYN || header.e_machine != EM_X86_64) {
    throw malformed{"is not a 64-bit x86 shared object"};
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > 32)
    throw malformed{"has unexpected program headers"};
  std::vector<Elf64_Phdr> segments;
  for (unsigned i = 0; i < header.e_phnum; ++i)
    segments.push_back(read_at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr)));
  return segments;
}

std::uint64_t file_offset(const std::vector<Elf64_Phdr>& segments, std::uint64_t address) {
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
      return s.p_offset + (address - s.p_vaddr);
  }
  throw malformed{"has an address outside its segments"};
}

// Checks all segments and returns the one that holds the dynamic section.
Elf64_Phdr dynamic_segment(const std::vector<Elf64_Phdr>& segments) {
  Elf64_Phdr dynamic{};
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type == PT_INTERP) throw malformed{"names an interpreter"};
    if (s.p_type == PT_GNU_STACK && (s.p_flags & PF_X) != 0)
      throw malformed{"asks for an executable stack"};
    if (s.p_type == PT_LOAD && (s.p_flags & PF_W) != 0 && (s.p_flags & PF_X) != 0)
      throw malformed{"has a writable executable segment"};
    if (s.p_type == PT_DYNAMIC) dynamic = s;
  }
  if (dynamic.p_filesz == 0 || dynamic.p_filesz > 65536) throw malformed{"has no dynamic section"};
  return dynamic;
}

// Throws for the entries of a dynamic section that make the loader run code or open files.
void check_entry(const Elf64_Dyn& entry) {
  switch (entry.d_tag) {
    case DT_NEEDED:
      throw malformed{"needs another library"};
    case DT_INIT:
    case DT_INIT_ARRAY:
    case DT_PREINIT_ARRAY:
    case DT_FINI:
    case DT_FINI_ARRAY:
      throw malformed{
          "has a global variable that is initialized at run time (it needs a constructor or "
          "destructor)"};
    case DT_TEXTREL:
      throw malformed{"has relocations in its code"};
    case DT_RPATH:
    case DT_RUNPATH:
    case DT_AUDIT:
    case DT_DEPAUDIT:
    case DT_FILTER:
    case DT_AUXILIARY:
      throw malformed{"asks the loader for other files"};
    case DT_REL:
    case DT_RELR:
      throw malformed{"has relocations of an unexpected kind"};
    default:
      break;
  }
}

// The tables that a dynamic section refers to, as offsets in the file and bytes.
struct dynamic_tables {
  std::uint64_t symbols = 0;
  std::uint64_t strings = 0;
  std::uint64_t rela = 0;
  std::uint64_t rela_bytes = 0;
  std::uint64_t plt = 0;
  std::uint64_t plt_bytes = 0;
};

dynamic_tables read_dynamic_section(std::string_view bytes,
                                    const std::vector<Elf64_Phdr>& segments) {
  const Elf64_Phdr dynamic = dynamic_segment(segments);
  dynamic_tables tables;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.p_filesz; at += sizeof(Elf64_Dyn)) {
    const auto entry = read_at<Elf64_Dyn>(bytes, dynamic.p_offset + at);
    check_entry(entry);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SYMTAB) tables.symbols = file_offset(segments, entry.d_un.d_ptr);
    if (entry.d_tag == DT_STRTAB) tables.strings = file_offset(segments, entry.d_un.d_ptr);
    if (entry.d_tag == DT_RELA) tables.rela = file_offset(segments, entry.d_un.d_ptr);
    if (entry.d_tag == DT_RELASZ) tables.rela_bytes = entry.d_un.d_val;
    if (entry.d_tag == DT_JMPREL) tables.plt = file_offset(segments, entry.d_un.d_ptr);
    if (entry.d_tag == DT_PLTRELSZ) tables.plt_bytes = entry.d_un.d_val;
  }
  if (tables.symbols == 0 || tables.strings == 0) throw malformed{"has no symbols"};
  return tables;
}

// Adds the symbols that the relocations of one table refer to.
void collect_symbols(std::string_view bytes, std::uint64_t offset, std::uint64_t size,
                     std::set<std::uint32_t>& reached) {
  for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= size; at += sizeof(Elf64_Rela)) {
    const auto relocation = read_at<Elf64_Rela>(bytes, offset + at);
    const auto type = ELF64_R_TYPE(relocation.r_info);
    if (type != R_X86_64_RELATIVE && type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT &&
        type != R_X86_64_64 && type != R_X86_64_DTPMOD64 && type != R_X86_64_DTPOFF64 &&
        type != R_X86_64_NONE) {
      throw malformed{"has a relocation of type " + std::to_string(type)};
    }
    reached.insert(static_cast<std::uint32_t>(ELF64_R_SYM(relocation.r_info)));
  }
}

void check(std::string_view bytes) {
  const dynamic_tables tables = read_dynamic_section(bytes, read_segments(bytes));
  // The loader resolves only these symbols, and the one that the sandbox asks for.
  std::set<std::uint32_t> reached;
  collect_symbols(bytes, tables.rela, tables.rela_bytes, reached);
  collect_symbols(bytes, tables.plt, tables.plt_bytes, reached);
  for (const std::uint32_t index : reached) {
    if (index == 0) continue;
    const auto symbol = read_at<Elf64_Sym>(bytes, tables.symbols + index * sizeof(Elf64_Sym));
    const std::string_view name = string_at(bytes, tables.strings + symbol.st_name);
    if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
      throw malformed{"resolves " + quoted(name) + " by running code"};
    if (symbol.st_shndx == SHN_UNDEF && !is_allowed_import(name))
      throw malformed{"uses " + quoted(name) + ", which does not exist on this device"};
  }
}

}  // namespace

std::optional<std::string> find_loading_problem(std::string_view shared_object) {
  try {
    check(shared_object);
    return std::nullopt;
  } catch (const malformed& e) {
    return e.what;
  }
}

}  // namespace hone
