#include "evaluation/compile/cuda/cubin.hpp"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace hone {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds little_time{5};

// A section of a hostile cubin. Its contents are made once, however many sections show them.
struct section {
  Elf64_Word type = SHT_PROGBITS;
  std::string_view contents;
  Elf64_Word link = 0;
  Elf64_Xword flags = 0;
  std::uint64_t size = 0;  // of a section without contents
};

// Returns an ELF file with these sections. Sections with the same contents overlap.
std::string elf_of(const std::vector<section>& sections) {
  std::string file(sizeof(Elf64_Ehdr), '\0');
  std::map<const char*, std::size_t> places;
  for (const section& s : sections) {
    if (places.emplace(s.contents.data(), file.size()).second) file += s.contents;
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shoff = file.size();
  std::memcpy(file.data(), &header, sizeof header);
  for (const section& s : sections) {
    Elf64_Shdr shown{};
    shown.sh_type = s.type;
    shown.sh_flags = s.flags;
    shown.sh_link = s.link;
    shown.sh_offset = places.at(s.contents.data());
    shown.sh_size = s.contents.empty() ? s.size : s.contents.size();
    file.append(reinterpret_cast<const char*>(&shown), sizeof shown);
  }
  return file;
}

TEST(Cubin, HasNoParameterTablesIfMalformed) {
  std::string header(64, '\xff');
  header.replace(0, 4, "\177ELF");
  header[4] = 2;
  for (const std::string& malformed : {std::string(), std::string("\177ELF"), header}) {
    const auto tables = read_parameter_tables(malformed, "hone_parameters_", 2);
    ASSERT_EQ(tables.size(), 2U);
    EXPECT_FALSE(tables[0]);
    EXPECT_FALSE(tables[1]);
    EXPECT_FALSE(read_memory_use(malformed));
  }
}

// All names are ends of one name. With a search for the end of each, or with one pass for each
// kernel, this would take minutes.
TEST(Cubin, IsReadInTimeLinearInItsLength) {
  const std::string name(1U << 20U, 'h');
  std::string symbols;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    Elf64_Sym symbol{};
    symbol.st_name = i;
    symbols.append(reinterpret_cast<const char*>(&symbol), sizeof symbol);
  }
  std::vector<section> sections = {{.type = SHT_STRTAB, .contents = name}};
  while (sections.size() < 1000) sections.push_back({.type = SHT_SYMTAB, .contents = symbols});
  const std::string file = elf_of(sections);
  const auto begin = clock::now();
  for (const auto& table : read_parameter_tables(file, "hone_parameters_", 256))
    EXPECT_FALSE(table);
  EXPECT_TRUE(read_memory_use(file));
  EXPECT_LT(clock::now() - begin, little_time);
}

