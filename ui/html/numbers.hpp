#pragma once

#include <cstdint>
#include <string>

// Numbers as the pages show them: three significant digits, the unit chosen by size, "-" for a
// number that is not finite. Pure and thread-safe; the locale has no influence.
namespace hone {

// Returns a finite number with `digits` digits after its point.
std::string decimal_text(double value, int digits);

// Returns "2.50", "25.0", "250", and "1.5e+09" outside [0.001, 1e7).
std::string number_text(double value);

// Returns "2.50x", "25.0x", "250x". A speed-up is positive: else "-".
std::string speedup_text(double speedup);

// Returns "74.7 µs", "1.63 ms", "2.50 s".
std::string duration_text(double microseconds);

// Returns "58.3 %" for 0.583.
std::string percent_text(double share);

// Returns "1,551".
std::string count_text(std::uint64_t count);

// Returns "950", "12k", "1.5M", "2G": a label of an axis of counts.
std::string compact_text(double count);

}  // namespace hone
