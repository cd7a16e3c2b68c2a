#include "ui/html/numbers.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace hone {
namespace {

std::string formatted(double value, std::chars_format format, int digits) {
  std::array<char, 512> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, digits).ptr;
  return {buffer.data(), end};
}

}  // namespace

std::string decimal_text(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  const std::string written = formatted(value, std::chars_format::fixed, digits);
  // A number that rounds to zero has no sign.
  return written.find_first_not_of("-0.") == written.npos && written.starts_with('-')
             ? written.substr(1)
             : written;
}

std::string number_text(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) return "-";
  if (size != 0 && (size < 0.001 || size >= 1e7)) {
    return formatted(value, std::chars_format::scientific, 1);
  }
  // The limits are those where the rounded number gains a digit.
  return decimal_text(value, size < 0.0995 && size > 0 ? 4
                             : size < 9.995            ? 2
                             : size < 99.95            ? 1
                                                       : 0);
}

std::string speedup_text(double speedup) {
  return speedup > 0 && std::isfinite(speedup) ? number_text(speedup) + "x" : "-";
}

std::string duration_text(double microseconds) {
  const double size = std::abs(microseconds);
  if (!std::isfinite(microseconds)) return "-";
  if (size < 999.5) return number_text(microseconds) + " µs";
  if (size < 999.5e3) return number_text(microseconds / 1e3) + " ms";
  constexpr double minute = 60e6;
  constexpr double hour = 60 * minute;
  if (size < 2 * minute) return number_text(microseconds / 1e6) + " s";
  if (size < 2 * hour) return number_text(microseconds / minute) + " min";
  return number_text(microseconds / hour) + " h";
}

std::string percent_text(double share) {
  return std::isfinite(share) ? decimal_text(share * 100, 1) + " %" : "-";
}

std::string count_text(std::uint64_t count) {
  std::string written = std::to_string(count);
  for (std::size_t end = written.size(); end > 3;) {
    end -= 3;
    written.insert(end, ",");
  }
  return written;
}

std::string compact_text(double count) {
  constexpr std::array units = {"", "k", "M", "G", "T"};
  if (!std::isfinite(count)) return "-";
  std::size_t unit = 0;
  while (std::abs(count) >= 1e4 || (unit > 0 && std::abs(count) >= 1e3)) {
    if (unit + 1 == units.size()) break;
    count /= 1e3;
    ++unit;
  }
  std::string written = decimal_text(count, 1);
  if (written.ends_with(".0")) written.resize(written.size() - 2);
  return written + units[unit];
}

}  // namespace hone
