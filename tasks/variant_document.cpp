#include "tasks/variant_document.hpp"

#include <cmark.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

namespace hone {
namespace {

struct problem_exception {
  parse_problem problem;
};

[[noreturn]] void refuse(int line, std::string message) {
  throw problem_exception{{line, std::move(message)}};
}

int line_at(std::string_view text, std::size_t offset) {
  return 1 + static_cast<int>(std::count(text.begin(),
                                         text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

// Returns the offset of the first byte that is not valid UTF-8 (RFC 3629), or npos.
std::size_t invalid_utf8_at(std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t i = 0;
  while (i < text.size()) {
    const unsigned char lead = bytes[i];
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const int length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || i + static_cast<std::size_t>(length) > text.size()) return i;
    const unsigned char second = bytes[i + 1];
    const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (second < low || second > high) return i;
    for (int k = 2; k < length; ++k) {
      if ((bytes[i + static_cast<std::size_t>(k)] & 0xC0) != 0x80) return i;
    }
    i += static_cast<std::size_t>(length);
  }
  return std::string_view::npos;
}

std::string normalize(std::string_view text) {
  if (text.size() > max_document_bytes) {
    refuse(0, "the document has " + std::to_string(text.size()) + " bytes, at most " +
                  std::to_string(max_document_bytes) + " are allowed");
  }
  if (const std::size_t at = invalid_utf8_at(text); at != std::string_view::npos) {
    refuse(line_at(text, at), "not valid UTF-8");
  }
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos)
    refuse(line_at(text, at), "a NUL byte");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string lines;
  lines.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\r', begin), text.size());
    lines += text.substr(begin, end - begin);
    if (end < text.size() && !text.substr(end).starts_with("\r\n"))
      refuse(line_at(text, end), "a carriage return without a line feed");
    begin = end + 1;
  }
  return lines;
}

struct free_node {
  void operator()(cmark_node* node) const { cmark_node_free(node); }
};

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

struct free_iterator {
  void operator()(cmark_iter* it) const { cmark_iter_free(it); }
};

// Calls `visit` for `root` and for every node below it.
template <class Visit>
void walk(cmark_node* root, Visit visit) {
  const std::unique_ptr<cmark_iter, free_iterator> it(cmark_iter_new(root));
  for (cmark_event_type event = cmark_iter_next(it.get()); event != CMARK_EVENT_DONE;
       event = cmark_iter_next(it.get())) {
    if (event == CMARK_EVENT_ENTER) visit(cmark_iter_get_node(it.get()));
  }
}

enum class fence_state { not_fenced, open, closed };

// Returns whether a code block is fenced and whether its author has closed the fence, as the format
// requires. cmark's tree shows neither: it has the same node for fenced and indented code, and it
// closes an open fence at the end of the enclosing block. The number of lines shows both. The
// content of an indented block is all of its lines except trailing blank ones; the content of a
// closed fence is all of its lines except the first and the last.
fence_state state_of(cmark_node* block, const std::vector<std::string_view>& lines) {
  const int first = cmark_node_get_start_line(block);
  int last = std::min(cmark_node_get_end_line(block), static_cast<int>(lines.size()));
  while (last > first && lines[static_cast<std::size_t>(last) - 1].find_first_not_of(" \t>") ==
                             std::string_view::npos)
    --last;
  const std::string_view literal = cmark_node_get_literal(block);
  const auto content = static_cast<int>(std::count(literal.begin(), literal.end(), '\n'));
  const std::string_view opening = lines.at(static_cast<std::size_t>(first) - 1);
  const auto column = static_cast<std::size_t>(std::max(0, cmark_node_get_start_column(block) - 1));
  const char mark = column < opening.size() ? opening[column] : ' ';
  if ((mark != '`' && mark != '~') || content == last - first + 1) return fence_state::not_fenced;
  const std::size_t length =
      std::min(opening.find_first_not_of(mark, column), opening.size()) - column;
  if (content != last - first - 1) return fence_state::open;
  std::string_view closing = lines[static_cast<std::size_t>(last) - 1];
  closing = closing.substr(0, closing.find_last_not_of(" \t") + 1);
  const std::size_t before = closing.find_last_not_of(mark);
  const std::size_t run = closing.size() - (before == std::string_view::npos ? 0 : before + 1);
  return run >= length ? fence_state::closed : fence_state::open;
}

std::string first_word(const char* info) {
  std::string_view words = info != nullptr ? info : "";
  const std::size_t begin = words.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  words.remove_prefix(begin);
  std::string word(words.substr(0, words.find_first_of(" \t")));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin));
}

