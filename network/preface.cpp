#include "network/preface.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace hone {
namespace {

constexpr std::string_view first_line = "hone 1\n";
constexpr std::string_view refused = "refused ";

template <class Number>
bool read_number(const std::string& text, Number& number, int base) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return code == std::errc() && end == text.data() + text.size();
}

// Removes what would end a line or an answer early.
std::string one_line_of(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  constexpr std::size_t most = 600;
  text.resize(std::min(text.size(), most));
  return text;
}

}  // namespace

std::string to_text(const preface& p) {
  std::ostringstream out;
  out << first_line << "purpose " << one_line_of(p.purpose) << "\nname " << one_line_of(p.name)
      << "\nincarnation " << std::hex << p.incarnation << std::dec << "\n";
  for (const auto& [what, number] : p.versions) out << "version " << what << " " << number << "\n";
  out << "\n";
  return out.str();
}

bool may_begin_preface(std::string_view text) {
  const std::size_t size = std::min(text.size(), first_line.size());
  return text.size() <= longest_preface && text.substr(0, size) == first_line.substr(0, size);
}

bool is_whole(std::string_view text) { return text.ends_with("\n\n"); }

std::optional<preface> parse_preface(std::string_view text) {
  if (!may_begin_preface(text) || !is_whole(text)) return std::nullopt;
  std::istringstream lines{std::string(text.substr(first_line.size()))};
  preface p;
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) return std::nullopt;
    const std::string key = line.substr(0, space);
    const std::string value = line.substr(space + 1);
    if (key == "purpose") p.purpose = value;
    if (key == "name") p.name = value;
    if (key == "incarnation" && !read_number(value, p.incarnation, 16)) return std::nullopt;
    if (key != "version") continue;  // what a later version says beside it does no harm
    const std::size_t second = value.find(' ');
    if (second == std::string::npos ||
        !read_number(value.substr(second + 1), p.versions[value.substr(0, second)], 10))
      return std::nullopt;
  }
  if (p.purpose.empty() || p.name.empty()) return std::nullopt;
  return p;
}

std::string answer_text(const std::string& problem) {
  return problem.empty() ? "welcome\n\n" : std::string(refused) + one_line_of(problem) + "\n\n";
}

std::optional<std::string> parse_answer(std::string_view text) {
  if (text == "welcome\n\n") return "";
  if (!text.starts_with(refused) || !is_whole(text)) return std::nullopt;
  return std::string(text.substr(refused.size(), text.size() - refused.size() - 2));
}

std::string find_version_problem(const std::map<std::string, std::uint32_t>& found,
                                 const std::map<std::string, std::uint32_t>& expected) {
  std::string problem;
  for (const auto& [what, number] : expected) {
    const auto theirs = found.find(what);
    if (theirs != found.end() && theirs->second == number) continue;
    problem += (problem.empty() ? "" : "; ") + what + " version " +
               (theirs == found.end() ? "unknown" : std::to_string(theirs->second)) +
               ", expected " + std::to_string(number);
  }
  return problem;
}

}  // namespace hone
