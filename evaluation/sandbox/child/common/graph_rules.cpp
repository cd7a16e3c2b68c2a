#include "evaluation/sandbox/child/common/graph_rules.hpp"

#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "evaluation/sandbox/child/common/torchscript_program.hpp"
#include "tasks/operators.hpp"

namespace hone {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

template <class BlockType, class Visit>
void for_each_node(BlockType* block, const Visit& visit) {
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    auto* node = *it++;  // visit may destroy it
    for (auto* inner : node->blocks()) for_each_node(inner, visit);
    visit(node);
  }
}

std::string place_of(const Node* node) {
  // Of a node inside an inlined function, the outermost call is the line that the author wrote.
  const auto stack = node->callstack();
  const torch::jit::SourceRange range =
      stack ? std::get<1>((*stack)->vec().front()) : node->sourceRange();
  const auto position = range.file_line_col();
  if (position && std::get<0>(*position) == "python")
    return "python:" + std::to_string(std::get<1>(*position)) + ": ";
  const auto own = node->sourceRange().file_line_col();
  if (own && std::get<0>(*own) == "python")
    return "python:" + std::to_string(std::get<1>(*own)) + ": ";
  return "";
}

[[noreturn]] void reject(const Node* node, const std::string& why) {
  throw program_error(Outcome::REJECTED, place_of(node) + why);
}

bool holds_tensors(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) return true;
  const auto contained = type->containedTypes();
  return std::any_of(contained.begin(), contained.end(), holds_tensors);
}

// Returns true unless a node surely neither reads nor writes the contents of a tensor.
bool touches_contents(const Node* node) {
  // clang-format off
  static const std::unordered_set<std::string> harmless = {
      "aten::alias", "aten::as_strided", "aten::chunk", "aten::detach", "aten::diagonal",
      "aten::dim", "aten::element_size", "aten::empty", "aten::empty_like", "aten::empty_strided",
      "aten::expand", "aten::expand_as", "aten::is_contiguous", "aten::len", "aten::movedim",
      "aten::new_empty", "aten::new_empty_strided", "aten::numel", "aten::permute",
      "aten::select", "aten::size", "aten::slice", "aten::split", "aten::squeeze",
      "aten::storage_offset", "aten::stride", "aten::t", "aten::transpose", "aten::unbind",
      "aten::unsqueeze", "aten::view", "aten::view_as", "prim::Constant", "prim::If",
      "prim::ListConstruct", "prim::ListUnpack", "prim::Loop", "prim::TupleConstruct",
      "prim::TupleIndex", "prim::TupleUnpack", "prim::device", "prim::dtype",
      "prim::unchecked_cast"};
  // clang-format on
  const std::string name = node->kind().toQualString();
  if (name.starts_with("hone::") || harmless.contains(name)) return false;
  const auto has_tensors = [](const Value* value) { return holds_tensors(value->type()); };
  return std::any_of(node->inputs().begin(), node->inputs().end(), has_tensors) ||
         std::any_of(node->outputs().begin(), node->outputs().end(), has_tensors);
}

bool is_none(const Value* value) {
  const auto known = torch::jit::toIValue(value);
  return known && known->isNone();
}

// Finds the values of a graph that depend on the contents of tensors: a loop's bound may depend on
// shapes, but not on contents. A value is tainted if it is a number read out of a tensor, if it is
// derived from a tainted value, or if it is the size of a tensor whose shape is tainted.
class content_taint {
 public:
  void run(const Block* block) {
    do {
      changed_ = false;
      visit(block);
    } while (changed_);
  }
  bool is_tainted(const Value* value) const { return tainted_.contains(value); }

 private:
  // Returns true for x[mask], and for where(mask), which returns the places of what it selects.
  static bool selects_by_mask(const Node* node) {
    return node->kind() == c10::aten::index || node->kind() == c10::aten::_unsafe_index ||
           (node->kind() == c10::aten::where && node->inputs().size() == 1);
  }

  void taint(const Value* value) { changed_ = tainted_.insert(value).second || changed_; }

  void visit(const Block* block) {
    for (const Node* node : block->nodes()) {
      bool any = reads_contents(node->kind().toQualString()) || selects_by_mask(node);
      for (const Value* input : node->inputs()) any = any || is_tainted(input);
      if (node->kind() == c10::prim::Loop) {
        flow_through_loop(node);
        continue;
      }
      for (const Block* inner : node->blocks()) {
        visit(inner);
        for (std::size_t i = 0; i < inner->outputs().size(); ++i) {
          if (is_tainted(inner->outputs()[i])) taint(node->outputs()[i]);
        }
      }
      if (!any) continue;
      for (const Value* output : node->outputs()) taint(output);
      // A list becomes tainted when a tainted number is added to it.
      for (const Value* input : node->inputs()) {
        if (input->type()->kind() == c10::TypeKind::ListType && node->outputs().empty())
          taint(input);
        if (node->kind() == c10::aten::append || node->kind() == c10::aten::_set_item)
          taint(node->inputs()[0]);
      }
    }
  }

