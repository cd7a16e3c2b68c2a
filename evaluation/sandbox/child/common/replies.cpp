#include "evaluation/sandbox/child/common/replies.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "evaluation/sandbox/child/common/interpreter_messages.hpp"
#include "evaluation/sandbox/child/common/torchscript_program.hpp"
#include "evaluation/sandbox/programs.hpp"
#include "messages/ids.hpp"
#include "messages/record.hpp"
#include "process/framing.hpp"

namespace hone {
namespace {

constexpr std::array<at::ScalarType, 7> scalar_types = {
    at::kFloat, at::kHalf, at::kBFloat16, at::kDouble, at::kInt, at::kLong, at::kBool};

std::uint32_t dtype_of(const at::Tensor& tensor) {
  for (std::uint32_t i = 0; i < scalar_types.size(); ++i) {
    if (tensor.scalar_type() == scalar_types[i]) return i;
  }
  return unsupported_dtype;
}

// Reduces the interpreter's traceback to one line, such as "python:3: division by zero".
std::string line_of_failure(const std::string& what) {
  std::string_view text = what;
  if (const auto at = text.rfind("RuntimeError: "); at != std::string_view::npos)
    text.remove_prefix(at + 14);
  if (const auto at = text.find("\nException raised from"); at != std::string_view::npos)
    text = text.substr(0, at);
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string line(text.substr(0, 500));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return place_in_traceback(what) + line;
}

std::pair<Outcome, std::string> describe_failure(const std::exception& e) {
  if (const auto* known = dynamic_cast<const program_error*>(&e))
    return {known->outcome, known->what()};
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr ||
      dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr)
    return {Outcome::CRASH, "out of memory"};
  const std::string what = line_of_failure(e.what());
  return {Outcome::CRASH, what.find("std::bad_alloc") != std::string::npos ||
                                  what.find("out of memory") != std::string::npos
                              ? "out of memory"
                              : what};
}

}  // namespace

void send_reply(int socket, const std::function<void(schema::Reply::Builder)>& fill) {
  record_builder<schema::Reply> reply;
  fill(reply.root());
  send_message(socket, reply.finish().bytes());
}

void send_opened(int socket, const torchscript_program& program, int kernel_process) {
  send_reply(socket, [&](schema::Reply::Builder reply) {
    auto opened = reply.initOpened();
    opened.setKernelProcess(kernel_process);
    opened.setHasPrepare(program.has_prepare());
    opened.setConvolutions(static_cast<std::uint32_t>(program.convolutions()));
    content_id<program_id>({program.normal_form()}).store(opened.initNormalForm());
    const auto& launches = program.launches();
    auto list = opened.initLaunches(static_cast<unsigned>(launches.size()));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, launches[i]);
  });
}

void send_failure(int socket, const std::exception& why, bool is_last) {
  const auto [outcome, message] = describe_failure(why);
  send_reply(socket, [&, outcome = outcome, message = message](schema::Reply::Builder reply) {
    auto failed = reply.initFailed();
    failed.setOutcome(outcome);
    failed.setMessage(message.substr(0, max_failure_text));
    failed.setIsLast(is_last);
  });
}

at::Tensor tensor_at(char* address, std::uint64_t room, schema::Layout::Reader layout,
                     bool on_gpu) {
  std::vector<std::int64_t> shape;
  for (const std::int64_t extent : layout.getShape()) shape.push_back(extent);
  const auto options = at::TensorOptions(scalar_types.at(layout.getDtype()))
                           .device(on_gpu ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU));
  std::uint64_t bytes = options.dtype().itemsize();
  for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
  if (bytes > room) throw program_error(Outcome::INFRASTRUCTURE, "a tensor lies outside the arena");
  return at::from_blob(address, shape, options);
}

void describe_call(arena_head& head, const std::vector<at::Tensor>& outputs,
                   const std::function<std::uint64_t(const at::Tensor&)>& offset_of) {
  if (head.output_count == 0) head.outputs_per_call = static_cast<std::uint32_t>(outputs.size());
  for (const at::Tensor& tensor : outputs) {
    if (head.output_count >= max_arena_outputs) return;
    arena_output& out = head.outputs[head.output_count++];
    const bool fits = tensor.layout() == at::kStrided &&
                      tensor.dim() <= static_cast<std::int64_t>(out.sizes.size());
    out.dtype = fits ? dtype_of(tensor) : unsupported_dtype;
    out.dimensions = fits ? static_cast<std::uint32_t>(tensor.dim()) : 0;
    out.offset = fits ? offset_of(tensor) : not_in_arena;
    for (std::uint32_t d = 0; d < out.dimensions; ++d) {
      out.sizes[d] = tensor.size(d);
      out.strides[d] = tensor.stride(d);
    }
  }
}

void describe_outputs(arena_head& head, const std::vector<std::vector<at::Tensor>>& calls,
                      const std::function<std::uint64_t(const at::Tensor&)>& offset_of) {
  head.outputs_per_call = 0;
  head.output_count = 0;
  for (const auto& call : calls) describe_call(head, call, offset_of);
}

}  // namespace hone
