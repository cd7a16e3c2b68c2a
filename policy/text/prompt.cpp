#include "policy/text/prompt.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <variant>

#include "messages/names.hpp"
#include "policy/files.hpp"
#include "tasks/settings.hpp"
#include "tasks/variant_document.hpp"

namespace hone {
namespace {

constexpr std::array<std::string_view, 14> fact_names = {
    "task",   "summary", "source", "source_language", "reference", "tensors", "sizes", "device",
    "number", "score",   "code",   "outcome",         "message",   "profile"};

std::string without_last_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::size_t line_at(std::string_view text, std::size_t at) {
  return 1 + static_cast<std::size_t>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

// Returns a line such as "w: float32 [M, 512], a parameter" or, if no check varies the values,
// "w: float32 [512], a parameter, fixed as constant(1)".
std::string describe(const tensor_spec& tensor, bool is_parameter) {
  std::string shape;
  for (const dimension& one : tensor.shape) {
    const auto* size = std::get_if<std::int64_t>(&one);
    shape += (shape.empty() ? "" : ", ") +
             (size != nullptr ? std::to_string(*size) : std::get<std::string>(one));
  }
  return tensor.name + ": " + std::string(name_of(tensor.type)) + " [" + shape + "]" +
         (is_parameter ? ", a parameter" : "") +
         (tensor.is_fixed ? ", fixed as " + print_contents(tensor) : "");
}

std::string tensor_lines(const task& t) {
  std::string lines;
  for (const auto* list : {&t.inputs, &t.parameters}) {
    for (const tensor_spec& tensor : *list)
      lines += (lines.empty() ? "" : "\n") + describe(tensor, list == &t.parameters);
  }
  return lines;
}

// Returns the sizes on a type of device: those that are timed first.
std::string sizes_text(const prompt_facts& facts) {
  const std::string_view kind = device_kind_of(facts.device_type);
  std::string timed;
  std::string others;
  for (const task_case& one : facts.cases) {
    if (!runs_on(one, kind)) continue;
    std::string& list = one.timed ? timed : others;
    list += (list.empty() ? "" : "; ") + print_sizes(one);
  }
  return "timed: " + timed + (others.empty() ? "" : "\nalso right for: " + others);
}

}  // namespace

std::string print_score(double score) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", score);
  return text.data();
}

shown_variant show_variant(double score, const settings& options, std::string_view cuda,
                           std::string_view python) {
  return {score, without_last_newline(print_code_blocks(options, cuda, python))};
}

prompt_facts facts_for(const task& t, const schema::Draw::Reader& draw) {
  prompt_facts facts;
  facts.task_name = t.name;
  facts.summary = t.summary;
  facts.source = without_last_newline(t.source_text.empty() ? t.reference : t.source_text);
  facts.source_language = t.source_text.empty() ? "python" : t.source_language;
  facts.reference = without_last_newline(t.reference);
  if (facts.reference.starts_with('\n')) facts.reference.erase(0, 1);
  facts.tensors = tensor_lines(t);
  facts.cases = t.cases;
  facts.device_type = draw.getDeviceType();
  for (const auto exemplar : draw.getExemplars()) {
    facts.exemplars.push_back(show_variant(exemplar.getScore(),
                                           parse_settings(exemplar.getSettings().cStr()),
                                           exemplar.getCuda().cStr(), exemplar.getPython().cStr()));
  }
  if (draw.hasAttempt()) {
    const auto attempt = draw.getAttempt();
    facts.attempt = {attempt.getOutcome(), without_last_newline(attempt.getMessage()),
                     without_last_newline(attempt.getProfile()),
                     show_variant(attempt.getScore(), parse_settings(attempt.getSettings().cStr()),
                                  attempt.getCuda().cStr(), attempt.getPython().cStr())};
  }
  return facts;
}

prompt_template prompt_template::load(const std::filesystem::path& path) {
  return parse(read_policy_file(path), path.string());
}

prompt_template prompt_template::parse(const std::string& text, const std::string& name) {
  prompt_template parsed;
  std::size_t at = 0;
  parsed.nodes_ = parse_nodes(text, at, "", name);
  return parsed;
}

prompt_template::node::kind prompt_template::kind_of_section(std::string_view mark) {
  if (mark == "#attempt") return node::kind::attempt;
  return mark[0] == '#' ? node::kind::exemplars : node::kind::without_exemplars;
}

std::vector<prompt_template::node> prompt_template::parse_nodes(std::string_view text,
                                                                std::size_t& at,
                                                                std::string_view section,
                                                                const std::string& name) {
  const auto refuse = [&](std::size_t where, const std::string& problem) {
    throw policy_error(name + ":" + std::to_string(line_at(text, where)) + ": " + problem);
  };
  std::vector<node> nodes;
  const auto add_text = [&](std::string_view piece) {
    if (!piece.empty()) nodes.push_back({node::kind::text, std::string(piece), {}});
  };
  while (at < text.size()) {
    const std::size_t open = text.find("{{", at);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos) refuse(open, "'{{' without '}}'");
    const std::string_view mark = text.substr(open + 2, close - open - 2);
    std::size_t next = close + 2;
    const bool is_section = mark.starts_with('#') || mark.starts_with('^') || mark.starts_with('/');
    std::size_t text_end = open;
    if (is_section) {  // a mark that is alone on its line produces no output for that line
      const std::size_t line_begin = text.rfind('\n', open) == std::string_view::npos || open == 0
                                         ? 0
                                         : text.rfind('\n', open - 1) + 1;
      const bool alone = text.substr(line_begin, open - line_begin).find_first_not_of(" \t") ==
                             std::string_view::npos &&
                         (next == text.size() || text[next] == '\n');
      if (alone) {
        text_end = std::max(at, line_begin);
        if (next < text.size()) ++next;
      }
    }
    add_text(text.substr(at, text_end - at));
    at = next;
    if (mark == "/exemplars" || mark == "/attempt") {
      if (mark.substr(1) != section)
        refuse(open, "{{" + std::string(mark) + "}} without its beginning");
      return nodes;
    }
    if (mark == "#exemplars" || mark == "^exemplars" || mark == "#attempt") {
      if (!section.empty()) refuse(open, "sections cannot be nested");
      nodes.push_back({kind_of_section(mark), "", parse_nodes(text, at, mark.substr(1), name)});
    } else if (std::find(fact_names.begin(), fact_names.end(), mark) != fact_names.end()) {
      nodes.push_back({node::kind::fact, std::string(mark), {}});
    } else {
      refuse(open, "{{" + std::string(mark) +
                       "}} is unknown, expected task, summary, source, source_language, reference, "
                       "tensors, sizes, device, number, score, code, outcome, message, profile, or "
                       "#exemplars, ^exemplars, /exemplars, #attempt, /attempt");
    }
  }
  if (!section.empty()) refuse(text.size(), "a section is never closed");
  add_text(text.substr(at));
  at = text.size();
  return nodes;
}

