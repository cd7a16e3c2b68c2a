#include "tasks/task_checks.hpp"

#include <algorithm>
#include <set>

#include "tasks/reading_toml.hpp"
#include "tasks/safetensors.hpp"
#include "tasks/task_sections.hpp"

namespace hone {

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

void check_data(const toml_view& view, const task& parsed) {
  for (const tensor_spec& parameter : parsed.parameters) {
    if (parameter.data_file.empty()) continue;
    const auto file = std::find_if(parsed.data_files.begin(), parsed.data_files.end(),
                                   [&](const auto& f) { return f.name() == parameter.data_file; });
    if (file == parsed.data_files.end())
      view.refuse("parameter",
                  parameter.name + ": the data file " + parameter.data_file + " is missing");
    try {
      const safetensor* found = file->find(parameter.name);
      if (found == nullptr)
        view.refuse("parameter",
                    parameter.name + ": no tensor of that name in " + parameter.data_file);
      if (found->dtype != safetensors_name_of(parameter.type)) {
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

}  // namespace hone
