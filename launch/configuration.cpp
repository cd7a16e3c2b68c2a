#include "launch/configuration.hpp"

#include <toml++/toml.h>

#include <sstream>

#include "launch/files.hpp"
#include "tasks/reading_toml.hpp"

namespace hone {
namespace {

// Each setting is named once, in describe(); reading and printing go over the same list.
class settings_reader {
 public:
  explicit settings_reader(toml_view& root) : root_(&root) {}

  bool enter(const char* section) {
    section_ = root_->find_table(section);
    return section_.has_value();
  }
  void leave() {
    if (section_) section_->finish();
    section_.reset();
  }
  void value(const char* key, bool& into) { into = view().find_bool(key).value_or(into); }
  void value(const char* key, double& into, double least = 0, double most = 1e300) {
    const auto given = view().find_number(key);
    if (given && !(*given >= least && *given <= most))
      refuse(key, std::to_string(*given), least, most);
    into = given.value_or(into);
  }
  void value(const char* key, std::string& into) { into = view().find_string(key).value_or(into); }
  void value(const char* key, std::vector<std::string>& into) {
    into = view().find_strings(key).value_or(into);
  }
  template <class Integer>
  void value(const char* key, Integer& into, std::int64_t least = 0,
             std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    const auto given = view().find_integer(key);
    if (given && (*given < least || *given > most))
      refuse(key, std::to_string(*given), static_cast<double>(least), static_cast<double>(most));
    if (given) into = static_cast<Integer>(*given);
  }
  template <class Choice, class Parse>
  void choice(const char* key, Choice& into, Parse parse, const char* expected) {
    const auto given = view().find_string(key);
    if (!given) return;
    const auto parsed = parse(*given);
    if (!parsed) view().refuse(key, "is '" + *given + "', expected " + expected);
    into = *parsed;
  }

 private:
  toml_view& view() { return section_ ? *section_ : *root_; }
  [[noreturn]] void refuse(const char* key, const std::string& given, double least, double most) {
    std::ostringstream range;
    range << "is " << given << ", expected at least " << least;
    if (most < 1e18) range << " and at most " << most;
    view().refuse(key, range.str());
  }
  toml_view* root_;
  std::optional<toml_view> section_;
};

class settings_printer {
 public:
  bool enter(const char* section) {
    out_ << "\n[" << section << "]\n";
    return true;
  }
  void leave() {}
  void value(const char* key, bool x) { out_ << key << " = " << (x ? "true" : "false") << "\n"; }
  void value(const char* key, double x, double = 0, double = 0) {
    out_ << key << " = " << toml::value<double>(x) << "\n";
  }
  void value(const char* key, const std::string& x) {
    out_ << key << " = " << toml::value<std::string>(x) << "\n";
  }
  void value(const char* key, const std::vector<std::string>& x) {
    toml::array list;
    for (const std::string& s : x) list.push_back(s);
    out_ << key << " = " << list << "\n";
  }
  template <class Integer>
  void value(const char* key, Integer x, std::int64_t = 0, std::int64_t = 0) {
    out_ << key << " = " << static_cast<std::int64_t>(x) << "\n";
  }
  template <class Choice, class Parse>
  void choice(const char* key, Choice x, Parse /*parse*/, const char* /*expected*/) {
    out_ << key << " = \"" << name_of(x) << "\"\n";
  }
  std::string text() const { return out_.str(); }

