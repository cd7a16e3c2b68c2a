#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "evaluation/program/arena_plan.hpp"
#include "evaluation/program/session.hpp"
#include "evaluation/sandbox/arena.hpp"
#include "evaluation/sandbox/client/zygote.hpp"

namespace hone {

// A session of a Python module. Its inputs lie in an arena, and all that it allocates lies in a
// heap behind them, because a module may keep tensors between calls and return the same memory
// again. So the outputs of a call are committed when the call has passed its turn back: the process
// is stopped, its outputs are copied, and their memory is poisoned. Nothing else that the process
// says is believed. Parameters come from the seed of its constructor.
class module_session final : public program_session {
 public:
  // `memory` must outlive the session, which uses it exclusively.
  module_session(std::unique_ptr<sandbox_session> process, arena& memory);
  ~module_session() override;

  // Throws std::length_error if the tensors do not fit before module_heap_begin.
  void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
               const std::vector<tensor_layout>& parameters, std::size_t sets) override;
  std::vector<std::span<std::byte>> input_places(std::size_t set) override;
  // Another seed makes another instance of the module.
  void write_parameters(const value_set& values, std::uint64_t seed) override;
  program_result<void> prepare(time_point deadline) override;
  void require_row_major(std::uint64_t outputs) override { row_major_outputs_ = outputs; }
  program_result<batch_clock> run(std::span<const std::size_t> sets, time_point deadline,
                                  const input_writer& write = nullptr) override;
  program_result<std::uint64_t> study(const study_plan& plan, time_point deadline) override;
  program_result<value_set> outputs(std::size_t call) override;
  // Memory of earlier calls is the module's own.
  std::set<output_alias> aliases(std::size_t call) override;
  std::uint64_t row_major_outputs(std::size_t call) override;
  std::size_t output_bytes(std::size_t call) override;
  bool inputs_hold(std::size_t set, const value_set& values) override;
  // A module that changes its parameters gives wrong results.
  bool parameters_hold(const value_set& /*values*/) override { return true; }
  std::optional<std::string> memory_damage() override;

  // Returns the parameters that a module of the judge has made of the last seed. Valid between
  // prepare() and the next arrange().
  value_set parameters();

 private:
  struct committed_call {
    program_result<value_set> values;
    std::set<output_alias> aliases;
    std::uint64_t row_major = 0;
    std::size_t bytes = 0;
  };
  record<schema::Command> stage(std::span<const std::size_t> sets) const;
  void commit(std::size_t call);

  std::unique_ptr<sandbox_session> process_;
  arena* memory_;
  arena_plan plan_;
  std::uint64_t seed_ = 0;
  bool parameters_changed_ = true;
  std::uint64_t row_major_outputs_ = 0;
  std::uint64_t poisoned_end_ = 0;
  std::vector<std::size_t> last_sets_;
  std::vector<committed_call> committed_;  // by call
};

}  // namespace hone
