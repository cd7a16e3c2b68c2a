#include "evaluation/sandbox/child/common/torchscript_program.hpp"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/passes/canonicalize.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <array>
#include <optional>

#include "evaluation/sandbox/child/common/graph_rules.hpp"
#include "evaluation/sandbox/child/common/interpreter_messages.hpp"
#include "evaluation/sandbox/child/common/names.hpp"
#include "evaluation/sandbox/child/common/random_factors.hpp"
#include "evaluation/sandbox/child/common/rounding_noise.hpp"
#include "tasks/program_functions.hpp"

namespace hone {
namespace {

using torch::jit::Code;
using torch::jit::Graph;
using torch::jit::Stack;

thread_local kernel_launcher* current_launcher = nullptr;
c10::Device judged_device = c10::kCPU;

// The error with which one of Hone's operators has ended the running program. The interpreter turns
// every exception into its own exception type, which has no outcome.
thread_local std::optional<program_error> operator_error;

template <void (*run)(Stack&)>
void remember_error(Stack& stack) {
  try {
    run(stack);
  } catch (const program_error& e) {
    operator_error = e;
    throw;
  }
}

kernel_launcher& launcher(const char* what) {
  if (current_launcher == nullptr)
    throw program_error(Outcome::LAUNCH_ERROR, std::string("a reference cannot ") + what);
  return *current_launcher;
}

// Pops (kernel, grid, block, shared, arguments..., count), as the interpreter pushes them for a
// variadic operator.
void run_launch(Stack& stack) {
  const auto count = static_cast<std::size_t>(stack.back().toInt());
  stack.pop_back();
  std::vector<c10::IValue> inputs(
      std::make_move_iterator(stack.end() - static_cast<std::ptrdiff_t>(count)),
      std::make_move_iterator(stack.end()));
  stack.resize(stack.size() - count);
  const std::vector<c10::IValue> arguments(inputs.begin() + 4, inputs.end());
  launcher("launch kernels")
      .launch(inputs[0].toStringRef(), inputs[1].toIntVector(), inputs[2].toIntVector(),
              inputs[3].toInt(), arguments);
}

void run_stream(Stack& stack) {
  const std::int64_t k = stack.back().toInt();
  stack.pop_back();
  kernel_launcher& used = launcher("use side streams");
  if (k < 0 || k > side_streams)
    throw program_error(Outcome::LAUNCH_ERROR, "stream(" + std::to_string(k) + "): expected 0 to " +
                                                   std::to_string(side_streams));
  used.use_stream(k);
}

void run_synchronize(Stack& /*stack*/) {
  if (current_launcher != nullptr) current_launcher->synchronize();
}

void run_join(Stack& /*stack*/) { launcher("use side streams").join_streams(); }

// Pops (number, tensor) and pushes their difference. PyTorch subtracts from a number in one launch,
// and TorchScript itself in two, -x and then + 1.
void run_difference(Stack& stack) {
  const at::Tensor subtrahend = torch::jit::pop(stack).toTensor();
  const c10::Scalar minuend = torch::jit::pop(stack).toScalar();
  stack.emplace_back(at::rsub(subtrahend, minuend));
}

void register_operators() {
  static const bool done = [] {
    // With any weaker kind than CONSERVATIVE, a launch would be removed as dead code.
    constexpr auto effects = c10::AliasAnalysisKind::CONSERVATIVE;
    torch::jit::registerOperator(torch::jit::Operator(
        "hone::launch(str kernel, int[] grid, int[] block, int shared, ...) -> ()",
        remember_error<run_launch>, effects));
    torch::jit::registerOperator(
        torch::jit::Operator("hone::stream(int k) -> ()", remember_error<run_stream>, effects));
    torch::jit::registerOperator(
        torch::jit::Operator("hone::join() -> ()", remember_error<run_join>, effects));
    torch::jit::registerOperator(torch::jit::Operator("hone::synchronize() -> ()",
                                                      remember_error<run_synchronize>, effects));
    torch::jit::registerOperator(
        torch::jit::Operator("aten::sub.from_number(Scalar self, Tensor other) -> Tensor",
                             run_difference, c10::AliasAnalysisKind::FROM_SCHEMA));
    return true;
  }();
  (void)done;
}

std::vector<torch::jit::Def> parse(const std::string& source) {
  torch::jit::Parser parser(std::make_shared<torch::jit::Source>(source, "python", 1));
  std::vector<torch::jit::Def> definitions;
  while (parser.lexer().cur().kind != torch::jit::TK_EOF)
    definitions.emplace_back(parser.parseFunction(/*is_method=*/false));
  return definitions;
}

[[noreturn]] void refuse(const std::string& message) {
  throw program_error(Outcome::COMPILE_ERROR, message);
}

struct node_counts {
  std::size_t nodes = 0;
  std::size_t calls = 0;  // of functions
  bool operator==(const node_counts&) const = default;
};

void count_nodes(const torch::jit::Block* block, node_counts& counts) {
  for (const torch::jit::Node* node : block->nodes()) {
    ++counts.nodes;
    if (node->kind() == c10::prim::CallFunction) ++counts.calls;
    for (const torch::jit::Block* inner : node->blocks()) count_nodes(inner, counts);
  }
}

// Replaces all calls of functions by the functions' bodies. LibTorch's pass replaces the calls of
// the graph alone, so it runs once for each level of calls within calls. Functions cannot be
// recursive, but a few lines can describe a graph of any size. Calls that cannot be replaced stay,
// for check_rules() to refuse.
void inline_calls(Graph& graph) {
  constexpr std::size_t max_nodes = 50'000;
  node_counts before;
  while (true) {
    node_counts counts;
    count_nodes(graph.block(), counts);
    if (counts.nodes > max_nodes)
      refuse("the program has more than " + std::to_string(max_nodes) +
             " operations once its functions are inlined");
    if (counts.calls == 0 || counts == before) return;
    before = counts;
    torch::jit::Inline(graph);
  }
}

std::shared_ptr<Graph> runnable_graph(torch::jit::Function& function) {
  auto graph = torch::jit::toGraphFunction(function).graph()->copy();
  inline_calls(*graph);
  settle_devices(*graph, judged_device);
  torch::jit::runRequiredPasses(graph);
  check_rules(*graph);
  if (judged_device.is_cpu()) bound_attention(*graph);
  if (judged_device.is_cpu() && !launched_kernels(*graph).empty()) synchronize_operators(*graph);
  return graph;
}

// Returns the graph's text with numbers for names.
std::string text_without_names(Graph& graph) {
  auto form = graph.copy();
  torch::jit::EliminateDeadCode(form);
  return torch::jit::Canonicalize(form, false)->toString(false);
}

// Replaces the names of kernels in a graph's text by their places in `launches`.
void number_kernels(std::string& form, const std::vector<std::string>& launches) {
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const std::string quoted = "\"" + launches[i] + "\"";
    const std::string number = "kernel " + std::to_string(i);
    for (std::size_t at = form.find(quoted); at != std::string::npos; at = form.find(quoted, at))
      form.replace(at, quoted.size(), number);
  }
}

// Compiles the functions of a source.
std::unique_ptr<torch::jit::CompilationUnit> define(const std::string& source) {
  auto unit = std::make_unique<torch::jit::CompilationUnit>();
  const auto definitions = parse(source);
  const std::vector<torch::jit::ResolverPtr> resolvers(definitions.size(), torchscript_names());
  unit->define(std::nullopt, {}, {}, definitions, resolvers, nullptr);
  return unit;
}

std::vector<c10::TypePtr> spread(const c10::TypePtr& type) {
  if (const auto tuple = type->cast<c10::TupleType>()) return tuple->elements().vec();
  return {type};
}

// Runs the program on the arguments in `stack`, which its result replaces.
void run(const Code& code, Stack& stack) {
  operator_error.reset();
  try {
    torch::jit::InterpreterState(code).run(stack);
  } catch (const std::exception& e) {
    if (!operator_error) throw;
    throw program_error(operator_error->outcome,
                        place_in_traceback(e.what()) + operator_error->what());
  }
}

void check_signature(const c10::FunctionSchema& schema, const std::vector<c10::TypePtr>& expected,
                     const std::string& name, const std::string& meaning) {
  if (schema.arguments().size() != expected.size()) {
    refuse(name + " takes " + std::to_string(schema.arguments().size()) + " arguments, expected " +
           std::to_string(expected.size()) + ": " + meaning);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i]->isSubtypeOf(*schema.arguments()[i].type())) {
      refuse(name + ": argument '" + schema.arguments()[i].name() + "' is a " +
             schema.arguments()[i].type()->repr_str() + ", expected " + expected[i]->repr_str());
    }
  }
}

}  // namespace