std::string text_between(const std::vector<std::string_view>& lines, int after_line,
                         int before_line) {
  std::string text;
  for (int line = after_line + 1;
       line < before_line && static_cast<std::size_t>(line) <= lines.size(); ++line) {
    text += std::string(lines[static_cast<std::size_t>(line) - 1]) + "\n";
  }
  return trimmed(text);
}

// Returns the words of a heading, separated by single spaces.
std::string heading_text(cmark_node* heading) {
  std::string words;
  walk(heading, [&](cmark_node* node) {
    const char* literal = cmark_node_get_literal(node);
    words += literal != nullptr ? literal : " ";
  });
  std::string spaced;
  for (const char c : words) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (!blank) spaced += c;
    if (blank && !spaced.empty() && spaced.back() != ' ') spaced += ' ';
  }
  while (spaced.ends_with(' ')) spaced.pop_back();
  return spaced;
}

struct section {
  std::string title;
  int first_line = 0;  // of the heading
  int last_line = 0;   // of the heading
  std::vector<cmark_node*> fences;
};

// Splits the document at its top-level headings of level two. The first section holds everything
// before the first such heading. A fence inside of a list or quotation belongs to the section that
// contains the list or quotation.
std::vector<section> split_sections(cmark_node* document) {
  std::vector<section> sections(1);
  for (cmark_node* block = cmark_node_first_child(document); block != nullptr;
       block = cmark_node_next(block)) {
    if (cmark_node_get_type(block) == CMARK_NODE_HEADING &&
        cmark_node_get_heading_level(block) == 2) {
      sections.push_back({heading_text(block),
                          cmark_node_get_start_line(block),
                          cmark_node_get_end_line(block),
                          {}});
      continue;
    }
    walk(block, [&](cmark_node* node) {
      if (cmark_node_get_type(node) == CMARK_NODE_CODE_BLOCK)
        sections.back().fences.push_back(node);
    });
  }
  return sections;
}

void read_code_section(const section& code, const std::vector<std::string_view>& lines,
                       variant_document& document) {
  bool has_toml = false;
  for (cmark_node* block : code.fences) {
    const int line = cmark_node_get_start_line(block);
    const fence_state state = state_of(block, lines);
    if (state == fence_state::not_fenced) continue;
    if (state == fence_state::open) refuse(line, "a fenced block that is never closed");
    const std::string language = first_word(cmark_node_get_fence_info(block));
    const std::string text = cmark_node_get_literal(block);
    const auto only_one = [&](bool seen) {
      if (seen) refuse(line, "a second " + language + " block; at most one is allowed");
    };
    if (language == "cuda") {
      only_one(document.cuda_line != 0);
      document.cuda = text;
      document.cuda_line = line + 1;
    } else if (language == "python") {
      only_one(document.python_line != 0);
      document.python = text;
      document.python_line = line + 1;
    } else if (language == "toml") {
      only_one(has_toml);
      has_toml = true;
      try {
        document.options = parse_settings(text);
      } catch (const std::runtime_error& e) {
        refuse(line, e.what());
      }
    } else {
      refuse(line,
             language.empty()
                 ? "a fenced block without a language; expected toml, cuda or python"
                 : "a fenced block of language '" + language + "'; expected toml, cuda or python");
    }
  }
  if (document.python_line == 0) refuse(code.first_line, "the code section has no python block");
}

