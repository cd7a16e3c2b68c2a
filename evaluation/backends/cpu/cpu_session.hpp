#pragma once

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

// A session in a forked sandbox process whose tensors lie in an arena: inputs and parameters with
// guards around each, then scratch memory. Every set of parameters brings other bytes of poison.
class cpu_session final : public program_session {
 public:
  // `memory` must outlive the session, which uses it exclusively.
  cpu_session(std::unique_ptr<sandbox_session> process, arena& memory);
  // The session owns `memory`.
  cpu_session(std::unique_ptr<sandbox_session> process, std::unique_ptr<arena> memory);
  ~cpu_session() override;

  void arrange(std::size_t program, const std::vector<tensor_layout>& inputs,
               const std::vector<tensor_layout>& parameters, std::size_t sets) override;
  std::vector<std::span<std::byte>> input_places(std::size_t set) override;
  void write_parameters(const value_set& values, std::uint64_t seed) override;
  program_result<void> prepare(time_point deadline) override;
  void require_row_major(std::uint64_t outputs) override { row_major_outputs_ = outputs; }
  program_result<batch_clock> run(std::span<const std::size_t> sets, time_point deadline,
                                  const input_writer& write = nullptr) override;
  program_result<std::uint64_t> study(const study_plan& plan, time_point deadline) override;
  program_result<value_set> outputs(std::size_t call) override;
  std::set<output_alias> aliases(std::size_t call) override;
  std::uint64_t row_major_outputs(std::size_t call) override;
  std::size_t output_bytes(std::size_t call) override;
  bool inputs_hold(std::size_t set, const value_set& values) override;
  bool parameters_hold(const value_set& values) override;
  std::optional<std::string> memory_damage() override;
  void discard_outputs() override;

 private:
  void freeze();  // stops the process while its memory is read
  void thaw();
  void change_poison();
  unsigned char argument_poison() const { return poison_bytes[poison_ % poison_bytes.size()]; }
  unsigned char scratch_poison() const { return poison_bytes[(poison_ + 1) % poison_bytes.size()]; }
  record<schema::Command> stage(std::span<const std::size_t> sets) const;
  void note_scratch_use();

  std::unique_ptr<arena> owned_;
  std::unique_ptr<sandbox_session> process_;
  arena* memory_;
  arena_plan plan_;
  bool parameters_changed_ = true;
  std::uint64_t row_major_outputs_ = 0;
  std::uint64_t dirty_end_ = 0;     // end of the memory that the next run has to poison
  std::uint64_t poisoned_end_ = 0;  // end of the memory that has ever been poisoned
  std::size_t poison_ = 0;          // position in poison_bytes
  std::vector<std::size_t> last_sets_;
  bool frozen_ = false;
};

}  // namespace hone
