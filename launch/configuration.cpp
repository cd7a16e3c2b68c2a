#include "launch/configuration.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "launch/configuration_checks.hpp"
#include "launch/configuration_keys.hpp"
#include "launch/files.hpp"
#include "launch/renamed_keys.hpp"
#include "messages/parse_number.hpp"
#include "tasks/reading_toml.hpp"

namespace hone {
namespace {

constexpr double no_limit = 1e18;

// Returns the shortest text that reads back as this finite number: "0.2", "1e-05", "3".
std::string shortest_text(double value) {
  std::array<char, 32> digits{};
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

// Sets each field whose key a TOML table has. Errors go to `problems`.
class settings_reader {
 public:
  settings_reader(toml_view& root, format_problems& problems)
      : root_(&root), problems_(&problems) {}

  bool enter(const char* section, const char* /*meaning*/) {
    problems_->attempt([&] { section_ = root_->find_table(section); });
    return section_.has_value();
  }
  void leave() {
    problems_->attempt([&] { section_->finish(); });
    section_.reset();
  }
  void value(const char* key, const char* /*meaning*/, bool& field) {
    problems_->attempt([&] { field = view().find_bool(key).value_or(field); });
  }
  void value(const char* key, const char* /*meaning*/, std::string& field) {
    problems_->attempt([&] { field = view().find_string(key).value_or(field); });
  }
  void value(const char* key, const char* /*meaning*/, std::vector<std::string>& field) {
    problems_->attempt([&] { field = view().find_strings(key).value_or(field); });
  }
  void value(const char* key, const char* /*meaning*/, double& field, double least,
             double most = no_limit) {
    problems_->attempt([&] {
      const auto given = view().find_number(key);
      if (given && !(*given >= least && *given <= most))
        refuse(key, shortest_text(*given), least, most);
      field = given.value_or(field);
    });
  }
  template <class Integer>
  void value(const char* key, const char* /*meaning*/, Integer& field, std::int64_t least = 0,
             std::int64_t most = largest<Integer>()) {
    problems_->attempt([&] {
      const auto given = view().find_integer(key);
      if (given && (*given < least || *given > most))
        refuse(key, std::to_string(*given), static_cast<double>(least), static_cast<double>(most));
      if (given) field = static_cast<Integer>(*given);
    });
  }
  void milliseconds(const char* key, const char* meaning, std::uint64_t& field, double least,
                    double most) {
    double seconds = static_cast<double>(field) / 1000;
    value(key, meaning, seconds, least, most);
    field = static_cast<std::uint64_t>(std::llround(seconds * 1000));
  }
  template <class Choice, class Parse>
  void choice(const char* key, const char* /*meaning*/, Choice& field, Parse parse,
              const char* expected) {
    problems_->attempt([&] {
      const auto given = view().find_string(key);
      if (!given) return;
      const auto parsed = parse(*given);
      if (!parsed) view().refuse(key, "is '" + *given + "', expected " + expected);
      field = *parsed;
    });
  }

 private:
  template <class Integer>
  static constexpr std::int64_t largest() {
    constexpr auto limit = std::numeric_limits<std::int64_t>::max();
    return std::in_range<std::int64_t>(std::numeric_limits<Integer>::max())
               ? static_cast<std::int64_t>(std::numeric_limits<Integer>::max())
               : limit;
  }
  toml_view& view() { return section_ ? *section_ : *root_; }
  [[noreturn]] void refuse(const char* key, const std::string& given, double least, double most) {
    std::ostringstream range;
    range << "is " << given << ", expected at least " << least;
    if (most < no_limit) range << " and at most " << most;
    view().refuse(key, range.str());
  }

  toml_view* root_;
  format_problems* problems_;
  std::optional<toml_view> section_;
};

// Prints each key as TOML, with its meaning as a comment before it if asked to.
class settings_printer {
 public:
  explicit settings_printer(bool with_comments) : with_comments_(with_comments) {}

  bool enter(const std::string& section, const char* meaning) {
    out_ << "\n";
    comment(meaning);
    out_ << "[" << section << "]\n";
    return true;
  }
  void leave() {}
  void value(const char* key, const char* meaning, bool field) {
    print(key, meaning, toml::value<bool>(field));
  }
  void value(const char* key, const char* meaning, const std::string& field) {
    print(key, meaning, toml::value<std::string>(field));
  }
  void value(const char* key, const char* meaning, const std::vector<std::string>& field) {
    toml::array list;
    for (const std::string& one : field) list.push_back(one);
    print(key, meaning, list);
  }
  void value(const char* key, const char* meaning, double field, double = 0, double = 0) {
    std::string text = shortest_text(field);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    print(key, meaning, text);
  }
  template <class Integer>
  void value(const char* key, const char* meaning, Integer field, std::int64_t = 0,
             std::int64_t = 0) {
    print(key, meaning, static_cast<std::int64_t>(field));
  }
  void milliseconds(const char* key, const char* meaning, std::uint64_t field, double, double) {
    value(key, meaning, static_cast<double>(field) / 1000);
  }
  template <class Choice, class Parse>
  void choice(const char* key, const char* meaning, Choice field, Parse /*parse*/,
              const char* /*expected*/) {
    value(key, meaning, std::string(name_of(field)));
  }
  std::string text() const { return out_.str(); }

 private:
  template <class Value>
  void print(const char* key, const char* meaning, const Value& value) {
    comment(meaning);
    out_ << key << " = " << value << "\n";
  }
  void comment(const char* meaning) {
    if (with_comments_) out_ << "# " << meaning << "\n";
  }

  bool with_comments_;
  std::ostringstream out_;
};

// Returns whether the text is an integer, of any size.
bool is_integer(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789_") == std::string_view::npos;
}

// Reads the value as TOML. A value that is not TOML is a string.
void apply_override(toml::table& table, const std::string& override_text) {
  const std::size_t equals = override_text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw format_error("--set " + override_text, 0, "", "is not of the form section.key=value");
  const std::string path = override_text.substr(0, equals);
  const std::string value = override_text.substr(equals + 1);
  toml::table* at = &table;
  std::istringstream parts(path);
  std::vector<std::string> names;
  for (std::string name; std::getline(parts, name, '.');) names.push_back(name);
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    if (!at->contains(names[i])) at->insert(names[i], toml::table{});
    at = at->get(names[i])->as_table();
    if (at == nullptr)
      throw format_error("--set " + override_text, 0, names[i], "is not a section");
  }
  try {
    const toml::table parsed = toml::parse("value = " + value);
    parsed.get("value")->visit([&](const auto& node) { at->insert_or_assign(names.back(), node); });
  } catch (const toml::parse_error& e) {
    if (is_integer(value))
      throw format_error("--set " + override_text, 0, "",
                         "not valid TOML: " + std::string(e.description()));
    at->insert_or_assign(names.back(), value);
  }
}

std::map<std::string, std::uint32_t> parse_lags(const configuration& c) {
  std::map<std::string, std::uint32_t> lags;
  for (const std::string& one : c.max_lag_of) {
    const std::size_t equals = one.rfind('=');
    std::optional<std::uint32_t> steps;
    if (equals != std::string::npos && equals > 0)
      steps = parse_number<std::uint32_t>(std::string_view(one).substr(equals + 1));
    if (!steps)
      throw format_error(c.file.string(), 0, "pool.max_lag_of",
                         "has '" + one +
                             "', expected the beginning of a device type's name and "
                             "a number of steps, as in h100=4");
    lags[one.substr(0, equals)] = *steps;
  }
  return lags;
}

std::string key_of(const std::string& override_text) {
  return override_text.substr(0, override_text.find('='));
}

// Returns the error of a key that an override sets as an error of the last such override, whose
// value counts, or the error as it is.
format_error blame_override(const format_error& e, const std::vector<std::string>& overrides) {
  const auto set_by = std::find_if(overrides.rbegin(), overrides.rend(), [&](const auto& one) {
    return !e.at_key.empty() &&
           (key_of(one) == e.at_key || key_of(one).starts_with(e.at_key + "."));
  });
  if (set_by == overrides.rend()) return e;
  return {"--set " + *set_by, 0, e.at_key == key_of(*set_by) ? "" : e.at_key, e.what_is_wrong};
}

std::map<std::string, simulated_device_options> read_simulated(toml_view& root,
                                                               format_problems& problems) {
  std::map<std::string, simulated_device_options> all;
  auto simulated = root.find_table("simulated");
  if (!simulated) return all;
  for (const auto& [name, node] : simulated->table()) {
    toml_view one = *simulated->find_table(name.str());
    settings_reader inner(one, problems);
    simulated_device_options& options = all[std::string(name.str())];
    options.name = std::string(name.str());
    visit_simulated_keys(inner, options);
    problems.attempt([&] { one.finish(); });
  }
  problems.attempt([&] { simulated->finish(); });
  return all;
}

// A path is relative to the file that names it, or to the current folder where an override does.
void make_paths_absolute(configuration& c, const std::vector<std::string>& overrides) {
  const std::map<std::string, std::string*> paths = {
      {"node.identity", &c.node.identity},         {"tasks.folder", &c.tasks.folder},
      {"corpus.folder", &c.corpus.folder},         {"prompt.template", &c.prompt.prompt_template},
      {"policy.folder", &c.policy.folder},         {"serve.tokens", &c.serve.tokens},
      {"serve.certificate", &c.serve.certificate}, {"serve.key", &c.serve.key}};
  for (const auto& [key, path] : paths) {
    if (path->empty()) continue;
    const bool is_overridden =
        std::any_of(overrides.begin(), overrides.end(), [&key = key](const std::string& one) {
          return key_of(one) == key || key.starts_with(key_of(one) + ".");
        });
    const std::filesystem::path from = is_overridden ? "" : c.file.parent_path();
    *path = std::filesystem::absolute(from / *path).lexically_normal().string();
  }
}

configuration read_configuration(const std::filesystem::path& file,
                                 const std::vector<std::string>& overrides) {
  configuration c;
  c.file = file;
  toml::table table = parse_toml(read_text(file.string()), file.string());
  rename_keys(table, file.string());
  for (const std::string& one : overrides) apply_override(table, one);
  toml_view root(table, file.string());
  format_problems problems;
  settings_reader reader(root, problems);
  visit_keys(reader, c);
  c.simulated = read_simulated(root, problems);
  if (auto endpoints = root.find_table("endpoint")) {
    for (const auto& [name, node] : endpoints->table()) {
      toml_view one = *endpoints->find_table(name.str());
      settings_reader inner(one, problems);
      visit_endpoint_keys(inner, c.endpoints[std::string(name.str())]);
      problems.attempt([&] { one.finish(); });
    }
    problems.attempt([&] { endpoints->finish(); });
  }
  problems.attempt([&] { root.finish(); });
  problems.throw_if_any();
  make_paths_absolute(c, overrides);
  c.learner.plan.sft.rate.steps = c.learner.plan.sft.updates;
  comparison_stage_options& compared = c.learner.plan.comparison;
  if (c.corpus.held_out > 0 && compared.bare_samples > 0)
    compared.held_out_bare_samples = compared.held_out_samples;
  const exemplar_options& shown = c.pool.storage.exemplars;
  c.learner.plan.sft.exemplars = shown.method == exemplar_method::none ? 0 : shown.count;
  grpo_step_options& grpo = c.learner.plan.contrastive.grpo;
  grpo.longest_answer = static_cast<std::size_t>(c.generation.options.max_new_tokens);
  // Greedy decoding records probabilities of the plain softmax.
  if (c.generation.options.sampling.temperature > 0) grpo.sampling = c.generation.options.sampling;
  c.pool.storage.max_lag_of = parse_lags(c);
  c.generation.options.seed = c.seed;
  check_configuration(c);
  return c;
}

}  // namespace

configuration load_configuration(const std::filesystem::path& file,
                                 const std::vector<std::string>& given) {
  std::vector<std::string> overrides;
  for (const std::string& one : given) overrides.push_back(with_new_key(one));
  try {
    return read_configuration(file, overrides);
  } catch (const format_errors& several) {
    format_problems blamed;
    for (const format_error& e : several.all) blamed.add(blame_override(e, overrides));
    blamed.throw_if_any();
    throw;  // never: there are several
  } catch (const format_error& e) {
    throw blame_override(e, overrides);
  }
}

std::map<std::string, simulated_device_options> parse_simulated(const std::string& text) {
  const std::string place = "the run's configuration";
  toml::table table = parse_toml(text, place);
  toml_view root(table, place);
  format_problems problems;
  auto all = read_simulated(root, problems);
  problems.throw_if_any();
  return all;
}

std::string print_configuration(const configuration& c, bool with_comments) {
  settings_printer printer(with_comments);
  configuration copy = c;
  visit_keys(printer, copy);
  for (auto& [name, options] : copy.simulated) {
    printer.enter("simulated." + name, "A simulated device.");
    visit_simulated_keys(printer, options);
    printer.leave();
  }
  for (auto& [name, options] : copy.endpoints) {
    printer.enter("endpoint." + name, "A server that writes, with policy.kind = \"endpoint\".");
    visit_endpoint_keys(printer, options);
    printer.leave();
  }
  return printer.text();
}

}  // namespace hone
