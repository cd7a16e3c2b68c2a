#include "evaluation/sandbox/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

namespace hone {
namespace {

constexpr std::uint64_t bytes = 16U << 20U;

TEST(Arena, PoisonIsNotANumberInFloatAndDouble) {
  arena memory(bytes);
  memory.poison(arena_head_bytes, arena_head_bytes + 64);
  float narrow = 0;
  double wide = 0;
  std::memcpy(&narrow, memory.at(arena_head_bytes), sizeof narrow);
  std::memcpy(&wide, memory.at(arena_head_bytes), sizeof wide);
  EXPECT_TRUE(std::isnan(narrow));
  EXPECT_TRUE(std::isnan(wide));
  EXPECT_TRUE(memory.is_poison(arena_head_bytes, arena_head_bytes + 64));
  *memory.at(arena_head_bytes + 63) = std::byte{0};
  EXPECT_FALSE(memory.is_poison(arena_head_bytes, arena_head_bytes + 64));
  EXPECT_TRUE(memory.is_poison(arena_head_bytes, arena_head_bytes + 63));
}

TEST(Arena, ClipsRangesAtItsEnd) {
  arena memory(bytes);
  memory.poison(bytes - 16, bytes + 4096);
  EXPECT_TRUE(memory.is_poison(bytes - 16, ~std::uint64_t{0}));
}

TEST(Arena, BeginsWithAnEmptyHead) {
  EXPECT_LE(sizeof(arena_head), arena_head_bytes);
  arena memory(bytes);
  EXPECT_EQ(reinterpret_cast<std::byte*>(&memory.head()), memory.at(0));
  EXPECT_EQ(memory.head().allocation_count, 0U);
}

TEST(Arena, CannotBeResizedOrSealed) {
  arena memory(bytes);
  EXPECT_NE(ftruncate(memory.descriptor(), bytes / 2), 0);
  EXPECT_NE(ftruncate(memory.descriptor(), bytes * 2), 0);
  EXPECT_NE(fcntl(memory.descriptor(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(Arena, DiscardsAllContentsOnForget) {
  arena memory(bytes);
  void* other = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.descriptor(), 0);
  ASSERT_NE(other, MAP_FAILED);
  memory.poison(arena_head_bytes, bytes / 2);
  std::memset(other, 0x5a, bytes);
  memory.forget();
  for (std::uint64_t at = 0; at < bytes; ++at)
    ASSERT_TRUE(*memory.at(at) == std::byte{0} || *memory.at(at) == std::byte{poison_byte}) << at;
  EXPECT_EQ(memory.head().allocation_count, 0U);
  EXPECT_NE(static_cast<const char*>(other)[bytes - 1], 0x5a);
  munmap(other, bytes);
}

TEST(Arena, ReleasesTheMemoryBehindAnOffset) {
  constexpr std::uint64_t large = 256U << 20U;
  arena memory(large);
  std::memset(memory.at(0), 0x5a, large);
  const auto resident_bytes = [&] {
    struct stat file {};
    fstat(memory.descriptor(), &file);
    return static_cast<std::uint64_t>(file.st_blocks) * 512;
  };
  EXPECT_EQ(resident_bytes(), large);
  const std::uint64_t lost = memory.release(large / 2);
  EXPECT_EQ(lost, large / 2);
  EXPECT_EQ(resident_bytes(), lost);
  EXPECT_EQ(*memory.at(lost - 1), std::byte{0x5a});
  EXPECT_EQ(*memory.at(lost), std::byte{0});
  EXPECT_GT(memory.release(0), 0U) << "some memory is kept, because new pages take time";
  EXPECT_EQ(memory.release(2 * large), large);
}

}  // namespace
}  // namespace hone
