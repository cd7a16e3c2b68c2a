#include "tasks/task_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>
#include <set>

#include "tasks/reading_toml.hpp"
#include "tasks/safetensors.hpp"

namespace hone {
namespace {

struct dtype_facts {
  dtype type;
  std::string_view name;
  std::string_view safetensors;
  std::size_t bytes;
};
constexpr std::array<dtype_facts, 7> dtype_table = {{{dtype::float32, "float32", "F32", 4},
                                                     {dtype::float16, "float16", "F16", 2},
                                                     {dtype::bfloat16, "bfloat16", "BF16", 2},
                                                     {dtype::float64, "float64", "F64", 8},
                                                     {dtype::int32, "int32", "I32", 4},
                                                     {dtype::int64, "int64", "I64", 8},
                                                     {dtype::boolean, "bool", "BOOL", 1}}};
constexpr std::array<std::string_view, 4> distribution_names = {"declared", "shifted", "small",
                                                                "outliers"};
constexpr std::int64_t max_dimension = std::int64_t{1} << 40U;

const dtype_facts& facts_of(dtype type) { return dtype_table[static_cast<std::size_t>(type)]; }

bool is_identifier(std::string_view text) {
  static const std::regex pattern("[A-Za-z_][A-Za-z0-9_]*");
  return std::regex_match(text.begin(), text.end(), pattern);
}

std::variant<double, std::string> parse_argument(const std::string& text, toml_view& view,
                                                 const std::string& key) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  if (is_identifier(text)) return text;
  view.refuse(key, "'" + text + "' is neither a number nor the name of a size");
}

initializer parse_initializer_name(const std::string& text, toml_view& view,
                                   const std::string& key) {
  static const std::regex pattern(
      R"(\s*([a-z]+)\s*(?:\(\s*([^,()\s]+)\s*(?:,\s*([^,()\s]+)\s*)?\))?\s*)");
  constexpr const char* expected =
      "expected normal, normal(mean,std), uniform, uniform(lo,hi), integers(lo,hi), constant(v) or "
      "permutation";
  std::smatch match;
  if (!std::regex_match(text, match, pattern))
    view.refuse(key, "'" + text + "' is no initializer, " + expected);
  const std::string name = match[1];
  const int arguments = match[3].matched ? 2 : match[2].matched ? 1 : 0;
  initializer init;
  if (arguments > 0) init.a = parse_argument(match[2], view, key);
  if (arguments > 1) init.b = parse_argument(match[3], view, key);
  const auto is = [&](std::string_view which, bool arity_fits) {
    if (name != which) return false;
    if (!arity_fits)
      view.refuse(key, "'" + text + "' has the wrong number of arguments, " + expected);
    return true;
  };
  if (is("normal", arguments != 1)) {
    init.of = initializer::kind::normal;
  } else if (is("uniform", arguments != 1)) {
    init.of = initializer::kind::uniform;
  } else if (is("integers", arguments == 2)) {
    init.of = initializer::kind::integers;
  } else if (is("constant", arguments == 1)) {
    init.of = initializer::kind::constant;
  } else if (is("permutation", arguments == 0)) {
    init.of = initializer::kind::permutation;
  } else {
    view.refuse(key, "'" + text + "' is no initializer, " + expected);
  }
  if (init.of != initializer::kind::integers && (std::holds_alternative<std::string>(init.a) ||
                                                 std::holds_alternative<std::string>(init.b))) {
    view.refuse(key, "'" + text + "': only integers(lo,hi) takes the names of sizes");
  }
  return init;
}

initializer parse_initializer(toml_view& view, dtype type) {
  const toml::node* node = view.find("init");
  initializer init;
  if (node == nullptr) {
    if (type == dtype::boolean) init.of = initializer::kind::coin;
    return init;
  }
  if (node->is_string()) return parse_initializer_name(*view.find_string("init"), view, "init");
  if (!node->is_table())
    view.refuse("init",
                "is " + describe(*node) + ", expected a string or a table of `of` and `expr`");
  toml_view table = *view.find_table("init");
  init = parse_initializer_name(table.string("of"), table, "of");
  init.expr = table.string("expr");
  table.finish();
  return init;
}

std::vector<dimension> parse_shape(toml_view& view) {
  const toml::node* node = view.find("shape");
  if (node == nullptr) view.refuse("shape", "is missing");
  const toml::array* array = node->as_array();
  if (array == nullptr)
    view.refuse("shape",
                "is " + describe(*node) + ", expected an array of numbers and names of sizes");
  std::vector<dimension> shape;
  for (const toml::node& element : *array) {
    if (auto number = element.value_exact<std::int64_t>()) {
      if (*number < 0 || *number > max_dimension)
        view.refuse("shape", std::to_string(*number) + " is no size");
      shape.emplace_back(*number);
    } else if (auto name = element.value_exact<std::string>(); name && is_identifier(*name)) {
      shape.emplace_back(*name);
    } else {
      view.refuse("shape", "holds " + describe(element) + ", expected numbers and names of sizes");
    }
  }
  return shape;
}

tensor_spec parse_tensor(toml_view view, bool is_parameter) {
  tensor_spec tensor;
  tensor.name = view.string("name");
  if (!is_identifier(tensor.name)) view.refuse("name", "'" + tensor.name + "' is no identifier");
  tensor.shape = parse_shape(view);
  if (auto type = view.find_string("dtype")) {
    const auto known = dtype_named(*type);
    if (!known) {
      view.refuse(
          "dtype",
          "'" + *type +
              "' is unknown, expected float32, float16, bfloat16, float64, int32, int64 or bool");
    }
    tensor.type = *known;
  }
  tensor.init = parse_initializer(view, tensor.type);
  if (is_parameter) {
    tensor.data_file = view.find_string("data").value_or("");
    if (!tensor.data_file.empty() && view.has("init"))
      view.refuse("data", "stands beside `init`; a parameter has one or the other");
    if (tensor.data_file.find('/') != std::string::npos)
      view.refuse("data", "must be a file beside the task, without a folder");
  }
  view.finish();
  return tensor;
}

task_case parse_case(toml_view view) {
  task_case parsed;
  if (auto sizes = view.find_table("sizes")) {
    for (const auto& [key, node] : sizes->table()) {
      const auto value = node.value_exact<std::int64_t>();
      if (!value || *value < 0 || *value > max_dimension)
        sizes->refuse(key.str(), "is " + describe(node) + ", expected a size");
      parsed.sizes.emplace(key.str(), *value);
    }
  }
  parsed.timed = view.find_bool("timed").value_or(false);
  if (auto kinds = view.find_strings("on")) {
    for (const std::string& kind : *kinds) {
      if (kind != "cpu" && kind != "cuda" && kind != "simulated")
        view.refuse("on", "'" + kind + "' is no kind of device, expected cpu, cuda or simulated");
    }
    if (kinds->empty()) view.refuse("on", "is empty; leave it out to run everywhere");
    parsed.on = *kinds;
  }
  view.finish();
  return parsed;
}

void parse_tolerances(toml_view& view, task& parsed) {
  auto table = view.find_table("tolerance");
  if (!table) return;
  for (const dtype_facts& facts : dtype_table) {
    auto entry = table->find_table(facts.name);
    if (!entry) continue;
    const tolerance t{entry->number("rtol"), entry->number("atol")};
    if (!(t.rtol >= 0) || !(t.atol >= 0))
      table->refuse(facts.name, "tolerances must not be negative");
    parsed.tolerances[facts.type] = t;
    entry->finish();
  }
  table->finish();
}

void parse_distributions(toml_view& view, task& parsed) {
  parsed.distributions = {distribution::declared, distribution::shifted, distribution::small,
                          distribution::outliers};
  auto names = view.find_strings("distributions");
  if (!names) return;
  parsed.distributions.clear();
  for (const std::string& name : *names) {
    const auto* found = std::find(distribution_names.begin(), distribution_names.end(), name);
    if (found == distribution_names.end())
      view.refuse("distributions",
                  "'" + name + "' is unknown, expected declared, shifted, small or outliers");
    const auto value = static_cast<distribution>(found - distribution_names.begin());
    if (std::find(parsed.distributions.begin(), parsed.distributions.end(), value) !=
        parsed.distributions.end()) {
      view.refuse("distributions", "'" + name + "' is listed twice");
    }
    parsed.distributions.push_back(value);
  }
  if (std::find(parsed.distributions.begin(), parsed.distributions.end(), distribution::declared) ==
      parsed.distributions.end()) {
    view.refuse("distributions", "must contain 'declared'");
  }
}

void check_names_and_sizes(const toml_view& view, const task& parsed) {
  std::set<std::string> names;
  std::set<std::string> sizes;
  const auto use = [&](const tensor_spec& tensor) {
    if (!names.insert(tensor.name).second)
      view.refuse("name", "two tensors are called '" + tensor.name + "'");
    for (const dimension& d : tensor.shape) {
      if (const auto* name = std::get_if<std::string>(&d)) sizes.insert(*name);
    }
    for (const auto* argument : {&tensor.init.a, &tensor.init.b}) {
      if (const auto* name = std::get_if<std::string>(argument)) sizes.insert(*name);
    }
  };
  for (const tensor_spec& tensor : parsed.inputs) use(tensor);
  for (const tensor_spec& tensor : parsed.parameters) use(tensor);
  for (const task_case& at : parsed.cases) {
    for (const std::string& size : sizes) {
      if (!at.sizes.contains(size))
        view.refuse("case", "the size " + size + " has no value in the case " + print_sizes(at));
    }
    for (const auto& [size, value] : at.sizes) {
      if (!sizes.contains(size)) view.refuse("case", "no tensor uses the size " + size);
    }
    const auto check_volume = [&](const tensor_spec& tensor) {
      std::int64_t elements = 1;
      for (const std::int64_t extent : resolve_shape(tensor, at)) {
        if (extent != 0 && elements > max_dimension / extent)
          view.refuse("case",
                      tensor.name + " has too many elements in the case " + print_sizes(at));
        elements *= extent;
      }
    };
    for (const tensor_spec& tensor : parsed.inputs) check_volume(tensor);
    for (const tensor_spec& tensor : parsed.parameters) check_volume(tensor);
  }
}

// Checks for each parameter with a data file that the file holds a tensor of the parameter's name,
// with the declared type, and with the declared shape in every case.
void check_data(const toml_view& view, const task& parsed) {
  for (const tensor_spec& parameter : parsed.parameters) {
    if (parameter.data_file.empty()) continue;
    const auto file = std::find_if(parsed.data_files.begin(), parsed.data_files.end(),
                                   [&](const auto& f) { return f.name() == parameter.data_file; });
    if (file == parsed.data_files.end())
      view.refuse("parameter",
                  parameter.name + ": the data file " + parameter.data_file + " is missing");
    try {
      const auto tensors = parse_safetensors(file->bytes());
      const auto found = std::find_if(tensors.begin(), tensors.end(),
                                      [&](const auto& t) { return t.name == parameter.name; });
      if (found == tensors.end())
        view.refuse("parameter",
                    parameter.name + ": no tensor of that name in " + parameter.data_file);
      if (found->dtype != facts_of(parameter.type).safetensors) {
        view.refuse("parameter", parameter.name + ": " + parameter.data_file + " has it as " +
                                     found->dtype + ", the task as " +
                                     std::string(name_of(parameter.type)));
      }
      for (const task_case& at : parsed.cases) {
        if (resolve_shape(parameter, at) != found->shape)
          view.refuse("parameter", parameter.name + ": its shape in " + parameter.data_file +
                                       " is not the one of the case " + print_sizes(at));
      }
    } catch (const format_error&) {
      throw;
    } catch (const std::runtime_error& e) {
      view.refuse("parameter", parameter.name + ": " + parameter.data_file + ": " + e.what());
    }
  }
}

}  // namespace

