#pragma once

#include <array>
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
  // Parameters only: the safetensors file next to the task that holds the values; empty: the values
  // are drawn.
  std::string data_file;
  // The contents are a part of the program: every check has them as declared.
  bool is_fixed = false;
  bool operator==(const tensor_spec&) const = default;
};

// One set of tensor sizes on which variants are verified and, if it is timed, scored.
struct task_case {
  std::map<std::string, std::int64_t> sizes;
  bool timed = false;
  std::vector<std::string> on;  // kinds of device that it runs on; empty: all
  bool operator==(const task_case&) const = default;
};

// Errors of an output that a task allows in addition to rounding (doc/evaluation.md, section 2): of
// an element b, atol * rms of the output + rtol * |b|.
struct tolerance {
  double rtol = 0;
  double atol = 0;
  bool operator==(const tolerance&) const = default;
};

// Ways to draw the values of inputs and parameters (doc/evaluation.md, section 2). A task may list
// those that apply; one_high and one_low go with `outliers`: `declared` with a single outlier of
// either sign, which no sample of the values finds. `large` goes with precision = "relaxed".
enum class distribution {
  declared,
  shifted,
  small,
  outliers,
  one_high,
  one_low,
  large,
  mixed,
  sparse,
  weights
};
std::string_view name_of(distribution d);
// Those that a task file may list.
inline constexpr std::array<distribution, 7> listed_distributions = {
    distribution::declared, distribution::shifted, distribution::small,  distribution::outliers,
    distribution::mixed,    distribution::sparse,  distribution::weights};
// Returns true if most elements of tensors that the distribution changes may be zero.
inline bool has_many_zeros(distribution d) {
  return d == distribution::sparse || d == distribution::weights;
}

// Returns true if elements of tensors that the distribution changes may be a hundred times smaller
// than as declared.
inline bool has_small_values(distribution d) {
  return d == distribution::small || d == distribution::mixed || has_many_zeros(d);
}

// A parsed task file.
struct task {
  task_id id;        // hash of the text and of the data files' names and bytes
  std::string text;  // the file, unchanged
  std::string name;
  std::string summary;
  bool relaxed = false;  // precision = "relaxed": TF32 is admitted
  // False: the outputs are rounding errors or do not depend on the inputs. A verdict then says
  // nothing, so such tasks take no part in runs and in averages.
  bool has_result = true;
  std::uint32_t tier = 0;  // how hard the task is; reports group tasks by it. 0: not given
  std::vector<distribution> distributions;
  std::string reference;                  // TorchScript source of `forward`
  std::map<dtype, tolerance> tolerances;  // set by the file
  std::vector<tensor_spec> inputs;
  std::vector<tensor_spec> parameters;
  std::vector<task_case> cases;
  // Table [source]: source text that people and prompts are shown instead of the reference, and its
  // language. Empty: there is none.
  std::string source_language;
  std::string source_text;
  std::vector<data_file> data_files;
};

// Returns the tolerance that the task sets for outputs of this type, or none.
tolerance declared_tolerance(const task& t, dtype type);
// Returns a tolerance for comparisons outside of the judge, in exported files: the task's, or else
// one that correct programs of this type keep.
tolerance export_tolerance(const task& t, dtype type);

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
// Prints how a tensor is drawn: "constant(1)", "normal(0,1), x * 2", or the name of its data file.
std::string print_contents(const tensor_spec& tensor);
// Names the tensors that the task declares `fixed`: "scale, offset". Empty if there are none.
std::string fixed_tensors(const task& t);

// Why a run has a task.
enum class task_role {
  learned,   // variants are drawn for it, and learned from
  held_out,  // it only shows what the policy has learned
  sample,    // of the stream of synthesised tasks: its documents are judged, nothing else
  late,      // handed in by a client of `hone serve`: nodes get it with its jobs
};

// Convert a task to the record that the pool stores, and back. from_record() parses the text again
// and throws format_error.
record<schema::Task> to_record(const task& t, task_role role = task_role::learned);
task from_record(schema::Task::Reader stored);
// Convert between a task and its record without the bytes of its data files, which may be larger
// than a record may be. `files` are the data files, whose names the record has. with_data() also
// throws format_error if the task is another one then.
record<schema::Task> to_record_without_data(const task& t);
task with_data(schema::Task::Reader stored, std::vector<data_file> files);

}  // namespace hone
