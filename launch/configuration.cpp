#include "launch/configuration.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "launch/configuration_keys.hpp"
#include "launch/files.hpp"
#include "policy/policy_device.hpp"
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

// Sets each field whose key a TOML table has. Throws format_error.
class settings_reader {
 public:
  explicit settings_reader(toml_view& root) : root_(&root) {}

  bool enter(const char* section, const char* /*meaning*/) {
    section_ = root_->find_table(section);
    return section_.has_value();
  }
  void leave() {
    section_->finish();
    section_.reset();
  }
  void value(const char* key, const char* /*meaning*/, bool& field) {
    field = view().find_bool(key).value_or(field);
  }
  void value(const char* key, const char* /*meaning*/, std::string& field) {
    field = view().find_string(key).value_or(field);
  }
  void value(const char* key, const char* /*meaning*/, std::vector<std::string>& field) {
    field = view().find_strings(key).value_or(field);
  }
  void value(const char* key, const char* /*meaning*/, double& field, double least,
             double most = no_limit) {
    const auto given = view().find_number(key);
    if (given && !(*given >= least && *given <= most))
      refuse(key, shortest_text(*given), least, most);
    field = given.value_or(field);
  }
  template <class Integer>
  void value(const char* key, const char* /*meaning*/, Integer& field, std::int64_t least = 0,
             std::int64_t most = largest<Integer>()) {
    const auto given = view().find_integer(key);
    if (given && (*given < least || *given > most))
      refuse(key, std::to_string(*given), static_cast<double>(least), static_cast<double>(most));
    if (given) field = static_cast<Integer>(*given);
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
    const auto given = view().find_string(key);
    if (!given) return;
    const auto parsed = parse(*given);
    if (!parsed) view().refuse(key, "is '" + *given + "', expected " + expected);
    field = *parsed;
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
  } catch (const toml::parse_error&) {
    at->insert_or_assign(names.back(), value);
  }
}

std::map<std::string, std::uint32_t> parse_lags(const configuration& c) {
  std::map<std::string, std::uint32_t> lags;
  for (const std::string& one : c.max_lag_of) {
    const std::size_t equals = one.rfind('=');
    const char* const end = one.data() + one.size();
    std::uint32_t steps = 0;
    const bool is_well = equals != std::string::npos && equals > 0 &&
                         std::from_chars(one.data() + equals + 1, end, steps).ptr == end &&
                         equals + 1 < one.size();
    if (!is_well)
      throw format_error(c.file.string(), 0, "pool.max_lag_of",
                         "has '" + one +
                             "', expected the beginning of a device type's name and "
                             "a number of steps, as in h100=4");
    lags[one.substr(0, equals)] = steps;
  }
  return lags;
}

// True of what TOML takes as a key without quotes.
bool is_bare_key(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
}

// Refuses what contradicts itself in how the policy learns and samples.
template <class Refuse>
void check_policy(const configuration& c, const Refuse& refuse) {
  if (c.policy.adapters.rank > 0 && c.policy.random_weights)
    refuse("policy.adapter_rank", "needs weights of a folder, and policy.random_weights is true");
  const auto check_kind = [&](const std::string& key, const std::string& device) {
    const bool is_cuda = c.policy.device.starts_with("cuda");
    if (device.starts_with("cuda") != is_cuda || (!is_cuda && device != "cpu"))
      refuse(key, "names '" + device + "', and policy.device is " + c.policy.device +
                      "; both must be CPUs or GPUs");
  };
  for (const std::string& device : c.generation.devices) check_kind("generation.devices", device);
  std::vector<std::string> training = {c.policy.device};
  for (const std::string& device : c.policy.data_parallel) {
    check_kind("policy.data_parallel", device);
    const auto is_this = [&](const std::string& other) { return are_same_device(device, other); };
    if (device != "cpu" && std::any_of(training.begin(), training.end(), is_this))
      refuse("policy.data_parallel", "names '" + device + "', which trains already");
    training.push_back(device);
  }
}

