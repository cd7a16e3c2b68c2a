#include "policy/text/chat_format.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "messages/plain_message.hpp"
#include "policy/files.hpp"
#include "process/child_process.hpp"
#include "process/framing.hpp"
#include "process/line_connection.hpp"

namespace hone {
namespace {

using nlohmann::json;

constexpr std::array<const char*, 3> template_files = {"chat_template.jinja", "chat_template.json",
                                                       "tokenizer_config.json"};
constexpr std::size_t max_answer_bytes = 16U << 20U;
constexpr std::chrono::seconds answer_limit{60};  // starting Python on a busy machine included

// The characters that Python's str.strip() removes.
constexpr std::array<std::string_view, 29> spaces = {
    "\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",
    "\x1f",   " ",      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002",
    "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
    "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

std::string_view stripped(std::string_view text) {
  const auto begins = [&](std::string_view space) { return text.starts_with(space); };
  const auto ends = [&](std::string_view space) { return text.ends_with(space); };
  for (auto at = spaces.begin(); (at = std::ranges::find_if(spaces, begins)) != spaces.end();)
    text.remove_prefix(at->size());
  for (auto at = spaces.begin(); (at = std::ranges::find_if(spaces, ends)) != spaces.end();)
    text.remove_suffix(at->size());
  return text;
}

chat_format format_of(const json& answer) {
  return {answer.at("before"), answer.at("behind"), answer.at("end"), answer.at("strips")};
}

}  // namespace

std::string chat_format::around(const std::string& message) const {
  return before + (strips ? std::string(stripped(message)) : message) + behind;
}

bool may_have_chat_template(const std::filesystem::path& folder) {
  return std::any_of(template_files.begin(), template_files.end(),
                     [&](const char* name) { return std::filesystem::exists(folder / name); });
}

chat_format read_chat_template(const std::filesystem::path& folder,
                               const std::filesystem::path& python,
                               const std::filesystem::path& program) {
  auto [ours, theirs] = socket_pair();
  child_options options;
  options.arguments = {python.string(), "-I", "-B", program.string()};
  inherit(options.environment, {"PATH", "HOME", "TMPDIR", "LANG"});
  options.descriptors = {{theirs.get(), 0}, {theirs.get(), 1}};
  const child_process renderer(options);
  theirs.reset();
  line_connection connection(std::move(ours), "the process that renders the chat template",
                             max_answer_bytes);
  try {
    connection.send(json{{"folder", std::filesystem::absolute(folder).string()}}.dump());
    connection.end_sending();
    const auto line = connection.read_line(std::chrono::steady_clock::now() + answer_limit);
    if (!line) throw policy_error("the template is not rendered in a minute");
    const json answer = json::parse(*line);
    if (answer.contains("error")) throw policy_error(answer.at("error").get<std::string>());
    return format_of(answer);
  } catch (const std::exception& e) {
    throw policy_error(folder.string() + ": its chat template cannot be used: " + plain_message(e));
  }
}

chat_format load_chat_format(const std::filesystem::path& file) {
  try {
    return format_of(json::parse(read_policy_json(file)));
  } catch (const json::exception& e) {
    throw policy_error(file.string() + ": cannot be read as a chat format: " + plain_message(e));
  }
}

std::string print_chat_format(const chat_format& format) {
  return json{{"before", format.before},
              {"behind", format.behind},
              {"end", format.end},
              {"strips", format.strips}}
             .dump(1) +
         "\n";
}

}  // namespace hone
