#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "storage/exemplar_index.hpp"

namespace hone {

enum class exemplar_method { buckets, islands, random, none };
// Returns the method's name in the configuration.
std::string_view name_of(exemplar_method method);
// Returns nullopt for an unknown name.
std::optional<exemplar_method> exemplar_method_named(std::string_view name);

struct exemplar_options {
  exemplar_method method = exemplar_method::buckets;
  std::uint32_t count = 2;
  bool shuffles_scores = false;  // an ablation: each exemplar has the score of another one
  double temperature = 1.0;      // of the softmax over the logarithms of the buckets' mean scores
  std::uint32_t islands = 4;
  // Calls of accept() for a task and device type between two resets of the weaker islands.
  std::uint32_t reset_after = 200;
};

// Chooses the exemplars of a prompt.
//   buckets  Draws distinct score buckets by softmax of the logarithm of their mean score over the
//            temperature, then one variant uniformly inside each bucket (CUDA-L1, which takes the
//            scores themselves: at 30x, the best two buckets would be drawn always, and at 1.1x all
//            alike).
//   islands  Draws in the same way, but from one of several populations that evolve apart. At a
//            reset the weaker half of the islands is emptied, and each of them restarts from the
//            best variant of a stronger island (FunSearch).
//   random   Draws distinct variants, all equally likely.
//   none     Draws nothing.
// Only variants that are ok on the device type are in the index, so no other variant is ever shown.
// `index` must outlive the selector. Not thread-safe. Throws pool_error.
class exemplar_selector {
 public:
  exemplar_selector(exemplar_index& index, const exemplar_options& options)
      : index_(&index), options_(options) {}

  struct choice {
    std::vector<scored_variant> exemplars;  // by ascending score, at most `count`
    std::uint32_t population = 0;  // population that the draw's variants join; 0: no island
  };
  choice choose(const task_id& task, const std::string& device_type, std::mt19937_64& random);
  // The same for a comparison of policies, of which none may be shown what another has found: draws
  // from the variants of the corpus and those that were known before the contrastive stage.
  choice choose_to_compare(const task_id& task, const std::string& device_type,
                           std::mt19937_64& random);

  // Adds a variant that is ok to the population of all variants, or updates its score there. The
  // method `islands` does the same in `population`, which the variant was drawn for: 0 leaves the
  // choice of the island to the variant's id, and a population that has been reset is skipped.
  void accept(const task_id& task, const std::string& device_type, std::uint32_t population,
              const variant_id& variant, double score, std::mt19937_64& random);

  // Adds a variant that is ok to those that comparisons show, if the contrastive stage has not
  // begun, or else updates its score there.
  void accept_to_compare(const task_id& task, const std::string& device_type,
                         const variant_id& variant, double score, bool has_contrastive_begun);

  // Removes a variant that has turned out not to be ok from every population. Returns false if it
  // is in none.
  bool withdraw(const task_id& task, const std::string& device_type, const variant_id& variant);

 private:
  // Number of the population that comparisons show; islands have small numbers.
  static constexpr std::uint32_t compared = std::numeric_limits<std::uint32_t>::max();

  choice choose_in(const population_key& where, std::mt19937_64& random);
  std::vector<scored_variant> from_buckets(const population_key& where, std::mt19937_64& random);
  std::vector<scored_variant> uniformly(const population_key& where, std::mt19937_64& random);
  // Sorts exemplars by ascending score, after shuffling the scores if the options say so.
  void arrange(std::vector<scored_variant>& chosen, std::mt19937_64& random) const;
  void reset_islands(const task_id& task, const std::string& device_type, std::mt19937_64& random);

  exemplar_index* index_;
  exemplar_options options_;
};

}  // namespace hone