void check(const configuration& c) {
  const auto refuse = [&](const std::string& key, const std::string& problem) {
    throw format_error(c.file.string(), 0, key, problem);
  };
  if (c.node.silence_ms < least_heartbeats_in_silence * c.node.heartbeat_ms)
    refuse("node.silence_s", "is less than three times node.heartbeat_s");
  const auto kinds = {"model", "endpoint", "teacher", "scripted"};
  if (std::find(kinds.begin(), kinds.end(), c.policy.kind) == kinds.end())
    refuse("policy.kind",
           "is '" + c.policy.kind + "', expected model, endpoint, teacher or scripted");
  if (c.policy.kind == "endpoint" && c.endpoints.empty())
    refuse("policy.kind", "is 'endpoint', and there is no [endpoint.NAME]");
  if (c.policy.kind == "endpoint" && c.generation.replicas > 1)
    refuse("generation.replicas",
           "is above 1: each would have the endpoints' limits for itself; raise their concurrency");
  if (c.policy.kind == "endpoint" && c.generation.replicas == 0)
    refuse("generation.replicas", "is 0, and nodes that join ask no endpoints");
  for (const auto& [name, options] : c.endpoints) {
    if (!is_bare_key(name))
      refuse("endpoint", "'" + name + "' is no name: letters, digits, - and _ are");
  }
  if (c.policy.kind == "model" && c.policy.folder.empty()) refuse("policy.folder", "is missing");
  if ((c.policy.kind == "model" || c.policy.kind == "endpoint") && c.prompt.prompt_template.empty())
    refuse("prompt.template", "is missing");
  if (c.prompt.format != "auto" && c.prompt.format != "plain" && c.prompt.format != "chat")
    refuse("prompt.format", "is '" + c.prompt.format + "', expected auto, plain or chat");
  check_policy(c, refuse);
  if (c.node.devices.empty() && c.corpus.taught > 0)
    refuse("node.devices", "is empty, and corpus.taught writes for the first of them");
  for (const std::string& device : c.node.devices) {
    const bool is_gpu = device == "cuda" || device.starts_with("cuda:");
    if (device != "cpu" && !is_gpu && !is_simulated(device))
      refuse("node.devices",
             "'" + device + "' is unknown, expected cpu, cuda, cuda:NUMBER or simulated:NAME");
  }
  const auto simulated = std::count_if(c.node.devices.begin(), c.node.devices.end(), is_simulated);
  if (simulated != 0 && simulated != std::ssize(c.node.devices) && !c.node.options.mixes_simulation)
    refuse("node.devices",
           "names simulated and real devices, and the scores of simulated ones are made up "
           "(node.mix_simulated = true allows it, to test a system)");
  if (c.policy.kind == "model" && c.learner.plan.sft.updates > 0 && c.corpus.folder.empty() &&
      c.corpus.taught == 0)
    refuse("corpus.folder",
           "is missing: the sft stage learns from a corpus (or from what the teacher writes, with "
           "corpus.taught)");
  const auto must_fit = [&](const std::string& stage, std::int64_t steps, std::int64_t groups) {
    if (steps > 0 && groups > static_cast<std::int64_t>(c.pool.draws.max_groups))
      refuse(stage + ".groups",
             "is " + std::to_string(groups) + ", and pool.max_groups lets no more than " +
                 std::to_string(c.pool.draws.max_groups) + " be drawn: no step would ever be full");
  };
  must_fit("self_supervised", c.learner.plan.self_supervised.steps,
           c.learner.plan.self_supervised.groups);
  must_fit("contrastive", c.learner.plan.contrastive.steps, c.learner.plan.contrastive.groups);
  if (!c.node.baselines && needs_baselines(c.learner.plan.contrastive.reward))
    refuse("node.baselines", "is false, and the reward depends on the fastest baseline");
  if (c.generation.options.sampling.top_p <= 0) refuse("generation.top_p", "must be above 0");
}

// Returns the error of a key that an override sets as an error of that override, or the error as
// it is.
format_error blame_override(const format_error& e, const std::vector<std::string>& overrides) {
  for (const std::string& one : overrides) {
    const std::string key = one.substr(0, one.find('='));
    if (key == e.at_key || key.starts_with(e.at_key + "."))
      return {"--set " + one, 0, e.at_key == key ? "" : e.at_key, e.what_is_wrong};
  }
  return e;
}

std::map<std::string, simulated_device_options> read_simulated(toml_view& root) {
  std::map<std::string, simulated_device_options> all;
  auto simulated = root.find_table("simulated");
  if (!simulated) return all;
  for (const auto& [name, node] : simulated->table()) {
    toml_view one = *simulated->find_table(name.str());
    settings_reader inner(one);
    simulated_device_options& options = all[std::string(name.str())];
    options.name = std::string(name.str());
    visit_simulated_keys(inner, options);
    one.finish();
  }
  simulated->finish();
  return all;
}

configuration read_configuration(const std::filesystem::path& file,
                                 const std::vector<std::string>& overrides) {
  configuration c;
  c.file = file;
  toml::table table = parse_toml(read_text(file.string()), file.string());
  for (const std::string& one : overrides) apply_override(table, one);
  toml_view root(table, file.string());
  settings_reader reader(root);
  visit_keys(reader, c);
  c.simulated = read_simulated(root);
  if (auto endpoints = root.find_table("endpoint")) {
    for (const auto& [name, node] : endpoints->table()) {
      toml_view one = *endpoints->find_table(name.str());
      settings_reader inner(one);
      visit_endpoint_keys(inner, c.endpoints[std::string(name.str())]);
      one.finish();
    }
    endpoints->finish();
  }
  root.finish();
  for (std::string* path : {&c.node.identity, &c.tasks.folder, &c.corpus.folder,
                            &c.prompt.prompt_template, &c.policy.folder}) {
    if (!path->empty())
      *path = std::filesystem::absolute(file.parent_path() / *path).lexically_normal().string();
  }
  c.learner.plan.sft.rate.steps = c.learner.plan.sft.updates;
  const exemplar_options& shown = c.pool.storage.exemplars;
  c.learner.plan.sft.exemplars = shown.method == exemplar_method::none ? 0 : shown.count;
  grpo_step_options& grpo = c.learner.plan.contrastive.grpo;
  grpo.longest_answer = static_cast<std::size_t>(c.generation.options.max_new_tokens);
  // Greedy decoding records probabilities of the plain softmax.
  if (c.generation.options.sampling.temperature > 0) grpo.sampling = c.generation.options.sampling;
  c.pool.storage.max_lag_of = parse_lags(c);
  c.generation.options.seed = c.seed;
  check(c);
  return c;
}

}  // namespace

configuration load_configuration(const std::filesystem::path& file,
                                 const std::vector<std::string>& overrides) {
  try {
    return read_configuration(file, overrides);
  } catch (const format_error& e) {
    throw blame_override(e, overrides);
  }
}

std::map<std::string, simulated_device_options> parse_simulated(const std::string& text) {
  const std::string place = "the run's configuration";
  toml::table table = parse_toml(text, place);
  toml_view root(table, place);
  return read_simulated(root);
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