struct torchscript_program::state {
  std::unique_ptr<torch::jit::CompilationUnit> unit;
  Code forward;
  std::optional<Code> prepare;
  std::vector<std::string> launches;
  std::string normal_form;
  std::size_t convolutions = 0;
};

torchscript_program::torchscript_program(const std::string& source, std::size_t inputs,
                                         std::size_t parameters)
    : state_(std::make_unique<state>()) {
  register_operators();
  try {
    state_->unit = define(functions_of_program(source));
    auto* forward = state_->unit->find_function(c10::QualifiedName("forward"));
    if (forward == nullptr) refuse("there is no function 'forward'");
    std::vector<c10::TypePtr> expected(inputs, c10::TensorType::get());
    auto* prepare = state_->unit->find_function(c10::QualifiedName("prepare"));
    if (prepare != nullptr) {
      check_signature(prepare->getSchema(),
                      std::vector<c10::TypePtr>(parameters, c10::TensorType::get()), "prepare",
                      "the task's parameters, without its inputs");
      const auto graph = runnable_graph(*prepare);
      if (!launched_kernels(*graph).empty() && parameters == 0)
        refuse("prepare has no parameters to work on");
      const auto prepared = spread(prepare->getSchema().returns()[0].type());
      expected.insert(expected.end(), prepared.begin(), prepared.end());
      state_->launches = launched_kernels(*graph);
      state_->normal_form = text_without_names(*graph);
      state_->prepare = Code(graph, "prepare");
    } else {
      expected.insert(expected.end(), parameters, c10::TensorType::get());
    }
    check_signature(forward->getSchema(), expected, "forward",
                    prepare != nullptr ? "the task's inputs, then the results of prepare"
                                       : "the task's inputs, then its parameters");
    for (const c10::TypePtr& type : spread(forward->getSchema().returns()[0].type())) {
      if (type->kind() != c10::TypeKind::TensorType)
        refuse("forward returns a " + forward->getSchema().returns()[0].type()->repr_str() +
               ", expected a Tensor or a tuple of Tensors");
    }
    const auto graph = runnable_graph(*forward);
    const auto launched = launched_kernels(*graph);
    for (const std::string& name : launched) {
      if (std::find(state_->launches.begin(), state_->launches.end(), name) ==
          state_->launches.end())
        state_->launches.push_back(name);
    }
    state_->normal_form += text_without_names(*graph);
    number_kernels(state_->normal_form, state_->launches);
    state_->convolutions = count_convolutions(*graph);
    state_->forward = Code(graph, "forward");
  } catch (const program_error&) {
    throw;
  } catch (const std::exception& e) {
    refuse(explain_refusal(
        e.what(), functions_of_program(source), [](const std::string& text) { parse(text); },
        [](const std::string& text) { define(text); }));
  }
}

