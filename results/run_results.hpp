#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/ids.hpp"
#include "messages/names.hpp"
#include "messages/record.hpp"
#include "messages/schema/pipeline.capnp.h"
#include "messages/schema/variant.capnp.h"
#include "results/compact_groups.hpp"
#include "results/comparison.hpp"
#include "results/scored_sums.hpp"
#include "storage/inspection.hpp"

namespace hone {

inline constexpr std::size_t curve_points = 10;

// Results for a task on a device type. Unparsable documents are not counted.
struct task_row {
  std::uint64_t tried = 0;          // variants that were judged
  std::uint64_t ok = 0;             // and found ok
  record<schema::Evaluation> best;  // absent without an ok variant
  bool in_corpus = false;           // whether a corpus document holds the best variant
  bool is_reference = false;        // whether the best variant is the reference itself
};

// Where the program of a sample comes from, the first that applies: there is none; an exemplar that
// its prompt shows; a document of the corpus; the task's reference; an earlier group of the run.
// Otherwise it is new.
enum class sample_source { none, shown, corpus, reference, known, fresh };
inline constexpr std::size_t sample_sources = 6;
std::string_view name_of(sample_source source);

// Samples that are ok, compared with the fastest exemplar that their prompts showed.
struct beside_shown {
  double samples = 0;   // ok samples whose prompts showed exemplars
  double faster = 0;    // those that are faster by 5 % or more
  double log_gain = 0;  // sum of log(speed-up / that of the exemplar)
};

// Samples whose prompts asked for a better variant than an attempt of the policy.
struct revision_sums {
  double samples = 0;
  double ok = 0;
  double better = 0;  // ok, and the attempt had failed or was slower by 5 % or more
};

// The samples that one version of the policy wrote.
struct version_row {
  scored_sums all;
  std::map<std::string, double> outcomes;  // numbers of samples
};

// A reason for which evaluations failed.
struct failure_row {
  std::uint64_t evaluations = 0;
  variant_id example;
};

// The samples of a stage.
struct stage_row {
  scored_sums all;
  scored_sums last;                             // over the last quarter of the groups
  std::array<scored_sums, curve_points> curve;  // over equal parts of the groups, in order of time
  std::map<std::string, double> outcomes;       // numbers of samples
  std::map<std::uint64_t, version_row> by_version;
  std::uint64_t unknown = 0;                          // samples without an evaluation
  std::array<sample_sums, sample_sources> by_source;  // by sample_source
  beside_shown gain;
  std::map<std::uint32_t, revision_sums> revisions;  // by turn, from 1
};

// Samples of a comparison by policy version and name_of() the place.
using compared_samples =
    std::map<std::uint64_t, std::map<std::string, std::vector<compared_sample>>>;

// The results of a run, from its pool: each number is computed once, for all that show it. Only
// evaluations of the newest judge version count, because scores of different versions are not
// comparable.
struct run_results {
  std::map<task_id, std::string> names;
  std::map<std::string, std::size_t> tasks_of_name;
  std::map<task_id, std::string> fixed;  // the tensors that never change, of tasks that have such
  std::map<place, task_row> tasks;
  std::map<std::string, stage_row> stages;  // "corpus", and the stages of the curriculum by name
  std::set<std::string> device_types;
  // Evaluations of the run that failed, by outcome and message_class() of their message.
  std::map<std::pair<Outcome, std::string>, failure_row> failures;
  // Variants of the corpus that are not ok on a type of device, with one such outcome each.
  std::map<variant_id, Outcome> unlearned;
  std::uint64_t samples = 0;  // rollouts, the corpus included
  // Of groups that were dropped before they were judged, such as those that were left when the
  // comparison began: no stage counts them.
  std::uint64_t given_up_samples = 0;
  std::uint64_t left_out_samples = 0;    // of an interrupted comparison: no stage counts them
  std::uint64_t validation_samples = 0;  // of validations: no stage counts them either
  // Each variant is in one of the next three.
  std::uint64_t evaluated_variants = 0;
  std::uint64_t compared_variants = 0;  // with evaluations of a comparison only
  std::uint64_t waiting_variants = 0;   // without an evaluation so far
  // Evaluations of the run: one for each evaluated variant and device type. Each is in one of the
  // next three.
  std::uint64_t judged = 0;
  std::uint64_t unparsable = 0;
  std::uint64_t infrastructure = 0;
  std::uint64_t timed = 0;         // among the judged, those with at least one measurement
  std::uint64_t new_programs = 0;  // among the judged, those of neither the corpus nor a reference
  std::uint64_t measurements = 0;  // repeats, and those of the comparison, included
  // The comparison's conclusive samples, by how they were written: of the tasks that the run learns
  // from, and of the held-out tasks.
  std::map<schema::Draw::Arm, compared_samples> compared;
  std::map<schema::Draw::Arm, compared_samples> held_out;
  std::map<std::string, std::uint32_t> tiers;  // of the held-out tasks that have one, by name_of()
  std::uint64_t inconclusive_compared = 0;     // samples of the comparison that are left out
  // Names of the versions in `held_out`: "before sft", "in sft, step 4".
  std::map<std::uint64_t, std::string> version_names;
  // The version with which the contrastive stage began; nullopt if there was no such stage.
  std::optional<std::uint64_t> before_contrastive;
  // Tokens that the policy had trained on, prompts included, by version.
  std::map<std::uint64_t, double> trained_tokens;
  // The numbers of the validations (policy/training/validation.hpp), by the version whose step
  // reports them.
  std::map<std::uint64_t, std::map<std::string, double>> validations;
  // Groups that were dropped because their samples were too old to train on, by device type.
  std::map<std::string, std::uint64_t> dropped_groups;
  // Steps of the contrastive stage, those that were planned (0: unknown), and the finished ones in
  // which no group had a signal.
  std::uint64_t contrastive_steps = 0;
  std::uint64_t planned_contrastive_steps = 0;
  bool is_contrastive_over = false;  // a later stage has begun
  std::uint64_t steps_without_signal = 0;
  double skipped_updates = 0;  // updates of the policy whose gradient was not finite

  // Returns the task's name, with digits of its id if the pool has several tasks of this name (a
  // task that was edited before a resumption), and with the device type if there are several types.
  std::string name_of(const place& where) const;
};

// True if the run ended with its newest version.
bool is_complete(const pool_inspector& pool);

// Reads the results from a pool, which may be open for writing elsewhere. `groups` are those of the
// pool. Throws pool_error.
run_results read_results(const pool_inspector& pool, const compact_groups& groups);
run_results read_results(const pool_inspector& pool);
run_results read_results(const std::filesystem::path& pool);

}  // namespace hone
