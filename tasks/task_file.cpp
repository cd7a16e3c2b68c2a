#include "tasks/task_file.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "tasks/reading_toml.hpp"
#include "tasks/task_checks.hpp"
#include "tasks/task_sections.hpp"

namespace hone {

std::string_view name_of(distribution d) {
  constexpr std::array<std::string_view, 10> names = {
      "declared",        "shifted", "small", "outliers", "one high outlier",
      "one low outlier", "large",   "mixed", "sparse",   "weights"};
  return names[static_cast<std::size_t>(d)];
}

tolerance declared_tolerance(const task& t, dtype type) {
  const auto found = t.tolerances.find(type);
  return found != t.tolerances.end() ? found->second : tolerance{};
}

tolerance export_tolerance(const task& t, dtype type) {
  if (const auto own = t.tolerances.find(type); own != t.tolerances.end()) return own->second;
  switch (type) {
    case dtype::float64:
      return {1e-9, 1e-9};
    case dtype::float32:
      return t.relaxed ? tolerance{1e-2, 1e-2} : tolerance{1e-4, 1e-4};
    case dtype::float16:
      return {1e-2, 1e-2};
    case dtype::bfloat16:
      return {2e-2, 2e-2};
    default:
      return {0, 0};  // integers and booleans are exact
  }
}

std::vector<std::int64_t> resolve_shape(const tensor_spec& tensor, const task_case& at) {
  std::vector<std::int64_t> shape;
  for (const dimension& d : tensor.shape) {
    const auto* number = std::get_if<std::int64_t>(&d);
    shape.push_back(number != nullptr ? *number : at.sizes.at(std::get<std::string>(d)));
  }
  return shape;
}

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string print_sizes(const task_case& at) {
  std::string text;
  for (const auto& [name, value] : at.sizes)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

bool runs_on(const task_case& at, std::string_view device_kind) {
  return at.on.empty() || std::find(at.on.begin(), at.on.end(), device_kind) != at.on.end();
}

namespace {

// Returns the names of the data files that a task refers to, sorted.
std::set<std::string> data_files_of(const toml::table& table, const std::string& file) {
  toml_view view(table, file);
  std::set<std::string> names;
  for (toml_view& parameter : view.tables("parameter")) {
    if (auto name = parameter.find_string("data")) names.insert(*name);
  }
  return names;
}

std::uint32_t parse_tier(toml_view& view) {
  constexpr std::int64_t highest = 9;
  const std::optional<std::int64_t> tier = view.find_integer("tier");
  if (!tier) return 0;
  if (*tier < 1 || *tier > highest)
    view.refuse("tier",
                "is " + std::to_string(*tier) + ", expected 1 to " + std::to_string(highest));
  return static_cast<std::uint32_t>(*tier);
}

task build_task(const toml::table& table, const std::string& text, const std::string& file,
                std::vector<data_file> data_files) {
  toml_view view(table, file);
  task parsed;
  parsed.text = text;
  parsed.data_files = std::move(data_files);
  parsed.name = view.string("name");
  constexpr std::string_view name_characters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  if (parsed.name.empty() || parsed.name.find_first_not_of(name_characters) != std::string::npos)
    view.refuse("name", "'" + parsed.name + "' must match [a-z0-9_]+");
  parsed.summary = view.find_string("summary").value_or("");
  const std::string precision = view.find_string("precision").value_or("strict");
  if (precision != "strict" && precision != "relaxed")
    view.refuse("precision", "is '" + precision + "', expected strict or relaxed");
  parsed.relaxed = precision == "relaxed";
  parsed.has_result = view.find_bool("has_result").value_or(true);
  parsed.tier = parse_tier(view);
  parse_distributions(view, parsed);
  parsed.reference = view.string("reference");
  parse_tolerances(view, parsed);
  for (toml_view& input : view.tables("input"))
    parsed.inputs.push_back(parse_tensor(std::move(input), false));
  for (toml_view& parameter : view.tables("parameter"))
    parsed.parameters.push_back(parse_tensor(std::move(parameter), true));
  for (toml_view& one : view.tables("case")) parsed.cases.push_back(parse_case(std::move(one)));
  if (auto source = view.find_table("source")) {
    parsed.source_language = source->string("language");
    parsed.source_text = source->string("text");
    source->finish();
  }
  view.finish();
  if (parsed.inputs.empty()) view.refuse("input", "at least one [[input]] is needed");
  if (std::none_of(parsed.cases.begin(), parsed.cases.end(),
                   [](const task_case& c) { return c.timed; })) {
    view.refuse("case", "at least one [[case]] with timed = true is needed");
  }
  check_names_and_sizes(view, parsed);
  check_data(view, parsed);
  std::vector<std::string_view> parts = {parsed.text};
  for (const data_file& data : parsed.data_files)
    parts.insert(parts.end(), {data.name(), data.bytes()});
  const auto [high, low] = content_hash(parts);
  parsed.id = task_id{high, low};
  return parsed;
}

}  // namespace

task parse_task(const std::string& text, const std::string& file,
                std::vector<data_file> data_files) {
  return build_task(parse_toml(text, file), text, file, std::move(data_files));
}

task load_task(const std::filesystem::path& path) {
  const std::string text = read_source_file(path);
  const toml::table table = parse_toml(text, path.string());
  std::vector<data_file> files;
  for (const std::string& name : data_files_of(table, path.string())) {
    if (name.find('/') == std::string::npos)
      files.push_back({name, read_source_file(path.parent_path() / name)});
  }
  return build_task(table, text, path.string(), std::move(files));
}

namespace {

record<schema::Task> make_record(const task& t, task_role role, bool has_data) {
  record_builder<schema::Task> stored;
  t.id.store(stored->initId());
  stored->setHeldOut(role == task_role::held_out);
  stored->setIsSample(role == task_role::sample);
  stored->setIsLate(role == task_role::late);
  stored->setName(t.name);
  stored->setText(t.text);
  auto files = stored->initDataFiles(static_cast<unsigned>(t.data_files.size()));
  for (unsigned i = 0; i < files.size(); ++i) {
    files[i].setName(t.data_files[i].name());
    files[i].setBytes(as_data(has_data ? t.data_files[i].bytes() : std::string_view()));
  }
  return stored.finish();
}

}  // namespace

record<schema::Task> to_record(const task& t, task_role role) { return make_record(t, role, true); }

record<schema::Task> to_record_without_data(const task& t) {
  return make_record(t, task_role::learned, false);
}

task with_data(schema::Task::Reader stored, std::vector<data_file> files) {
  const std::string name = "task " + std::string(view(stored.getName()));
  task made = parse_task(stored.getText(), name, std::move(files));
  if (made.id != task_id(stored.getId()))
    throw format_error(name, 0, "", "has other data files here than where it comes from");
  return made;
}

task from_record(schema::Task::Reader stored) {
  std::vector<data_file> files;
  for (auto file : stored.getDataFiles())
    files.push_back({file.getName(), std::string(view(file.getBytes()))});
  return parse_task(stored.getText(), "task " + std::string(view(stored.getName())),
                    std::move(files));
}

}  // namespace hone