torchscript_program::~torchscript_program() = default;
torchscript_program::torchscript_program(torchscript_program&&) noexcept = default;

const std::vector<std::string>& torchscript_program::launches() const { return state_->launches; }
const std::string& torchscript_program::normal_form() const { return state_->normal_form; }
std::size_t torchscript_program::convolutions() const { return state_->convolutions; }
bool torchscript_program::has_prepare() const { return state_->prepare.has_value(); }

std::vector<c10::IValue> torchscript_program::prepare(const std::vector<at::Tensor>& parameters) {
  Stack stack(parameters.begin(), parameters.end());
  if (!state_->prepare) return stack;
  run(*state_->prepare, stack);
  if (!stack.front().isTuple()) return stack;
  const auto& elements = stack.front().toTupleRef().elements();
  return std::vector<c10::IValue>(elements.begin(), elements.end());
}

std::vector<at::Tensor> torchscript_program::forward(std::vector<c10::IValue>& arguments,
                                                     std::uint64_t row_major) {
  run(state_->forward, arguments);
  std::vector<at::Tensor> outputs;
  if (arguments.front().isTuple()) {
    for (const c10::IValue& element : arguments.front().toTupleRef().elements())
      outputs.push_back(element.toTensor());
  } else {
    outputs.push_back(arguments.front().toTensor());
  }
  // Outputs that are only marked as negated, conjugated or in another order are computed here,
  // while the clock runs.
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool is_ready =
        outputs[i].is_contiguous() && !outputs[i].is_conj() && !outputs[i].is_neg();
    if (is_ready) continue;
    if (current_launcher != nullptr) current_launcher->synchronize();
    outputs[i] = outputs[i].resolve_conj().resolve_neg();
    // An output with several elements in one place is not converted, but refused by the judge.
    if (i < 64 && (row_major >> i & 1U) != 0 &&
        at::has_internal_overlap(outputs[i]) != at::MemOverlap::Yes)
      outputs[i] = outputs[i].contiguous();
  }
  arguments.clear();
  return outputs;
}

