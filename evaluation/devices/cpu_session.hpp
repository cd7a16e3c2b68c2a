#pragma once

#include <memory>

#include "evaluation/devices/arena_plan.hpp"
#include "evaluation/sandbox/zygote.hpp"

namespace hone {

// A sandbox session whose buffers lie in an arena: inputs and parameters first, guard bytes around
// each, then scratch memory.
class cpu_session final : public program_session {
 public:
  // `memory` is this session's alone while it lives, and outlives it.
  cpu_session(std::unique_ptr<sandbox_session> process, arena& memory);
  cpu_session(std::unique_ptr<sandbox_session> process, std::unique_ptr<arena> memory);
  ~cpu_session() override;

  void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
               const std::vector<tensor_layout>& parameters, std::size_t sets) override;
  std::vector<std::span<std::byte>> input_places(std::size_t set) override;
  void write_parameters(const value_set& values) override;
  std::optional<program_failure> prepare(deadline until) override;
  std::variant<batch_clock, program_failure> run(std::span<const std::size_t> sets,
                                                 deadline until) override;
  std::variant<value_set, program_failure> outputs(std::size_t call) override;
  std::set<shared_memory_of_output> aliases(std::size_t call) override;
  std::size_t output_bytes(std::size_t call) override;
  bool inputs_hold(std::size_t set, const value_set& values) override;
  bool parameters_hold(const value_set& values) override;
  std::optional<std::string> memory_damage() override;

 private:
  void look();  // stops the process while its memory is read
  void go_on();
  record<schema::Command> stage_command(std::span<const std::size_t> sets) const;

  std::unique_ptr<arena> owned_;
  std::unique_ptr<sandbox_session> process_;
  arena* memory_;
  arena_plan plan_;
  bool parameters_changed_ = true;
  std::uint64_t dirty_end_ = 0;     // the last run used scratch memory up to here
  std::uint64_t poisoned_end_ = 0;  // up to here it has ever been poisoned
  std::vector<std::size_t> last_sets_;
  bool frozen_ = false;
};

}  // namespace hone
