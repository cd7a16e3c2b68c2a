#include "evaluation/judge/random_values.hpp"

#include <bit>
#include <cmath>

namespace hone {
namespace {

__extension__ using wide_uint = unsigned __int128;

std::uint64_t splitmix(std::uint64_t& x) {
  x += 0x9e3779b97f4a7c15U;
  std::uint64_t z = x;
  z = (z ^ z >> 30U) * 0xbf58476d1ce4e5b9U;
  z = (z ^ z >> 27U) * 0x94d049bb133111ebU;
  return z ^ z >> 31U;
}

// Returns ln(x) for x in (0, 1], from the exponent and a series of atanh for the mantissa.
inline float fast_log(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  auto exponent = static_cast<std::int32_t>(bits >> 23U) - 127;
  float m = std::bit_cast<float>((bits & 0x7fffffU) | 0x3f800000U);
  const bool upper = m > 1.41421356F;
  m = upper ? m * 0.5F : m;
  exponent += upper ? 1 : 0;
  const float t = (m - 1.0F) / (m + 1.0F);
  const float t2 = t * t;
  const float series =
      2.0F * t * (1.0F + t2 * (1.0F / 3 + t2 * (1.0F / 5 + t2 * (1.0F / 7 + t2 * (1.0F / 9)))));
  return static_cast<float>(exponent) * 0.693147181F + series;
}

// Computes the sine and cosine of 2 pi u for u in [0, 1), reduced to a quarter turn around zero.
inline void turn(float u, float& sine, float& cosine) {
  const float quarters = u * 4.0F;
  // Rounds to nearest: quarters is not negative. Every device must compute the same.
  // NOLINTNEXTLINE(bugprone-incorrect-roundings)
  const auto k = static_cast<std::int32_t>(quarters + 0.5F);
  const float x = (quarters - static_cast<float>(k)) * 1.57079633F;
  const float x2 = x * x;
  const float s =
      x *
      (1.0F + x2 * (-1.0F / 6 + x2 * (1.0F / 120 + x2 * (-1.0F / 5040 + x2 * (1.0F / 362880)))));
  const float c = 1.0F + x2 * (-0.5F + x2 * (1.0F / 24 + x2 * (-1.0F / 720 + x2 * (1.0F / 40320))));
  const bool odd = (k & 1) != 0;
  const float a = odd ? c : s;
  const float b = odd ? s : c;
  sine = (k & 2) != 0 ? -a : a;
  cosine = ((k + 1) & 2) != 0 ? -b : b;
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void box_muller(
    const std::uint64_t* bits, float* out, std::size_t pairs) {
  for (std::size_t i = 0; i < pairs; ++i) {
    const float u =
        (static_cast<float>(static_cast<std::uint32_t>(bits[i] >> 40U)) + 1.0F) * 0x1p-24F;
    const float v = static_cast<float>(static_cast<std::uint32_t>(bits[i] & 0xffffffU)) * 0x1p-24F;
    const float radius = std::sqrt(-2.0F * fast_log(u));
    float sine = 0;
    float cosine = 0;
    turn(v, sine, cosine);
    out[2 * i] = radius * cosine;
    out[2 * i + 1] = radius * sine;
  }
}

}  // namespace

random_stream::random_stream(std::uint64_t seed) {
  for (auto& word : state_) {
    for (auto& lane : word) lane = splitmix(seed);
  }
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void advance(
    std::array<std::array<std::uint64_t, 8>, 4>& s, std::uint64_t* out, std::size_t steps) {
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t l = 0; l < 8; ++l) {
      const std::uint64_t sum = s[0][l] + s[3][l];
      out[step * 8 + l] = (sum << 23U | sum >> 41U) + s[0][l];
      const std::uint64_t t = s[1][l] << 17U;
      s[2][l] ^= s[0][l];
      s[3][l] ^= s[1][l];
      s[1][l] ^= s[2][l];
      s[0][l] ^= s[3][l];
      s[2][l] ^= t;
      s[3][l] = s[3][l] << 45U | s[3][l] >> 19U;
    }
  }
}

void random_stream::refill() {
  advance(state_, buffer_.data(), batch / lanes);
  next_ = 0;
}

std::uint64_t random_stream::bits() {
  if (next_ == batch) refill();
  return buffer_[next_++];
}

std::uint64_t random_stream::below(std::uint64_t bound) {
  // The bias is below 2^-40 for the bounds that the judge uses.
  return static_cast<std::uint64_t>(static_cast<wide_uint>(bits()) * bound >> 64U);
}

float random_stream::uniform() { return static_cast<float>(bits() >> 40U) * 0x1p-24F; }

void random_stream::fill_normal(std::span<float> out) {
  std::size_t done = 0;
  std::array<float, 2 * batch> values{};
  while (done < out.size()) {
    refill();
    next_ = batch;
    const std::size_t left = out.size() - done;
    if (left >= values.size()) {
      box_muller(buffer_.data(), out.data() + done, batch);
      done += values.size();
    } else {
      box_muller(buffer_.data(), values.data(), batch);
      for (std::size_t i = 0; i < left; ++i) out[done + i] = values[i];
      done = out.size();
    }
  }
}

void random_stream::fill_uniform(std::span<float> out) {
  for (float& x : out) x = uniform();
}

void random_stream::fill_integers(std::span<std::int64_t> out, std::int64_t low,
                                  std::int64_t high) {
  const auto range = static_cast<std::uint64_t>(high - low);
  for (std::int64_t& x : out) x = low + static_cast<std::int64_t>(below(range));
}

}  // namespace hone
