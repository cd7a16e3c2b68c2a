#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "messages/schema/task.capnp.h"
#include "tasks/format_error.hpp"

namespace hone {

enum class dtype { float32, float16, bfloat16, float64, int32, int64, boolean };

std::string_view name_of(dtype type);  // "float32", ..., "bool"
std::optional<dtype> dtype_named(std::string_view name);
std::size_t bytes_of(dtype type);
bool is_floating(dtype type);

// A number, or the name of a size that every case defines.
using dimension = std::variant<std::int64_t, std::string>;

// How values are drawn: in float32 (integers and permutations in int64), passed through `expr`,
// cast to the dtype last.
struct initializer {
  enum class kind {
    normal,       // mean a, standard deviation b
    uniform,      // [a, b)
    integers,     // a, ..., b - 1; either may be a size's name
    constant,     // a
    permutation,  // of 0, ..., n - 1 along the last dimension, drawn anew for every row
    coin,         // a fair one: what a bool without `init` is
  };
  kind of = kind::normal;
  std::variant<double, std::string> a = 0.0;
  std::variant<double, std::string> b = 1.0;
  std::string expr;  // TorchScript over x; empty: none
  bool operator==(const initializer&) const = default;
};

struct tensor_spec {
  std::string name;
  std::vector<dimension> shape;
  dtype type = dtype::float32;
  initializer init;
  std::string data_file;  // parameters only: a safetensors file beside the task; empty: drawn
  bool operator==(const tensor_spec&) const = default;
};

struct task_case {
  std::map<std::string, std::int64_t> sizes;
  bool timed = false;
  std::vector<std::string> on;  // kinds of device; empty: all
  bool operator==(const task_case&) const = default;
};

// |a - b| <= atol * max(rms(b), tiny) + rtol * |b|, and relative L2 error within rtol.
struct tolerance {
  double rtol = 0;
  double atol = 0;
  bool operator==(const tolerance&) const = default;
};

enum class distribution { declared, shifted, small, outliers };
std::string_view name_of(distribution d);

// Copies of a task share what its files hold.
class data_file {
 public:
  data_file(std::string name, std::string bytes)
      : name_(std::move(name)), bytes_(std::make_shared<const std::string>(std::move(bytes))) {}
  const std::string& name() const { return name_; }
  const std::string& bytes() const { return *bytes_; }
  bool operator==(const data_file& other) const {
    return name_ == other.name_ && *bytes_ == *other.bytes_;
  }

 private:
  std::string name_;
  std::shared_ptr<const std::string> bytes_;
};

// A task file, parsed. `text` is the file unchanged; `id` is of the text and the data files.
struct task {
  task_id id;
  std::string text;
  std::string name;
  std::string summary;
  bool relaxed = false;  // precision = "relaxed": TF32 is admitted
  std::vector<distribution> distributions;
  std::string reference;                  // TorchScript source of forward
  std::map<dtype, tolerance> tolerances;  // what the file sets; tolerance_for() has the defaults
  std::vector<tensor_spec> inputs;
  std::vector<tensor_spec> parameters;
  std::vector<task_case> cases;
  std::string
      source_language;  // [source]: what people and prompts are shown instead of the reference
  std::string source_text;
  std::vector<data_file> data_files;
};

// The tolerance for outputs of this type: the task's own, else evaluation.md's defaults.
tolerance tolerance_for(const task& t, dtype type);

// Concrete sizes of a tensor in a case; every name is known once a task has been parsed.
std::vector<std::int64_t> resolve_shape(const tensor_spec& tensor, const task_case& at);
std::int64_t element_count(const std::vector<std::int64_t>& shape);
// "N=512 M=512"
std::string print_sizes(const task_case& at);
// Whether the case runs on this kind of device ("cpu", "cuda", "simulated").
bool runs_on(const task_case& at, std::string_view device_kind);

// Parses the text of a task file; `file` is for messages. Data files are given as (name, bytes).
// Throws format_error.
task parse_task(const std::string& text, const std::string& file,
                std::vector<data_file> data_files = {});

// Reads a task file and the data files that it names, which are looked up beside it. Throws
// format_error.
task load_task(const std::filesystem::path& path);

// Names of the data files that a task's text refers to, before it is parsed in full.
std::vector<std::string> data_files_of(const std::string& text, const std::string& file);

// The file's text for a task made by a program; parse_task gives the same task back (but for `text`
// and `id`).
std::string print_task(const task& t);

record<schema::Task> to_record(const task& t);
task from_record(schema::Task::Reader stored);

}  // namespace hone
