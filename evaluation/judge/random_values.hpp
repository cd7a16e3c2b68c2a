#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hone {

// Generates random numbers fast: eight interleaved xoshiro256++ generators (Blackman and Vigna,
// 2018), normals by the Box-Muller transform with polynomial logarithm and sine (relative error
// below 1e-6). Equal seeds give equal values for equal sequences of calls. Not cryptographic: seeds
// come from the operating system, and no hostile code sees a generator's state.
class random_stream {
 public:
  explicit random_stream(std::uint64_t seed);

  std::uint64_t bits();
  // Returns a number uniform over 0 .. bound - 1; bound > 0.
  std::uint64_t below(std::uint64_t bound);
  float uniform();  // over [0, 1), 24 bits

  void fill_normal(std::span<float> out);   // mean 0, standard deviation 1
  void fill_uniform(std::span<float> out);  // [0, 1)
  // Fills with integers uniform over low .. high - 1; high > low.
  void fill_integers(std::span<std::int64_t> out, std::int64_t low, std::int64_t high);

 private:
  static constexpr std::size_t lanes = 8;
  static constexpr std::size_t batch = 64;
  void refill();

  std::array<std::array<std::uint64_t, lanes>, 4> state_{};
  std::array<std::uint64_t, batch> buffer_{};
  std::size_t next_ = batch;
};

}  // namespace hone
