#pragma once

#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "storage/exemplar_index.hpp"

namespace hone {

enum class exemplar_method { buckets, islands, random, none };
std::string_view name_of(exemplar_method method);
std::optional<exemplar_method> exemplar_method_named(std::string_view name);

struct exemplar_options {
  exemplar_method method = exemplar_method::buckets;
  std::uint32_t count = 2;
  double temperature = 1.0;  // of the softmax over buckets' mean scores
  std::uint32_t islands = 4;
  std::uint32_t reset_after = 200;  // variants accepted for a task and device type between resets
};

// Chooses what a prompt shows.
//   buckets  CUDA-L1's: distinct score buckets by softmax of their mean score over the temperature,
//   then uniform inside islands  FunSearch's: the same on one of several populations that evolve
//   apart; now and then the weaker half is emptied
//            and starts again from a stronger one's best
//   random   distinct variants, all equally likely
//   none     nothing
// Only variants that are ok on the device type are in the index, so nothing else is ever shown.
class exemplar_selector {
 public:
  exemplar_selector(exemplar_index& index, const exemplar_options& options)
      : index_(&index), options_(options) {}

  struct choice {
    std::vector<scored_variant> exemplars;  // by rising score
    std::uint32_t population = 0;           // that what comes of it joins; 0: no island
  };
  choice choose(const task_id& task, const std::string& device_type, std::mt19937_64& random);

  // A variant is ok: into the population of all, and into that of the island that it was drawn for.
  void accept(const task_id& task, const std::string& device_type, std::uint32_t population,
              const variant_id& variant, double score, std::mt19937_64& random);

  // A variant is not ok after all.
  void withdraw(const task_id& task, const std::string& device_type, const variant_id& variant);

 private:
  std::vector<scored_variant> from_buckets(const population_key& where, std::mt19937_64& random);
  std::vector<scored_variant> uniformly(const population_key& where, std::mt19937_64& random);
  void reset_islands(const task_id& task, const std::string& device_type, std::mt19937_64& random);

  exemplar_index* index_;
  exemplar_options options_;
};

}  // namespace hone
