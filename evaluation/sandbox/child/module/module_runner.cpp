#include "evaluation/sandbox/child/module/module_runner.hpp"

#include <ATen/DLConvertor.h>

#include <algorithm>
#include <array>

#include "evaluation/sandbox/child/common/replies.hpp"
#include "evaluation/sandbox/child/common/torchscript_program.hpp"
#include "messages/ids.hpp"
#include "messages/record.hpp"

namespace hone {
namespace {

// Why the last hook failed.
Outcome failure = Outcome::CRASH;
std::string failure_message;

}  // namespace

void module_runner::require(int result) {
  if (result < 0) throw program_error(failure, failure_message);
}

void module_runner::load(schema::Open::Reader request) {
  const auto program = request.getPrograms()[0];
  is_candidate_ = request.getJudgesCandidate();
  names_.clear();
  for (const auto name : program.getParameterNames()) names_.emplace_back(name.cStr());
  require(hooks_->load(program.getTaskModule().cStr(), program.getSource().cStr(),
                       is_candidate_ ? "ModelNew" : "Model"));
}

void module_runner::load(const char* task, const char* program) const {
  require(hooks_->load(task, program, "ModelNew"));
}

void module_runner::make(std::uint64_t seed) const { require(hooks_->make(seed)); }

// Returns a tensor of the instance, or an undefined one if it has none of this name.
at::Tensor module_runner::find(const std::string& name) const {
  DLManagedTensor* found = hooks_->find(name.c_str());
  return found != nullptr ? at::fromDLPack(found) : at::Tensor();
}

void module_runner::show_parameters(
    schema::StageCalls::Reader request,
    const std::function<at::Tensor(schema::Layout::Reader, std::uint64_t)>& tensor_at) const {
  if (is_candidate_) return;
  for (unsigned i = 0; i < request.getParameters().size(); ++i) {
    const std::string& name = names_.at(i);
    at::Tensor place = tensor_at(request.getParameters()[i], request.getParameterOffsets()[i]);
    const at::Tensor found = find(name);
    if (!found.defined() || found.sizes() != place.sizes())
      throw program_error(
          Outcome::INFRASTRUCTURE,
          "the task's module has no tensor '" + name +
              "' of the shape that the task says, so a Python module cannot be given the same "
              "parameters");
    place.copy_(found);
  }
}

void module_runner::stage(std::size_t calls, const std::vector<at::Tensor>& inputs) const {
  std::vector<DLManagedTensor*> given;
  given.reserve(inputs.size());
  for (const at::Tensor& input : inputs) given.push_back(at::toDLPack(input));
  require(hooks_->stage(static_cast<std::int64_t>(calls),
                        static_cast<std::int64_t>(inputs.size() / std::max<std::size_t>(calls, 1)),
                        given.data()));
}

std::vector<at::Tensor> module_runner::call(std::size_t number, std::uint64_t row_major) const {
  std::array<DLManagedTensor*, max_module_outputs> given{};
  const int count = hooks_->call(static_cast<std::int64_t>(number), row_major, given.data());
  require(count);
  std::vector<at::Tensor> outputs;
  outputs.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < std::min(count, max_module_outputs); ++i)
    outputs.push_back(at::fromDLPack(given[static_cast<std::size_t>(i)]));
  return outputs;
}

void send_opened_module(int socket, schema::Open::Reader request) {
  send_reply(socket, [&](schema::Reply::Builder reply) {
    auto opened = reply.initOpened();
    opened.initLaunches(0);
    content_id<program_id>({view(request.getPrograms()[0].getSource())})
        .store(opened.initNormalForm());
  });
}

}  // namespace hone

extern "C" void hone_fail(int outcome, const char* message) {
  hone::failure = static_cast<hone::Outcome>(outcome);
  hone::failure_message = message;
}