  void flow_through_loop(const Node* loop) {
    const Block* body = loop->blocks()[0];
    for (std::size_t i = 2; i < loop->inputs().size(); ++i) {
      if (is_tainted(loop->inputs()[i])) taint(body->inputs()[i - 1]);
    }
    visit(body);
    for (std::size_t i = 1; i < body->outputs().size(); ++i) {
      if (!is_tainted(body->outputs()[i])) continue;
      taint(body->inputs()[i]);
      taint(loop->outputs()[i - 1]);
    }
  }

  std::unordered_set<const Value*> tainted_;
  bool changed_ = false;
};

// Returns true for numbers that float32 has.
bool are_exact(const Value* numbers) {
  if (const auto known = torch::jit::toIValue(numbers); known && known->isDouble())
    return static_cast<double>(static_cast<float>(known->toDouble())) == known->toDouble();
  const Node* list = numbers->node();
  return list->kind() == c10::prim::ListConstruct &&
         std::all_of(list->inputs().begin(), list->inputs().end(), are_exact);
}

// TorchScript makes a tensor of numbers by way of float32.
void check_precision(const Node* node) {
  if (node->kind() != c10::aten::tensor) return;
  c10::TypePtr numbers = node->inputs()[0]->type();
  while (numbers->kind() == c10::TypeKind::ListType) numbers = numbers->containedType(0);
  const auto type = torch::jit::toIValue(node->inputs()[1]);
  const bool is_double =
      type && type->isInt() && static_cast<c10::ScalarType>(type->toInt()) == c10::kDouble;
  if (numbers->kind() == c10::TypeKind::FloatType && is_double && !are_exact(node->inputs()[0]))
    reject(node,
           "TorchScript rounds the numbers of torch.tensor() to float32: use the number itself, or "
           "torch.full([], number, dtype=torch.float64)");
}

// Returns true for the text "(torch.int32)" or "(dtype=torch.int32)", with any spaces.
bool is_call_with_type(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  if (text.starts_with("(dtype=")) text.erase(1, std::string_view("dtype=").size());
  constexpr std::string_view begin = "(torch.";
  if (!text.starts_with(begin)) return false;
  const std::size_t end =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", begin.size());
  return end != std::string::npos && text[end] == ')';
}

// TorchScript takes the type in x.view(type) for a size. Types are numbers in a graph, so the text
// behind the name of the call tells them.
void check_view(const Node* node) {
  const torch::jit::SourceRange range = node->sourceRange();
  if (node->kind() != c10::aten::view || !range.source()) return;
  constexpr std::size_t most = 60;
  if (is_call_with_type(range.source()->text_str().substr(range.end(), most).str()))
    reject(node,
           "a view of the bits as another type is not available in a host program: a kernel can "
           "read the bits");
}

void check_node(const Node* node) {
  const std::string name = node->kind().toQualString();
  if (!is_allowed_operator(name)) {
    const bool is_call =
        node->kind() == c10::prim::CallFunction || node->kind() == c10::prim::CallMethod;
    reject(node, is_call ? "the program calls something that cannot be inlined"
                         : "the operator " + name + " is not allowed");
  }
  check_precision(node);
  check_view(node);
  const torch::jit::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr) return;
  for (std::size_t i = 0; i < node->inputs().size() && i < schema->arguments().size(); ++i) {
    const c10::Argument& argument = schema->arguments()[i];
    const auto known = torch::jit::toIValue(node->inputs()[i]);
    if (argument.name() == "generator" && !is_none(node->inputs()[i]))
      reject(node, name + ": random generators are not allowed");
    if (argument.name() == "pin_memory" &&
        !(known && (known->isNone() || (known->isBool() && !known->toBool()))))
      reject(node, name + ": pinned memory is not allowed");
    const bool may_draw = name == "aten::dropout" || name == "aten::alpha_dropout" ||
                          name == "aten::native_dropout" || name == "aten::rrelu" ||
                          name == "aten::scaled_dot_product_attention";
    if (may_draw && (argument.name() == "train" || argument.name() == "training") &&
        !(known && known->isBool() && !known->toBool())) {
      reject(node, name + " draws random numbers unless its training flag is the constant False");
    }
    if (may_draw && argument.name() == "dropout_p" &&
        !(known && known->isDouble() && known->toDouble() == 0.0)) {
      reject(node, name + " draws random numbers unless dropout_p is the constant 0.0");
    }
  }
}

