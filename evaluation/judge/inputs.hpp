#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/random_values.hpp"

namespace hone {

// What is shared with drawing on a GPU.
std::vector<tensor_layout> layouts_of(const std::vector<tensor_spec>& tensors, const task_case& at);
dtype raw_type(const tensor_spec& spec);  // what numbers are drawn in before an `expr`
double argument_of(const std::variant<double, std::string>& value, const task_case& at);
tensor_value load_parameter(const task& t, const tensor_spec& spec,
                            const task_case& at);  // from its data file; throws reference_error
inline constexpr std::size_t twisted_elements = 3;
bool takes_distributions(const tensor_spec& spec);  // evaluation.md section 2, point 2

// Draws what a task's case is called with: numbers here, expressions by the oracle. Contents belong
// to a seed, the same every time. With a `twist` other than 0 they differ from the seed's own in a
// few elements of every tensor, which a cache that compares samples does not notice.
class input_recipe {
 public:
  input_recipe(reference_oracle& oracle, const task_case& at) : oracle_(&oracle), case_(&at) {}

  std::vector<tensor_layout> input_layouts() const;
  std::vector<tensor_layout> parameter_layouts() const;

  value_set draw_inputs(distribution how, std::uint64_t seed, std::uint64_t twist = 0);
  // As declared, but for a single outlier in every tensor that may have any; mirrored, it has the
  // other sign.
  value_set draw_inputs_with_an_outlier(std::uint64_t seed, bool mirrored);
  value_set draw_parameters(std::uint64_t seed);

 private:
  friend class reservoir;
  value_set draw(const std::vector<tensor_spec>& tensors, std::size_t first, distribution how,
                 std::uint64_t seed, std::uint64_t twist);

  reference_oracle* oracle_;
  const task_case* case_;
};

// As-declared contents by the thousand, at the price of a copy: numbers are drawn once, and each
// set of contents is put together from short stretches of them, each from a place drawn anew. So no
// two calls have an element in common but by chance, and nothing that was computed for one helps
// with another (doc/decisions/009). What a program could learn of the numbers themselves ends when
// they are renewed. Tensors of few elements and permutations are drawn, constants and data files
// stay as they are, and an `expr` is applied last. One thread.
class reservoir {
 public:
  enum class of { inputs, parameters };
  reservoir(const input_recipe& recipe, of which, random_stream& random);
  // Other numbers from here on; what has been put together before cannot be again.
  void renew(random_stream& random);

  // The contents that belong to a seed and a twist, of every tensor in a place of its own:
  // row-major, as the task's layouts say.
  void fill(std::span<const std::span<std::byte>> into, std::uint64_t seed,
            std::uint64_t twist = 0) const;
  // The same as values; `into` keeps its memory from call to call.
  void fill(value_set& into, std::uint64_t seed, std::uint64_t twist = 0) const;
  // Of another distribution, and of the same numbers otherwise: a program that knows the
  // reservoir's numbers cannot tell.
  value_set draw(distribution how, std::uint64_t seed) const;

 private:
  const std::vector<tensor_spec>& specs() const;

  input_recipe recipe_;
  of which_;
  value_set sources_;  // by tensor: numbers to put together, or what never changes, or nothing
                       // where contents are drawn
};

}  // namespace hone
