#include "evaluation/compile/cuda/cubin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(Cubin, HasNoParameterTableIfMalformed) {
  EXPECT_FALSE(read_parameter_table("", "hone_parameters_0"));
  EXPECT_FALSE(read_parameter_table("\177ELF", "hone_parameters_0"));
  std::string header(64, '\xff');
  header.replace(0, 4, "\177ELF");
  header[4] = 2;
  EXPECT_FALSE(read_parameter_table(header, "hone_parameters_0"));
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

TEST(GridSynchronisation, BelongsToTheKernelThatAsksForIt) {
  const std::string ptx =
      ".visible .entry plain(\n) { ret; }\n.visible .entry syncs(\n) { mov.u32 %r1, %envreg1; }\n";
  EXPECT_TRUE(synchronises_grid(ptx, "syncs"));
  EXPECT_FALSE(synchronises_grid(ptx, "plain"));
  EXPECT_FALSE(synchronises_grid(ptx, "sync")) << "another kernel's name begins so";
  EXPECT_TRUE(synchronises_grid(ptx + ".func helper() { mov.u32 %r1, %envreg2; }\n", "plain"))
      << "any kernel may call a function";
}

// With time that grows with the square of the length, it would take hours.
TEST(GridSynchronisation, IsFoundInTimeLinearInTheText) {
  std::string ptx = ".visible .entry other( ";
  while (ptx.size() < 4U << 20U) ptx += "%envreg";
  EXPECT_FALSE(synchronises_grid(ptx, "plain"));
}

}  // namespace
}  // namespace hone