variant_document parse_or_refuse(std::string_view raw) {
  const std::string text = normalize(raw);
  const std::vector<std::string_view> lines = split_lines(text);
  const std::unique_ptr<cmark_node, free_node> root(
      cmark_parse_document(text.data(), text.size(), CMARK_OPT_DEFAULT));
  const std::vector<section> sections = split_sections(root.get());
  variant_document document;
  const section* code = nullptr;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const section& part = sections[i];
    const int end =
        i + 1 < sections.size() ? sections[i + 1].first_line : static_cast<int>(lines.size()) + 1;
    if (part.title == "Performance Analysis")
      document.analysis = text_between(lines, part.last_line, end);
    if (part.title == "Algorithm Design")
      document.design = text_between(lines, part.last_line, end);
    if (part.title != "Code Implementation") continue;
    if (code != nullptr) refuse(part.first_line, "a second '## Code Implementation' section");
    code = &part;
  }
  if (code == nullptr) refuse(0, "no '## Code Implementation' section");
  read_code_section(*code, lines, document);
  return document;
}

std::string fenced(std::string_view language, std::string_view body) {
  std::size_t longest = 2;
  for (std::size_t i = 0; i < body.size();) {
    const std::size_t end = std::min(body.find_first_not_of('`', i), body.size());
    longest = std::max(longest, end - i);
    i = end + 1;
  }
  const std::string fence(longest + 1, '`');
  std::string text = fence + std::string(language) + "\n" + std::string(body);
  if (!text.ends_with('\n')) text += '\n';
  return text + fence + "\n";
}

}  // namespace

std::variant<variant_document, parse_problem> parse_variant_document(std::string_view text) {
  try {
    return parse_or_refuse(text);
  } catch (const problem_exception& e) {
    return e.problem;
  }
}

std::string to_string(const parse_problem& problem) {
  return problem.line > 0 ? "line " + std::to_string(problem.line) + ": " + problem.message
                          : problem.message;
}

std::string print_code_blocks(const settings& options, std::string_view cuda,
                              std::string_view python) {
  std::string text;
  if (const std::string canonical = print_settings(options); !canonical.empty())
    text += fenced("toml", canonical);
  if (!cuda.empty()) text += fenced("cuda", cuda);
  return text + fenced("python", python);
}

std::string print_variant_document(const variant_document& document) {
  std::string text;
  if (!document.analysis.empty()) text += "## Performance Analysis\n" + document.analysis + "\n";
  if (!document.design.empty()) text += "## Algorithm Design\n" + document.design + "\n";
  return text + "## Code Implementation\n" +
         print_code_blocks(document.options, document.cuda, document.python);
}

std::string document_of_module(std::string_view module) {
  variant_document document;
  document.python = module;
  return print_variant_document(document);
}

variant_id identify_variant(task_id task, const variant_document& document) {
  return content_id<variant_id>(
      {to_string(task), print_settings(document.options), document.cuda, document.python});
}

variant_id identify_unparsable(std::string_view text) { return content_id<variant_id>({text}); }

record<schema::Variant> make_variant(task_id task, std::string_view text) {
  record_builder<schema::Variant> variant;
  task.store(variant->initTaskId());
  const auto parsed = parse_variant_document(text);
  if (const auto* problem = std::get_if<parse_problem>(&parsed)) {
    identify_unparsable(text).store(variant->initId());
    variant->setProblem(to_string(*problem));
    return variant.finish();
  }
  const auto& document = std::get<variant_document>(parsed);
  identify_variant(task, document).store(variant->initId());
  variant->setSettings(print_settings(document.options));
  variant->setCuda(document.cuda);
  variant->setPython(document.python);
  return variant.finish();
}

}  // namespace hone
