#include "evaluation/compile/normal_form.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>
#include <utility>

namespace hone {
namespace {

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}
bool is_name_part(char c) { return is_name_start(c) || std::isdigit(c) != 0 || c == '$'; }

// Returns true if a name begins here. "%rax" is a register, "$L1" a label of PTX and "$name" the
// address of a name.
bool begins_name(std::string_view line, std::size_t i) {
  if (i > 0 && line[i - 1] == '%') return false;
  return is_name_start(line[i]) || line.substr(i).starts_with("$L_");
}

bool is_local_label(std::string_view name) {
  if (name.starts_with("$L_")) return true;
  return name.size() > 2 && name.starts_with(".L") && std::isdigit(name[2]) != 0;
}

// Returns the name that ends before `end`, after spaces.
std::string_view name_before(std::string_view line, std::size_t end) {
  while (end > 0 && line[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && is_name_part(line[begin - 1])) --begin;
  return line.substr(begin, end - begin);
}

// Returns the name that a line begins to define, or an empty text.
std::string_view defined_name(std::string_view line) {
  if (line.ends_with(':')) {
    const std::string_view name = line.substr(0, line.size() - 1);
    return !name.empty() && is_name_start(name[0]) && !is_local_label(name) ? name
                                                                            : std::string_view();
  }
  if (line.starts_with("\t.comm\t")) return line.substr(7, line.find(',') - 7);
  if (!line.starts_with('.')) return {};
  const bool is_function =
      line.find(".entry") != std::string_view::npos || line.find(".func") != std::string_view::npos;
  const std::size_t end = is_function ? line.rfind('(') : line.find_first_of("[=;");
  return end == std::string_view::npos ? std::string_view() : name_before(line, end);
}

// Lines that say where a definition goes or how it is linked.
bool says_nothing(std::string_view line) {
  constexpr std::array<std::string_view, 14> directives = {
      "\t.file",  "\t.text",   "\t.data", "\t.bss",   "\t.section", "\t.type",  "\t.size",
      "\t.globl", "\t.hidden", "\t.weak", "\t.local", "\t.ident",   "\t.align", "\t.p2align"};
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || line.substr(first).starts_with("//")) return true;
  return std::any_of(directives.begin(), directives.end(),
                     [&](std::string_view d) { return line.starts_with(d); });
}

using text_range = std::pair<std::size_t, std::size_t>;

class normalizer {
 public:
  normalizer(std::string_view assembly, const std::vector<std::string>& kernels) : text_(assembly) {
    for (std::size_t i = 0; i < kernels.size(); ++i)
      strings_.emplace("\t.string\t\"" + kernels[i] + "\"", i);
    find_definitions();
  }

  std::string run(const std::vector<std::string>& roots) {
    for (const std::string& root : roots) number_of(root);
    for (std::size_t next = 0; next < reached_.size(); ++next) {
      made_ += "@" + std::to_string(next) + " is\n";
      const auto body = definitions_.find(reached_[next]);
      if (body == definitions_.end()) continue;
      for (const auto& [begin, end] : body->second) append(text_.substr(begin, end - begin));
    }
    return std::move(made_);
  }

 private:
  void find_definitions() {
    std::vector<text_range>* body = nullptr;
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      const std::string_view line = text_.substr(begin, end - begin);
      if (const std::string_view name = defined_name(line); !name.empty()) {
        body = &definitions_[name];
      }
      if (body != nullptr && !says_nothing(line)) body->emplace_back(begin, end);
      begin = end + 1;
    }
  }

  std::size_t number_of(std::string_view name) {
    const auto [known, is_new] = numbers_.try_emplace(name, reached_.size());
    if (is_new) reached_.push_back(name);
    return known->second;
  }

  void append(std::string_view line) {
    if (const auto known = strings_.find(std::string(line)); known != strings_.end()) {
      made_ += "kernel " + std::to_string(known->second) + "\n";
      return;
    }
    for (std::size_t i = 0; i < line.size();) {
      const bool begins = begins_name(line, i);
      std::size_t end = i + 1;
      if (begins || std::isdigit(line[i]) != 0) {
        while (end < line.size() && is_name_part(line[end])) ++end;
      }
      const std::string_view word = line.substr(i, end - i);
      made_ += begins ? replacement(word) : std::string(word);
      i = end;
    }
    made_ += '\n';
  }

  std::string replacement(std::string_view word) {
    if (is_local_label(word))
      return ".L" + std::to_string(labels_.try_emplace(word, labels_.size()).first->second);
    if (definitions_.contains(word)) return "@" + std::to_string(number_of(word));
    // A parameter of a PTX function.
    const std::size_t suffix = word.rfind("_param_");
    if (suffix != std::string_view::npos && definitions_.contains(word.substr(0, suffix)))
      return "@" + std::to_string(number_of(word.substr(0, suffix))) +
             std::string(word.substr(suffix));
    // A variable that PTX declares within a function.
    if (word.starts_with("_Z")) return "@" + std::to_string(number_of(word));
    return std::string(word);
  }

  std::string_view text_;
  std::unordered_map<std::string_view, std::vector<text_range>> definitions_;
  std::unordered_map<std::string, std::size_t> strings_;
  std::unordered_map<std::string_view, std::size_t> numbers_;  // of names, in reached_
  std::unordered_map<std::string_view, std::size_t> labels_;
  std::vector<std::string_view> reached_;
  std::string made_;
};

}  // namespace

std::string normal_form(std::string_view assembly, const std::vector<std::string>& roots,
                        const std::vector<std::string>& kernels) {
  return normalizer(assembly, kernels).run(roots);
}

}  // namespace hone