 private:
  std::ostringstream out_;
};

template <class Visitor>
void describe(Visitor& v, configuration& c) {
  v.value("seed", c.seed);
  v.value("directory", c.directory);
  v.value("trace", c.trace);
  if (v.enter("node")) {
    v.value("port", c.node.port, 0, 65535);
    v.value("devices", c.node.devices);
    v.value("compilers", c.node.compilers, 0, 256);
    v.value("share_cores", c.node.share_cores);
    v.leave();
  }
  if (v.enter("tasks")) {
    v.value("folder", c.tasks.folder);
    v.value("names", c.tasks.names);
    v.leave();
  }
  if (v.enter("corpus")) {
    v.value("folder", c.corpus.folder);
    v.value("per_task", c.corpus.per_task, 0);
    v.leave();
  }
  if (v.enter("prompt")) {
    v.value("template", c.prompt.prompt_template);
    v.leave();
  }
  if (v.enter("policy")) {
    v.value("kind", c.policy.kind);
    v.value("folder", c.policy.folder);
    v.value("random_weights", c.policy.random_weights);
    v.value("device", c.policy.device);
    v.value("threads", c.policy.threads, 1, 1024);
    v.leave();
  }
  if (v.enter("generation")) {
    v.value("group_size", c.generation.group_size, 1, 1024);
    v.value("replicas", c.generation.replicas, 1, 64);
    v.value("slots", c.generation.options.slots, 1, 4096);
    v.value("max_new_tokens", c.generation.options.max_new_tokens, 1, 1000000);
    v.value("temperature", c.generation.options.temperature, 0, 100);
    v.value("top_p", c.generation.options.top_p, 0, 1);
    v.leave();
  }
  if (v.enter("pool")) {
    v.choice("exemplars", c.pool.exemplars.method, exemplar_method_named,
             "buckets, islands, random or none");
    v.value("exemplar_count", c.pool.exemplars.count, 0, 16);
    v.value("exemplar_temperature", c.pool.exemplars.temperature, 1e-6);
    v.value("islands", c.pool.exemplars.islands, 2, 1024);
    v.value("island_reset_after", c.pool.exemplars.reset_after, 1);
    v.value("max_groups", c.pool.max_groups, 1);
    v.value("max_lag", c.pool.max_lag, 0);
    v.value("job_deadline_s", c.pool.job_deadline_s, 0.1, 1e6);
    v.value("keep_checkpoints", c.pool.keep_checkpoints, 1);
    v.value("acknowledgements", c.pool.acknowledgements);
    v.leave();
  }
  if (v.enter("optimiser")) {
    v.value("beta1", c.optimiser.beta1, 0, 1);
    v.value("beta2", c.optimiser.beta2, 0, 1);
    v.value("weight_decay", c.optimiser.weight_decay, 0);
    v.value("max_gradient_norm", c.optimiser.max_gradient_norm, 0);
    v.leave();
  }
  if (v.enter("sft")) {
    sft_stage_options& s = c.plan.sft;
    v.value("updates", s.updates, 0);
    v.value("updates_per_step", s.updates_per_step, 1);
    v.value("batch", s.batch, 1);
    v.value("rate", s.rate.peak, 0);
    v.value("warm_up", s.rate.warm_up, 0);
    v.value("final_share", s.rate.final_share, 0, 1);
    v.value("exemplar_share", s.exemplar_share, 0, 1);
    v.value("prompt_weight", s.prompt_weight, 0);
    v.value("begin_with", s.begin_with, 0, 1);
    v.leave();
  }
  if (v.enter("self_supervised")) {
    self_supervised_stage_options& s = c.plan.self_supervised;
    v.value("steps", s.steps, 0);
    v.value("groups", s.groups, 1);
    v.value("batch", s.batch, 1);
    v.value("rate", s.rate, 0);
    v.value("passes", s.passes, 1);
    v.leave();
  }
  if (v.enter("contrastive")) {
    contrastive_stage_options& s = c.plan.contrastive;
    v.value("steps", s.steps, 0);
    v.value("minutes", s.minutes, 0);
    v.value("groups", s.groups, 1);
    v.value("one_per_task", s.one_per_task);
    v.value("rate", s.rate, 0);
    v.value("minibatches", s.grpo.minibatches, 1);
    v.value("clip", s.grpo.objective.clip, 0);
    v.value("kl", s.grpo.objective.kl_coefficient, 0);
    v.value("entropy", s.grpo.objective.entropy_coefficient, 0);
    v.value("advantage_limit", s.grpo.advantage_limit, 0);
    v.leave();
  }
  if (v.enter("comparison")) {
    v.value("samples", c.plan.comparison_samples, 0, 1024);
    v.leave();
  }
}

template <class Visitor>
void describe_simulated(Visitor& v, simulated_device_options& s) {
  v.value("verify_us", s.verify_us, 0);
  v.value("measure_us", s.measure_us, 0);
  v.value("ok_share", s.ok_share, 0, 1);
  v.value("median_speedup", s.median_speedup, 1e-6);
  v.value("spread", s.spread, 0);
  v.value("noise", s.noise, 0);
}

// The value as TOML would read it; what is no TOML is a string.
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
    if (at == nullptr) throw format_error("--set " + override_text, 0, names[i], "is no section");
  }
  try {
    const toml::table parsed = toml::parse("value = " + value);
    parsed.get("value")->visit([&](const auto& node) { at->insert_or_assign(names.back(), node); });
  } catch (const toml::parse_error&) {
    at->insert_or_assign(names.back(), value);
  }
}