TEST(Cubin, IsMalformedIfSectionsOfAttributesOverlap) {
  const std::string attributes(1U << 20U, '\3');
  std::vector<section> sections;
  while (sections.size() < 10'000) sections.push_back({.type = 0x70000000, .contents = attributes});
  const auto begin = clock::now();
  EXPECT_FALSE(read_memory_use(elf_of(sections)));
  EXPECT_LT(clock::now() - begin, little_time);
}

TEST(Cubin, HasVariablesOfAllItsSectionsTogether) {
  const section large = {.type = SHT_NOBITS, .contents = {}, .flags = SHF_ALLOC, .size = 1U << 20U};
  EXPECT_EQ(read_memory_use(elf_of({large, large}))->variable_bytes, 2U << 20U);
  section absurd = large;
  absurd.size = ~std::uint64_t{0};
  EXPECT_EQ(read_memory_use(elf_of({absurd, absurd}))->variable_bytes, ~std::uint64_t{0})
      << "the sum must not wrap";
}

TEST(ResourceUsage, IsReadFromTheAssemblersLog) {
  const auto usage = read_resource_usage(
      "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function '_Z1kPf' for "
      "'sm_90a'\nptxas info    : Function properties for _Z1kPf\n"
      "ptxas         .     64 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\nptxas "
      "info    : Used 40 registers, used 1 barriers, 64 bytes cumulative stack size, 1024 bytes "
      "smem, 4 bytes cmem[4]\n"
      "ptxas info    : Compiling entry function 'other' for 'sm_90a'\nptxas         .     0 bytes "
      "stack frame, 0 bytes spill stores, 0 bytes spill loads\nptxas info    : Used 8 registers, "
      "used 0 barriers\n");
  ASSERT_EQ(usage.size(), 2U);
  EXPECT_EQ(usage[0].name, "_Z1kPf");
  EXPECT_EQ(usage[0].registers, 40U);
  EXPECT_EQ(usage[0].static_shared_bytes, 1024U);
  EXPECT_EQ(usage[0].local_bytes, 64U);
  EXPECT_EQ(usage[0].spilled_bytes, 8U);
  EXPECT_EQ(usage[1].registers, 8U);
  EXPECT_EQ(usage[1].static_shared_bytes, 0U);
}

TEST(SourceLine, IsThatOfThePrecedingLocation) {
  const std::string ptx =
      ".version 9.0\n.visible .entry k()\n{\n\t.loc\t1 7 3\n\tadd.f32 a, b, c;\n\t.loc\t2 40 "
      "1\n\tmul.f32 a, b, c;\n}\n\t.file\t1 \"/tmp/x/cuda\"\n\t.file\t2 \"cuda_fp16.h\"\n";
  EXPECT_EQ(find_source_line(ptx, 5, "cuda"), 7);
  EXPECT_EQ(find_source_line(ptx, 7, "cuda"), std::nullopt) << "the location is in a header";
  EXPECT_EQ(find_source_line(ptx, 2, "cuda"), std::nullopt);
  EXPECT_EQ(find_source_line(ptx, 1000, "cuda_fp16.h"), 40);
  EXPECT_EQ(find_source_line("", 5, "cuda"), std::nullopt);
}

TEST(PersistingCache, IsFoundInAllItsForms) {
  EXPECT_TRUE(find_persisting_cache_use("ld.global.L2::evict_last.f32 %f1, [%rd1];"));
  EXPECT_TRUE(find_persisting_cache_use("createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;"));
  EXPECT_TRUE(find_persisting_cache_use("ld.global.L2::cache_hint.f32 %f1, [%rd1], %rd2;"));
  EXPECT_FALSE(find_persisting_cache_use("ld.global.nc.L1::evict_last.f32 %f1, [%rd1];"));
}

TEST(GridBarriers, BelongToTheKernelThatHasThem) {
  const std::string ptx =
      ".visible .entry plain(\n) { ret; }\n.visible .entry syncs(\n) { mov.u32 %r1, %envreg1; }\n";
  const grid_barriers barriers(ptx);
  EXPECT_TRUE(barriers.are_in("syncs"));
  EXPECT_FALSE(barriers.are_in("plain"));
  EXPECT_FALSE(barriers.are_in("sync")) << "another kernel's name begins so";
  EXPECT_TRUE(grid_barriers(ptx + ".func helper() { mov.u32 %r1, %envreg2; }\n").are_in("plain"))
      << "any kernel may call a function";
}

// With time that grows with the square of the length, it would take hours.
TEST(GridBarriers, AreFoundInTimeLinearInTheText) {
  std::string ptx = ".visible .entry other( ";
  while (ptx.size() < 4U << 20U) ptx += "%envreg";
  EXPECT_FALSE(grid_barriers(ptx).are_in("plain"));
}

// A document decides how many names its kernels have. A scan of the text for each name would
// take minutes.
TEST(GridBarriers, AreFoundInOnePassForAllKernels) {
  std::string ptx;
  for (int i = 0; ptx.size() < 2U << 20U; ++i)
    ptx += ".visible .entry k" + std::to_string(i) + "( mov.u32 %r1, %envreg1;\n";
  const auto begin = clock::now();
  const grid_barriers barriers(ptx);
  for (int i = 0; i < 100'000; ++i) EXPECT_FALSE(barriers.are_in("alias" + std::to_string(i)));
  EXPECT_TRUE(barriers.are_in("k77"));
  EXPECT_LT(clock::now() - begin, little_time);
}

}  // namespace
}  // namespace hone
