#include "tasks/task_sections.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "tasks/reading_toml.hpp"

namespace hone {
namespace {

bool is_identifier(std::string_view text) {
  static const RE2 pattern("[A-Za-z_][A-Za-z0-9_]*", RE2::Latin1);
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern);
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
  static const RE2 pattern(R"(\s*([a-z]+)\s*(?:\(\s*([^,()\s]+)\s*(?:,\s*([^,()\s]+)\s*)?\))?\s*)",
                           RE2::Latin1);
  constexpr const char* expected =
      "expected normal, normal(mean,std), uniform, uniform(lo,hi), integers(lo,hi), constant(v) or "
      "permutation";
  std::string name;
  std::string first;
  std::string second;
  if (!RE2::FullMatch(text, pattern, &name, &first, &second))
    view.refuse(key, "'" + text + "' is no initializer, " + expected);
  const int arguments = !second.empty() ? 2 : !first.empty() ? 1 : 0;
  initializer init;
  if (arguments > 0) init.a = parse_argument(first, view, key);
  if (arguments > 1) init.b = parse_argument(second, view, key);
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
    for (const auto& bound : {init.a, init.b}) {
      const auto* number = std::get_if<double>(&bound);
      if (number != nullptr && std::trunc(*number) != *number)
        view.refuse(key, "'" + text + "' has a bound that is no integer");
    }
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
  const toml::node& node = view.need("shape");
  const toml::array* array = node.as_array();
  if (array == nullptr)
    view.refuse("shape",
                "is " + describe(node) + ", expected an array of numbers and names of sizes");
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

}  // namespace

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
      view.refuse("data", "cannot be combined with `init`: a parameter has one of the two");
    if (tensor.data_file.find('/') != std::string::npos)
      view.refuse("data", "must be a file next to the task, without a folder");
  }
  tensor.is_fixed = view.find_bool("fixed").value_or(false);
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
  for (const dtype type : all_dtypes) {
    auto entry = table->find_table(name_of(type));
    if (!entry) continue;
    const tolerance t{entry->number("rtol"), entry->number("atol")};
    if (!(t.rtol >= 0) || !(t.atol >= 0))
      table->refuse(name_of(type), "tolerances must not be negative");
    parsed.tolerances[type] = t;
    entry->finish();
  }
  table->finish();
}

void parse_distributions(toml_view& view, task& parsed) {
  const auto& all = listed_distributions;
  parsed.distributions.assign(all.begin(), all.end());
  auto names = view.find_strings("distributions");
  if (!names) return;
  parsed.distributions.clear();
  for (const std::string& name : *names) {
    const auto* found =
        std::find_if(all.begin(), all.end(), [&](distribution d) { return name_of(d) == name; });
    if (found == all.end())
      view.refuse("distributions",
                  "'" + name +
                      "' is unknown, expected declared, shifted, small, outliers, mixed, sparse or "
                      "weights");
    const distribution value = *found;
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

}  // namespace hone
