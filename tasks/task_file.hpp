#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "messages/schema/task.capnp.h"
#include "tasks/data_file.hpp"
#include "tasks/dtype.hpp"
#include "tasks/format_error.hpp"

namespace hone {

// A dimension of a tensor: a number, or the name of a size that every case defines.
using dimension = std::variant<std::int64_t, std::string>;

// The way in which the values of a tensor are drawn. They are drawn in float32 (integers and
// permutations in int64), passed through `expr`, and cast to the dtype last.
struct initializer {
  enum class kind {
    normal,       // mean a, standard deviation b
    uniform,      // [a, b)
    integers,     // a, ..., b - 1; either may be a size's name
    constant,     // a
    permutation,  // of 0, ..., n - 1 along the last dimension, drawn anew for every row
    coin,         // true or false, equally likely: the default of bools
  };
  kind of = kind::normal;
  std::variant<double, std::string> a = 0.0;
  std::variant<double, std::string> b = 1.0;
  std::string expr;  // TorchScript expression of the drawn values, `x`; empty: none
  bool operator==(const initializer&) const = default;
};

// An input or a parameter of a task.
struct tensor_spec {
  std::string name;
  std::vector<dimension> shape;
  dtype type = dtype::float32;
  initializer init;
  // Parameters only: the safetensors file beside the task that holds the values; empty: the values
  // are drawn.
  std::string data_file;
  bool operator==(const tensor_spec&) const = default;
};

// One set of tensor sizes on which variants are verified and, if it is timed, scored.
struct task_case {
  std::map<std::string, std::int64_t> sizes;
  bool timed = false;
  std::vector<std::string> on;  // kinds of device that it runs on; empty: all
  bool operator==(const task_case&) const = default;
};

// Bounds on the error of an output `a` where `b` is expected (doc/evaluation.md, section 2):
//   |a - b| <= atol * max(rms(b), tiny) + rtol * |b| for every element, and
//   relative L2 error <= rtol.
struct tolerance {
  double rtol = 0;
  double atol = 0;
  bool operator==(const tolerance&) const = default;
};

// Ways to draw the values of an input (doc/evaluation.md, section 2). A task lists some of the
// first four. The next two go with `outliers`: `declared` with a single outlier of either sign,
// which no sample of the values finds. The last one goes with precision = "relaxed".
enum class distribution { declared, shifted, small, outliers, one_high, one_low, large };
std::string_view name_of(distribution d);

// A parsed task file.
struct task {
  task_id id;        // hash of the text and of the data files' names and bytes
  std::string text;  // the file, unchanged
  std::string name;
  std::string summary;
  bool relaxed = false;  // precision = "relaxed": TF32 is admitted
  std::vector<distribution> distributions;
  std::string reference;                  // TorchScript source of `forward`
  std::map<dtype, tolerance> tolerances;  // set by the file; tolerance_for() adds the defaults
  std::vector<tensor_spec> inputs;
  std::vector<tensor_spec> parameters;
  std::vector<task_case> cases;
  // Table [source]: source text that people and prompts are shown instead of the reference, and its
  // language. Empty: there is none.
  std::string source_language;
  std::string source_text;
  std::vector<data_file> data_files;
};

// Returns the tolerance for outputs of this type: the task's own, or else the default of
// doc/evaluation.md, section 2.
tolerance tolerance_for(const task& t, dtype type);

// Returns the sizes of a tensor's dimensions in a case. Throws std::out_of_range if the case does
// not define a size that the tensor uses, which cannot happen once a task has been parsed.
std::vector<std::int64_t> resolve_shape(const tensor_spec& tensor, const task_case& at);
std::int64_t element_count(const std::vector<std::int64_t>& shape);
// Prints the sizes by name: "M=512 N=512".
std::string print_sizes(const task_case& at);
// Returns true if the case runs on this kind of device ("cpu", "cuda", "simulated").
bool runs_on(const task_case& at, std::string_view device_kind);

// Parses the text of a task file, given the data files that it names. `file` is the name of the
// task file in messages. Throws format_error.
task parse_task(const std::string& text, const std::string& file,
                std::vector<data_file> data_files = {});

// Reads and parses a task file and the data files that it names, which lie in the same folder.
// Throws format_error.
task load_task(const std::filesystem::path& path);

// Prints the text of a task file for a task that a program has made. parse_task() returns the same
// task for this text, except for `text` and `id`.
std::string print_task(const task& t);

// Convert a task to the record that the pool stores, and back. `is_held_out`: the run only
// evaluates the task. from_record() parses the text again and throws format_error.
record<schema::Task> to_record(const task& t, bool is_held_out = false);
task from_record(schema::Task::Reader stored);
// Convert between a task and its record without the bytes of its data files, which may be larger
// than a record may be. `files` are the data files, whose names the record has. with_data() also
// throws format_error if the task is another one then.
record<schema::Task> to_record_without_data(const task& t);
task with_data(schema::Task::Reader stored, std::vector<data_file> files);

}  // namespace hone
