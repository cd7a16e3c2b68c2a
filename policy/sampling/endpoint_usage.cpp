#include "policy/sampling/endpoint_usage.hpp"

#include <array>
#include <cstdio>

namespace hone {
namespace {

constexpr std::string_view prefix = "endpoint.";

struct field {
  std::string_view name;
  double endpoint_usage::*value;
};
constexpr std::array<field, 6> fields = {{{"requests", &endpoint_usage::requests},
                                          {"failures", &endpoint_usage::failures},
                                          {"prompt_tokens", &endpoint_usage::prompt_tokens},
                                          {"answer_tokens", &endpoint_usage::answer_tokens},
                                          {"answer_s", &endpoint_usage::answer_s},
                                          {"cost", &endpoint_usage::cost}}};

}  // namespace

std::vector<std::pair<std::string, double>> numbers_of(const endpoint_usage& usage) {
  std::vector<std::pair<std::string, double>> numbers;
  for (const field& one : fields) numbers.emplace_back(one.name, usage.*one.value);
  return numbers;
}

std::map<std::string, double> named_numbers(const std::string& endpoint,
                                            const endpoint_usage& usage) {
  std::map<std::string, double> named;
  for (const auto& [name, value] : numbers_of(usage))
    named[std::string(prefix) + endpoint + "." + name] = value;
  return named;
}

bool add_number(std::map<std::string, endpoint_usage>& known, std::string_view name, double value) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  const std::size_t dot = name.rfind('.');
  for (const field& one : fields) {
    if (dot == std::string_view::npos || name.substr(dot + 1) != one.name) continue;
    known[std::string(name.substr(0, dot))].*one.value += value;
    return true;
  }
  return false;
}

std::string describe(const endpoint_usage& usage) {
  const double answers = usage.requests - usage.failures;
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(),
                "%.0f requests (%.0f failed), %.1f s an answer, %.0f tokens read, %.0f written",
                usage.requests, usage.failures, answers > 0 ? usage.answer_s / answers : 0,
                usage.prompt_tokens, usage.answer_tokens);
  std::string said = text.data();
  if (usage.cost > 0) {
    std::snprintf(text.data(), text.size(), ", cost %.4g", usage.cost);
    said += text.data();
  }
  return said;
}

}  // namespace hone
