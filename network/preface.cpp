#include "network/preface.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <sstream>
#include <utility>

namespace hone {
namespace {

constexpr std::string_view first_line = "hone 1\n";
constexpr std::string_view welcome_text = "welcome\n\n";
constexpr std::array<std::pair<preface_answer::kind, std::string_view>, 2> answer_words = {
    {{preface_answer::kind::refused, "refused "}, {preface_answer::kind::later, "later "}}};
constexpr std::size_t max_name = 64;

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
  return text.size() <= max_preface && text.substr(0, size) == first_line.substr(0, size);
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
    if (key != "version") continue;  // further keys of a later version do no harm
    const std::size_t second = value.find(' ');
    if (second == std::string::npos ||
        !read_number(value.substr(second + 1), p.versions[value.substr(0, second)], 10))
      return std::nullopt;
  }
  if (p.purpose.empty() || !is_node_name(p.name)) return std::nullopt;
  return p;
}

std::string to_text(const preface_answer& answer) {
  for (const auto& [kind, word] : answer_words) {
    if (kind == answer.what) return std::string(word) + one_line_of(answer.reason) + "\n\n";
  }
  return std::string(welcome_text);
}

std::optional<preface_answer> parse_answer(std::string_view text) {
  if (text == welcome_text) return preface_answer{};
  for (const auto& [kind, word] : answer_words) {
    if (text.starts_with(word) && is_whole(text))
      return preface_answer{kind,
                            std::string(text.substr(word.size(), text.size() - word.size() - 2))};
  }
  return std::nullopt;
}

bool is_node_name(std::string_view name) {
  return !name.empty() && name.size() <= max_name &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == ' ' || c == '.' || c == '-' || c == '_';
         });
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