void check(const configuration& c) {
  const auto refuse = [&](const std::string& key, const std::string& problem) {
    throw format_error(c.file.string(), 0, key, problem);
  };
  if (c.policy.kind != "model" && c.policy.kind != "scripted")
    refuse("policy.kind", "is '" + c.policy.kind + "', expected model or scripted");
  if (c.policy.kind == "model" && c.policy.folder.empty()) refuse("policy.folder", "is missing");
  if (c.policy.kind == "model" && c.prompt.prompt_template.empty())
    refuse("prompt.template", "is missing");
  if (c.node.devices.empty()) refuse("node.devices", "is empty; something has to judge variants");
  for (const std::string& device : c.node.devices) {
    const bool is_gpu = device == "cuda" || device.starts_with("cuda:");
    if (device != "cpu" && !is_gpu && !device.starts_with("simulated:"))
      refuse("node.devices",
             "'" + device + "' is unknown, expected cpu, cuda, cuda:NUMBER or simulated:NAME");
  }
  if (c.policy.kind == "model" && c.plan.sft.updates > 0 && c.corpus.folder.empty())
    refuse("corpus.folder", "is missing: the sft stage learns from a corpus");
  const auto must_fit = [&](const std::string& stage, std::int64_t steps, std::int64_t groups) {
    if (steps > 0 && groups > c.pool.max_groups)
      refuse(stage + ".groups",
             "is " + std::to_string(groups) + ", and pool.max_groups lets no more than " +
                 std::to_string(c.pool.max_groups) + " be drawn: no step would ever be full");
  };
  must_fit("self_supervised", c.plan.self_supervised.steps, c.plan.self_supervised.groups);
  must_fit("contrastive", c.plan.contrastive.steps, c.plan.contrastive.groups);
  if (c.generation.options.top_p <= 0) refuse("generation.top_p", "must be above 0");
}

}  // namespace

configuration load_configuration(const std::filesystem::path& file,
                                 const std::vector<std::string>& overrides) {
  configuration c;
  c.file = file;
  toml::table table = parse_toml(read_text(file.string()), file.string());
  for (const std::string& one : overrides) apply_override(table, one);
  toml_view root(table, file.string());
  settings_reader reader(root);
  describe(reader, c);
  if (auto simulated = root.find_table("simulated")) {
    for (const auto& [name, node] : simulated->table()) {
      toml_view one = *simulated->find_table(name.str());
      settings_reader inner(one);
      simulated_device_options& options = c.simulated[std::string(name.str())];
      options.name = std::string(name.str());
      describe_simulated(inner, options);
      one.finish();
    }
    simulated->finish();
  }
  root.finish();
  for (std::string* path :
       {&c.tasks.folder, &c.corpus.folder, &c.prompt.prompt_template, &c.policy.folder}) {
    if (!path->empty())
      *path = std::filesystem::absolute(file.parent_path() / *path).lexically_normal().string();
  }
  c.plan.sft.rate.steps = c.plan.sft.updates;
  c.plan.contrastive.grpo.temperature =
      c.generation.options.temperature > 0 ? c.generation.options.temperature : 1.0;
  c.generation.options.seed = c.seed;
  check(c);
  return c;
}

std::string print_configuration(const configuration& c) {
  settings_printer printer;
  configuration copy = c;
  describe(printer, copy);
  std::string text = printer.text();
  for (const auto& [name, options] : c.simulated) {
    settings_printer one;
    simulated_device_options printed = options;
    one.enter(("simulated." + name).c_str());
    describe_simulated(one, printed);
    text += one.text();
  }
  return text;
}

}  // namespace hone