// Makes a factory function without a device argument allocate on the judged device. The results of
// operators that take tensors stay on the tensors' device.
void put_factory_on(c10::Device judged, Node* node) {
  const torch::jit::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr) return;
  const auto takes_tensor = [](const c10::Argument& a) {
    return a.type()->isSubtypeOf(*c10::TensorType::get()) ||
           a.type()->isSubtypeOf(*c10::ListType::ofTensors());
  };
  if (std::any_of(schema->arguments().begin(), schema->arguments().end(), takes_tensor)) return;
  const auto device = schema->argumentIndexWithName("device");
  if (device && static_cast<std::size_t>(*device) < node->inputs().size() &&
      is_none(node->inputs()[static_cast<std::size_t>(*device)])) {
    node->replaceInput(static_cast<std::size_t>(*device),
                       node->owningGraph()->insertConstant(judged, node->sourceRange()));
  }
}

}  // namespace

void settle_devices(Graph& graph, c10::Device judged) {
  constexpr const char* only_cuda =
      "a program may name no device but \"cuda\", which means the one that is being judged";
  // The front end folds device="cuda" into a constant. These constants are replaced first, because
  // the loop below inserts constants of the judged device.
  for_each_node(graph.block(), [&](Node* node) {
    if (node->kind() != c10::prim::Constant || node->outputs().empty()) return;
    const auto known = torch::jit::toIValue(node->output());
    if (!known || !known->isDevice()) return;
    if (known->toDevice() != c10::Device(c10::kCUDA))
      reject(node->output()->hasUses() ? node->output()->uses().front().user : node, only_cuda);
    const torch::jit::WithInsertPoint here(node);
    node->output()->replaceAllUsesWith(graph.insertConstant(judged, node->sourceRange()));
    node->destroy();
  });
  for_each_node(graph.block(), [&](Node* node) {
    const std::string name = node->kind().toQualString();
    const torch::jit::WithInsertPoint here(node);
    if (name == "prim::is_cuda" || name == "prim::is_cpu") {
      node->output()->replaceAllUsesWith(
          graph.insertConstant(name == "prim::is_cuda", node->sourceRange()));
      node->destroy();
    } else if (name == "prim::type") {
      node->output()->replaceAllUsesWith(
          graph.insertConstant(std::string("cuda"), node->sourceRange()));
      node->destroy();
    } else if (name == "aten::cuda") {
      node->output()->replaceAllUsesWith(node->inputs()[0]);
      node->destroy();
    } else if (name == "aten::device") {
      const auto text = torch::jit::toIValue(node->inputs()[0]);
      if (!text || !text->isString() || text->toStringRef() != "cuda") {
        reject(node, only_cuda);
      }
      node->output()->replaceAllUsesWith(graph.insertConstant(judged, node->sourceRange()));
      node->destroy();
    } else if (judged.is_cuda()) {
      put_factory_on(judged, node);
    }
  });
}

void check_rules(const Graph& graph) {
  for_each_node(graph.block(), [](const Node* node) { check_node(node); });
  content_taint taint;
  taint.run(graph.block());
  for_each_node(graph.block(), [&](const Node* node) {
    if (node->kind() != c10::prim::Loop) return;
    if (taint.is_tainted(node->inputs()[0]) || taint.is_tainted(node->inputs()[1]) ||
        taint.is_tainted(node->blocks()[0]->outputs()[0])) {
      reject(node, "a loop's bound depends on what a tensor holds");
    }
  });
}

void synchronize_operators(Graph& graph) {
  for_each_node(graph.block(), [&](Node* node) {
    if (!touches_contents(node)) return;
    Node* before = graph.create(c10::Symbol::fromQualString("hone::synchronize"), 0);
    before->setSourceRange(node->sourceRange());
    before->insertBefore(node);
  });
}

void bound_attention(Graph& graph) {
  for_each_node(graph.block(), [&](Node* node) {
    if (node->kind() != c10::Symbol::fromQualString("aten::scaled_dot_product_attention")) return;
    const torch::jit::WithInsertPoint here(node);
    Value* const keys = node->inputs()[1];
    Value* const values = node->inputs()[2];
    Value* const length = graph.insert(c10::aten::size, {keys, -2}, {}, node->sourceRange());
    Value* const as_many =
        graph.insert(c10::aten::narrow, {values, -2, 0, length}, {}, node->sourceRange());
    node->replaceInput(2, as_many);
  });
}

std::vector<std::string> launched_kernels(const Graph& graph) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for_each_node(graph.block(), [&](const Node* node) {
    if (std::string(node->kind().toQualString()) != "hone::launch") return;
    const std::string name = torch::jit::toIValue(node->inputs()[0])->toStringRef();
    if (known.insert(name).second) names.push_back(name);
  });
  return names;
}

std::size_t count_convolutions(const Graph& graph) {
  std::size_t count = 0;
  for_each_node(graph.block(), [&](const Node* node) {
    const std::string_view name = node->kind().toQualString();
    if (name.starts_with("aten::conv") || name.starts_with("aten::_conv")) ++count;
  });
  return count;
}

}  // namespace hone
