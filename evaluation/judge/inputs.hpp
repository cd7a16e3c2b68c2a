#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/random_values.hpp"

namespace hone {

// The following functions are shared with drawing on a GPU (backends/cuda/gpu_task.cpp).
std::vector<tensor_layout> layouts_of(const std::vector<tensor_spec>& tensors, const task_case& at);
// Returns the type that a tensor's numbers are drawn in, before its `expr`.
dtype raw_type(const tensor_spec& spec);
// Returns the value of an initializer's argument, which may name a size.
double argument_of(const std::variant<double, std::string>& value, const task_case& at);
// Returns the contents of a parameter in its data file, a view that lives as long as the task or a
// copy of it. Throws reference_error.
std::span<const std::byte> data_of(const task& t, const tensor_spec& spec);
// Elements of every tensor that a perturbation replaces.
inline constexpr std::size_t perturbed_elements = 3;
// Draws the parameters that a Python module can have: those that the constructor of the task's own
// module makes of a seed.
class parameter_source {
 public:
  virtual ~parameter_source() = default;
  // Throws reference_error.
  virtual value_set draw(std::uint64_t seed) = 0;
};
// Instances of a Python module that verify a case: the first calls of each may be slow.
inline constexpr int instances_of_a_case = 2;

// Draws the inputs and parameters of a case. Numbers are drawn in this process, and the oracle
// evaluates `expr` programs. Equal seeds give equal contents. A `perturbation` other than 0
// replaces a few elements of every tensor, which a cache that compares samples of the contents does
// not notice. Functions throw reference_error. Everything passed by reference must outlive the
// recipe.
class input_recipe {
 public:
  // `constructor`: draws the parameters instead of the task's initializers; null: none.
  input_recipe(reference_oracle& oracle, const task_case& at,
               parameter_source* constructor = nullptr)
      : oracle_(&oracle), case_(&at), constructor_(constructor) {}

  std::vector<tensor_layout> input_layouts() const;
  std::vector<tensor_layout> parameter_layouts() const;

  value_set draw_inputs(distribution how, std::uint64_t seed, std::uint64_t perturbation = 0);
  value_set draw_parameters(distribution how, std::uint64_t seed);

 private:
  friend class reservoir;
  value_set draw(const std::vector<tensor_spec>& tensors, std::size_t first, distribution how,
                 std::uint64_t seed, std::uint64_t perturbation);

  reference_oracle* oracle_;
  const task_case* case_;
  parameter_source* constructor_;
};

// The contents of a tensor set for one call. A `perturbation` other than 0 replaces a few elements.
struct drawn_contents {
  std::uint64_t seed = 0;
  std::uint64_t perturbation = 0;
  distribution how = distribution::declared;
  bool operator==(const drawn_contents&) const = default;
};

// The contents of the calls of a round.
struct drawn_round {
  std::uint64_t seed = 0;
  std::vector<distribution> of_calls = {distribution::declared};  // they take turns

  // Returns true if its time is part of the score: calls may take another time with other contents.
  bool counts() const { return of_calls.front() == distribution::declared; }
  distribution of_call(std::size_t n) const { return of_calls[n % of_calls.size()]; }
};

// Draws contents for thousands of calls, those as `declared` at the price of a copy each. Numbers
// are drawn once, and contents are assembled from short pieces of them: sums of two, each from a
// random place. Two calls have no element in common except by chance, so no result of one call
// helps with another. What a program learns about the numbers is worthless once
// they are renewed. Tensors of few elements and permutations are drawn directly, constants and data
// files stay as they are, and an `expr` is applied last. Functions throw reference_error. Confined
// to one thread.
class reservoir {
 public:
  enum class of { inputs, parameters };
  reservoir(const input_recipe& recipe, of which, random_stream& random);
  // Draws new numbers. Contents that were assembled before cannot be assembled again.
  void renew(random_stream& random);

  // Assembles contents into one place per tensor, row-major, in the task's types. Those of all
  // distributions come from the same numbers.
  void fill(std::span<const std::span<std::byte>> into, const drawn_contents& drawn) const;
  // Assembles the same contents as values; `into` keeps its memory from call to call.
  void fill(value_set& into, const drawn_contents& drawn) const;

 private:
  const std::vector<tensor_spec>& specs() const;
  tensor_value raw_contents(std::size_t i, random_stream& random) const;

  input_recipe recipe_;
  of which_;
  // By tensor: numbers to assemble contents from, or fixed contents, or empty if contents are drawn
  // directly.
  value_set sources_;
};

}  // namespace hone
