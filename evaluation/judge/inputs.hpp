#pragma once

#include <cstdint>
#include <vector>

#include "evaluation/devices/program_session.hpp"
#include "evaluation/judge/oracle.hpp"
#include "evaluation/judge/random_values.hpp"

namespace hone {

// One call's arguments on the host, with the numbers behind those that an `expr` shapes.
struct drawn_values {
  value_set values;
  value_set raw;  // same indices; empty tensors where the values are as drawn
};

// Draws what a task's case is called with. Raw numbers come from `random` here, expressions are applied by the oracle.
class input_recipe {
 public:
  input_recipe(reference_oracle& oracle, const task_case& at) : oracle_(&oracle), case_(&at) {}

  std::vector<tensor_layout> input_layouts() const;
  std::vector<tensor_layout> parameter_layouts() const;

  drawn_values draw_inputs(distribution how, random_stream& random);
  drawn_values draw_parameters(random_stream& random);

  // Redraws a few random elements of every input, so that no contents are ever seen twice; what changed is written into
  // `session`'s set as well.
  void refresh_inputs(drawn_values& drawn, random_stream& random, program_session& session, std::size_t set);
  // The same for parameters; the caller writes them.
  void refresh_parameters(drawn_values& drawn, random_stream& random);

 private:
  drawn_values draw(const std::vector<tensor_spec>& tensors, std::size_t first, distribution how, random_stream& random);
  struct change {
    std::size_t tensor;
    std::size_t offset;
    std::size_t bytes;
  };
  std::vector<change> refresh(const std::vector<tensor_spec>& tensors, std::size_t first, drawn_values& drawn, random_stream& random);

  reference_oracle* oracle_;
  const task_case* case_;
};

}  // namespace hone
