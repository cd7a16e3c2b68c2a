#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "evaluation/sandbox/child/module/module_hooks.hpp"
#include "evaluation/sandbox/protocol.capnp.h"

namespace hone {

// The module of a session, behind the runner's hooks. Functions throw program_error if a hook
// fails. Confined to the thread that holds the interpreter's lock.
class module_runner {
 public:
  // `hooks` must outlive the object.
  explicit module_runner(const module_hooks& hooks) : hooks_(&hooks) {}

  // Executes the texts of an open command, which say whether the module is a candidate.
  void load(schema::Open::Reader request);
  // Executes the text of a candidate.
  void load(const char* task, const char* program) const;
  // Makes an instance, and releases the one before it.
  void make(std::uint64_t seed) const;
  // Copies the tensors of the task's own module to the places of the task's parameters. Does
  // nothing for a candidate. `tensor_at` returns the tensor at an offset in the arena.
  void show_parameters(
      schema::StageCalls::Reader request,
      const std::function<at::Tensor(schema::Layout::Reader, std::uint64_t)>& tensor_at) const;
  // Takes the inputs of `calls` calls, in order.
  void stage(std::size_t calls, const std::vector<at::Tensor>& inputs) const;
  // Makes a staged call. Output i becomes row-major if bit i of `row_major` is set.
  std::vector<at::Tensor> call(std::size_t number, std::uint64_t row_major) const;
  bool is_candidate() const { return is_candidate_; }

 private:
  at::Tensor find(const std::string& name) const;
  static void require(int result);

  const module_hooks* hooks_;
  bool is_candidate_ = true;
  std::vector<std::string> names_;  // of the task's parameters
};

// Sends the reply to an open command that has been carried out. Throws connection_lost.
void send_opened_module(int socket, schema::Open::Reader request);

}  // namespace hone