void torchscript_program::set_launcher(kernel_launcher* launcher) { current_launcher = launcher; }

void torchscript_program::judge_on_gpu() { judged_device = c10::Device(c10::kCUDA, 0); }

void torchscript_program::enter_thread() {
  // Warnings would go to standard error, which a session may not write to.
  struct quiet : c10::WarningHandler {
    void process(const c10::Warning& /*warning*/) override {}
  };
  static quiet handler;
  c10::WarningUtils::set_warning_handler(&handler);
  torch::jit::setGraphExecutorOptimize(false);
}

void torchscript_program::warm_up() {
  enter_thread();
  torch::jit::getProfilingMode() = false;
  torch::jit::getExecutorMode() = false;
  // The program loads everything that the first call of an operator would load. On a CPU these are
  // dispatch tables, vector code paths, oneDNN, and FBGEMM's code for embedding bags, which reads
  // files about the processor.
  constexpr const char* on_cpu =
      "def forward(a: Tensor, b: Tensor) -> Tensor:\n"
      "    c = torch.matmul(a, b) + torch.relu(a).sum() * 2.0\n"
      "    d = F.conv2d(a.view(1, 1, 16, 16), b.view(1, 1, 16, 16)[:, :, :3, :3])\n"
      "    e = torch.softmax(c, dim=1) + F.gelu(c).transpose(0, 1).contiguous()\n"
      "    return e + d.mean() + F.layer_norm(c, [16]).exp() + torch.cumsum(a, 0) + "
      "torch.sort(b)[0] + F.embedding_bag(a.long().flatten(), b, torch.arange(0, 256, 16, "
      "device=a.device))\n";
  // On a GPU these are the libraries of cuDNN. Kernels need not be loaded beforehand, and to load
  // those of ten operators would take half a second.
  constexpr const char* on_gpu =
      "def forward(a: Tensor, b: Tensor) -> Tensor:\n"
      "    return F.conv2d(a.view(1, 1, 16, 16), b.view(1, 1, 16, 16)[:, :, :3, :3])\n";
  prepare_rounding_noise();
  if (judged_device.is_cpu()) make_factors(judged_device);
  torchscript_program program(judged_device.is_cpu() ? on_cpu : on_gpu, 2, 0);
  for (int i = 0; i < 2; ++i) {
    std::vector<c10::IValue> arguments = {at::ones({16, 16}, judged_device),
                                          at::ones({16, 16}, judged_device)};
    program.forward(arguments);
  }
}

}  // namespace hone