void prompt_template::render_nodes(const std::vector<node>& nodes, const prompt_facts& facts,
                                   const shown_variant* exemplar, std::size_t number,
                                   std::string& out) {
  for (const node& n : nodes) {
    switch (n.is) {
      case node::kind::text:
        out += n.text;
        break;
      case node::kind::exemplars:
        for (std::size_t i = 0; i < facts.exemplars.size(); ++i)
          render_nodes(n.inner, facts, &facts.exemplars[i], i + 1, out);
        break;
      case node::kind::without_exemplars:
        if (facts.exemplars.empty()) render_nodes(n.inner, facts, nullptr, 0, out);
        break;
      case node::kind::attempt:
        if (facts.attempt) render_nodes(n.inner, facts, &facts.attempt->variant, 0, out);
        break;
      case node::kind::fact:
        if (n.text == "task") out += facts.task_name;
        if (n.text == "summary") out += facts.summary;
        if (n.text == "source") out += facts.source;
        if (n.text == "source_language") out += facts.source_language;
        if (n.text == "reference") out += facts.reference;
        if (n.text == "tensors") out += facts.tensors;
        if (n.text == "sizes") out += sizes_text(facts);
        if (n.text == "device") out += facts.device_type;
        if (facts.attempt && n.text == "outcome") out += facts.attempt->outcome;
        if (facts.attempt && n.text == "message") out += facts.attempt->message;
        if (facts.attempt && n.text == "profile") out += facts.attempt->profile;
        if (exemplar != nullptr && n.text == "number") out += std::to_string(number);
        if (exemplar != nullptr && n.text == "score") out += print_score(exemplar->score);
        if (exemplar != nullptr && n.text == "code") out += exemplar->code;
        break;
    }
  }
}

std::string prompt_template::render(const prompt_facts& facts) const {
  std::string out;
  render_nodes(nodes_, facts, nullptr, 0, out);
  return out;
}

}  // namespace hone
