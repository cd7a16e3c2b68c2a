#include "tasks/corpus.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <optional>
#include <sstream>

namespace hone {
namespace {

struct sweep_axis {
  std::string name;
  std::vector<std::string> values;
};

constexpr std::size_t max_documents = 1000;
constexpr std::size_t max_sweep = 1000;             // characters
constexpr std::size_t max_characters = 64U << 20U;  // in all documents of a file together

std::vector<sweep_axis> parse_sweep(const std::string& line, const std::string& file) {
  static const RE2 axis_pattern(R"(\s*([A-Z][A-Z0-9_]{0,63})\s*=\s*([^,]+?)\s*)", RE2::Latin1);
  if (line.size() > max_sweep)
    throw format_error(file, 1, "sweep",
                       "has more than " + std::to_string(max_sweep) + " characters");
  std::vector<sweep_axis> axes;
  std::istringstream parts(line.substr(line.find(':') + 1));
  for (std::string part; std::getline(parts, part, ',');) {
    sweep_axis axis;
    std::string listed;
    if (!RE2::FullMatch(part, axis_pattern, &axis.name, &listed))
      throw format_error(file, 1, "sweep",
                         "'" + part + "' is not of the form NAME = value value ...");
    std::istringstream values(listed);
    for (std::string value; values >> value;) axis.values.push_back(value);
    if (axis.values.empty())
      throw format_error(file, 1, "sweep", "names no values of " + axis.name);
    axes.push_back(axis);
  }
  if (axes.empty()) throw format_error(file, 1, "sweep", "names no values");
  return axes;
}

// Returns nullopt if the result would have more than `most` characters.
std::optional<std::string> replaced(const std::string& text, const std::string& from,
                                    const std::string& to, std::size_t most) {
  std::string result;
  std::size_t begin = 0;
  for (std::size_t at = 0; (at = text.find(from, begin)) != std::string::npos;
       begin = at + from.size()) {
    result.append(text, begin, at - begin).append(to);
    if (result.size() > most) return std::nullopt;
  }
  result.append(text, begin);
  return result.size() > most ? std::nullopt : std::optional(std::move(result));
}

}  // namespace

std::vector<corpus_document> expand_corpus_text(const std::string& given, const std::string& file,
                                                const std::string& task, const std::string& name) {
  std::string text = given;
  std::vector<sweep_axis> axes;
  if (text.starts_with("sweep:")) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    axes = parse_sweep(text.substr(0, end), file);
    text.erase(0, std::min(text.size(), end + 1));
    text.erase(0, std::min(text.find_first_not_of('\n'), text.size()));
  }
  std::size_t count = 1;
  for (const sweep_axis& axis : axes) {
    count *= axis.values.size();
    if (count > max_documents)
      throw format_error(file, 1, "sweep",
                         "expands to more than " + std::to_string(max_documents) + " documents");
  }
  const auto refuse_size = [&] {
    return format_error(
        file, 1, "sweep",
        "expands to more text than " + std::to_string(max_characters >> 20U) + " MiB");
  };
  if (count > 1 && text.size() > max_characters / count) throw refuse_size();
  std::vector<corpus_document> documents = {{task, name, text, file}};
  for (const sweep_axis& axis : axes) {
    const std::string place = "${" + axis.name + "}";
    if (text.find(place) == std::string::npos)
      throw format_error(file, 1, "sweep", "the text has no " + place);
    std::vector<corpus_document> next;
    for (const corpus_document& document : documents) {
      for (const std::string& value : axis.values) {
        auto expanded = replaced(document.text, place, value, max_characters / count);
        if (!expanded) throw refuse_size();
        next.push_back(document);
        next.back().name += " " + axis.name + "=" + value;
        next.back().text = std::move(*expanded);
      }
    }
    documents = std::move(next);
  }
  static const RE2 left(R"((\$\{[A-Z][A-Z0-9_]{0,63}\}))", RE2::Latin1);
  std::string name_left;
  if (RE2::PartialMatch(documents.front().text, left, &name_left))
    throw format_error(file, 1, "sweep", "gives no value to " + name_left);
  return documents;
}

std::vector<corpus_document> expand_corpus_file(const std::filesystem::path& file) {
  return expand_corpus_text(read_source_file(file), file.string(),
                            std::filesystem::absolute(file).parent_path().filename(), file.stem());
}

std::vector<corpus_document> load_corpus(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw format_error(folder.string(), 0, "", "is no folder");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".md") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<corpus_document> documents;
  for (const auto& file : files) {
    for (auto& document : expand_corpus_file(file)) documents.push_back(std::move(document));
  }
  return documents;
}

}  // namespace hone