std::string_view name_of(dtype type) { return facts_of(type).name; }
std::size_t bytes_of(dtype type) { return facts_of(type).bytes; }
bool is_floating(dtype type) {
  return type != dtype::int32 && type != dtype::int64 && type != dtype::boolean;
}
std::string_view name_of(distribution d) { return distribution_names[static_cast<std::size_t>(d)]; }

std::optional<dtype> dtype_named(std::string_view name) {
  for (const dtype_facts& facts : dtype_table) {
    if (facts.name == name) return facts.type;
  }
  return std::nullopt;
}

tolerance tolerance_for(const task& t, dtype type) {
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

task parse_task(const std::string& text, const std::string& file,
                std::vector<data_file> data_files) {
  const toml::table table = parse_toml(text, file);
  toml_view view(table, file);
  task parsed;
  parsed.text = text;
  parsed.data_files = std::move(data_files);
  parsed.name = view.string("name");
  static const std::regex name_pattern("[a-z0-9_]+");
  if (!std::regex_match(parsed.name, name_pattern))
    view.refuse("name", "'" + parsed.name + "' must match [a-z0-9_]+");
  parsed.summary = view.find_string("summary").value_or("");
  const std::string precision = view.find_string("precision").value_or("strict");
  if (precision != "strict" && precision != "relaxed")
    view.refuse("precision", "is '" + precision + "', expected strict or relaxed");
  parsed.relaxed = precision == "relaxed";
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

std::vector<std::string> data_files_of(const std::string& text, const std::string& file) {
  const toml::table table = parse_toml(text, file);
  toml_view view(table, file);
  std::set<std::string> names;
  for (toml_view& parameter : view.tables("parameter")) {
    if (auto name = parameter.find_string("data")) names.insert(*name);
  }
  return {names.begin(), names.end()};
}

task load_task(const std::filesystem::path& path) {
  const std::string text = read_source_file(path);
  std::vector<data_file> files;
  for (const std::string& name : data_files_of(text, path.string())) {
    if (name.find('/') == std::string::npos)
      files.push_back({name, read_source_file(path.parent_path() / name)});
  }
  return parse_task(text, path.string(), std::move(files));
}

record<schema::Task> to_record(const task& t) {
  record_builder<schema::Task> stored;
  t.id.store(stored->initId());
  stored->setName(t.name);
  stored->setText(t.text);
  auto files = stored->initDataFiles(static_cast<unsigned>(t.data_files.size()));
  for (unsigned i = 0; i < files.size(); ++i) {
    files[i].setName(t.data_files[i].name());
    files[i].setBytes(as_data(t.data_files[i].bytes()));
  }
  return stored.finish();
}

task from_record(schema::Task::Reader stored) {
  std::vector<data_file> files;
  for (auto file : stored.getDataFiles())
    files.push_back({file.getName(), std::string(view(file.getBytes()))});
  return parse_task(stored.getText(), "task " + std::string(view(stored.getName())),
                    std::move(files));
}

}  // namespace hone
