#include "evaluation/sandbox/child/common/names.hpp"

#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/frontend/resolver.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <optional>
#include <set>
#include <string>

#include "embedded/functional.hpp"

namespace hone {
namespace {

using torch::jit::BuiltinFunction;
using torch::jit::ErrorReport;
using torch::jit::Graph;
using torch::jit::GraphFunction;
using torch::jit::NamedValue;
using torch::jit::SimpleValue;
using torch::jit::SourceRange;
using torch::jit::SugaredValue;
using torch::jit::SugaredValuePtr;
using torch::jit::Value;

SugaredValuePtr constant(GraphFunction& f, const c10::IValue& value, const SourceRange& loc) {
  return std::make_shared<SimpleValue>(f.graph()->insertConstant(value, loc));
}

SugaredValuePtr operator_named(const std::string& name) {
  return std::make_shared<BuiltinFunction>(c10::Symbol::fromQualString("aten::" + name),
                                           std::nullopt);
}

const std::map<std::string, at::ScalarType>& dtype_names() {
  static const std::map<std::string, at::ScalarType> names = {{"float32", at::kFloat},
                                                              {"float", at::kFloat},
                                                              {"float64", at::kDouble},
                                                              {"double", at::kDouble},
                                                              {"float16", at::kHalf},
                                                              {"half", at::kHalf},
                                                              {"bfloat16", at::kBFloat16},
                                                              {"int8", at::kChar},
                                                              {"uint8", at::kByte},
                                                              {"int16", at::kShort},
                                                              {"short", at::kShort},
                                                              {"int32", at::kInt},
                                                              {"int", at::kInt},
                                                              {"int64", at::kLong},
                                                              {"long", at::kLong},
                                                              {"bool", at::kBool},
                                                              {"complex64", at::kComplexFloat},
                                                              {"complex128", at::kComplexDouble}};
  return names;
}

std::optional<c10::IValue> number_named(const std::string& name) {
  if (name == "pi") return std::numbers::pi;
  if (name == "e") return std::numbers::e;
  if (name == "tau") return 2 * std::numbers::pi;
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

// Returns true for the names of exceptions that a program may raise.
bool is_exception(const std::string& name) {
  static const std::set<std::string> names = {"Exception",      "RuntimeError",       "ValueError",
                                              "TypeError",      "IndexError",         "KeyError",
                                              "AssertionError", "NotImplementedError"};
  return names.contains(name);
}

// Inserts a node of one of Hone's own operators, which have no outputs. Returns the constant None.
SugaredValuePtr insert_operator(Graph& graph, const char* name, const std::vector<Value*>& inputs,
                                const SourceRange& loc) {
  graph.insertNode(graph.create(c10::Symbol::fromQualString(name), inputs, 0))->setSourceRange(loc);
  return std::make_shared<SimpleValue>(graph.insertConstant(c10::IValue(), loc));
}

// launch(kernel, grid, block, *args, shared=0) becomes one node of the variadic operator.
struct launch_function : SugaredValue {
  std::string kind() const override { return "launch"; }

  SugaredValuePtr call(const SourceRange& loc, GraphFunction& f, at::ArrayRef<NamedValue> args,
                       at::ArrayRef<NamedValue> kwargs, size_t /*n_binders*/) override {
    Graph& graph = *f.graph();
    if (args.size() < 3)
      throw ErrorReport(loc) << "launch needs a kernel's name, a grid and a block";
    Value* shared = graph.insertConstant(std::int64_t{0}, loc);
    for (const NamedValue& kwarg : kwargs) {
      if (kwarg.name() != "shared")
        throw ErrorReport(loc) << "launch has no argument '" << kwarg.name() << "'";
      shared = kwarg.value(graph);
      if (shared->type()->kind() != c10::TypeKind::IntType)
        throw ErrorReport(loc) << "launch: shared must be an int";
    }
    Value* name = args[0].value(graph);
    if (const auto known = torch::jit::toIValue(name); !known || !known->isString()) {
      throw ErrorReport(loc) << "launch: the kernel's name must be a string constant";
    }
    std::vector<Value*> inputs = {name, dimensions(graph, args[1].value(graph), loc, "grid"),
                                  dimensions(graph, args[2].value(graph), loc, "block"), shared};
    for (std::size_t i = 3; i < args.size(); ++i) {
      Value* value = args[i].value(graph);
      const c10::TypeKind type = value->type()->kind();
      if (type != c10::TypeKind::TensorType && type != c10::TypeKind::IntType &&
          type != c10::TypeKind::FloatType && type != c10::TypeKind::BoolType) {
        throw ErrorReport(loc) << "launch: argument " << i - 2 << " of the kernel is a "
                               << value->type()->repr_str()
                               << "; expected a Tensor, an int, a float or a bool";
      }
      inputs.push_back(value);
    }
    return insert_operator(graph, "hone::launch", inputs, loc);
  }

 private:
  // Returns a list of ints unchanged, and a tuple or a single int as a list.
  static Value* dimensions(Graph& graph, Value* value, const SourceRange& loc, const char* what) {
    if (value->type()->isSubtypeOf(*c10::ListType::ofInts())) return value;
    std::vector<Value*> parts;
    if (value->type()->kind() == c10::TypeKind::IntType) parts = {value};
    if (value->type()->kind() == c10::TypeKind::TupleType) {
      const auto outputs = graph.insertNode(graph.createTupleUnpack(value))->outputs();
      parts.assign(outputs.begin(), outputs.end());
    }
    for (const Value* part : parts) {
      if (part->type()->kind() != c10::TypeKind::IntType) parts.clear();
    }
    if (parts.empty())
      throw ErrorReport(loc) << "launch: the " << what << " must be one to three ints";
    return graph.insertNode(graph.createList(c10::IntType::get(), parts))->output();
  }
};

// stream(k) and join() become one node each.
struct stream_function : SugaredValue {
  std::string kind() const override { return "stream"; }
  SugaredValuePtr call(const SourceRange& loc, GraphFunction& f, at::ArrayRef<NamedValue> args,
                       at::ArrayRef<NamedValue> kwargs, size_t /*n_binders*/) override {
    Graph& graph = *f.graph();
    if (args.size() != 1 || !kwargs.empty()) throw ErrorReport(loc) << "stream takes one int";
    Value* k = args[0].value(graph);
    if (k->type()->kind() != c10::TypeKind::IntType)
      throw ErrorReport(loc) << "stream takes one int";
    return insert_operator(graph, "hone::stream", {k}, loc);
  }
};

struct join_function : SugaredValue {
  std::string kind() const override { return "join"; }
  SugaredValuePtr call(const SourceRange& loc, GraphFunction& f, at::ArrayRef<NamedValue> args,
                       at::ArrayRef<NamedValue> kwargs, size_t /*n_binders*/) override {
    if (!args.empty() || !kwargs.empty()) throw ErrorReport(loc) << "join takes no arguments";
    return insert_operator(*f.graph(), "hone::join", {}, loc);
  }
};

// torch.einsum takes its operands one by one or as a list; the operator takes only a list.
struct einsum_function : SugaredValue {
  std::string kind() const override { return "einsum"; }
  SugaredValuePtr call(const SourceRange& loc, GraphFunction& f, at::ArrayRef<NamedValue> args,
                       at::ArrayRef<NamedValue> kwargs, size_t n_binders) override {
    Graph& graph = *f.graph();
    std::vector<NamedValue> packed(args.begin(), args.end());
    if (args.size() > 1 && args[1].value(graph)->type()->isSubtypeOf(*c10::TensorType::get())) {
      std::vector<Value*> operands;
      for (std::size_t i = 1; i < args.size(); ++i) operands.push_back(args[i].value(graph));
      Value* list = graph.insertNode(graph.createList(c10::TensorType::get(), operands))->output();
      packed = {args[0], NamedValue(loc, list)};
    }
    return operator_named("einsum")->call(loc, f, packed, kwargs, n_binders);
  }
};

// Operators whose names share a prefix. For example, torch.linalg.norm is aten::linalg_norm.
struct prefixed_operators : SugaredValue {
  explicit prefixed_operators(std::string p) : prefix(std::move(p)) {}
  std::string kind() const override { return "module"; }
  SugaredValuePtr attr(const SourceRange& /*loc*/, GraphFunction& /*f*/,
                       const std::string& field) override {
    return operator_named(prefix + field);
  }
  std::string prefix;
};

struct math_module : SugaredValue {
  std::string kind() const override { return "module"; }
  SugaredValuePtr attr(const SourceRange& loc, GraphFunction& f,
                       const std::string& field) override {
    if (const auto number = number_named(field)) return constant(f, *number, loc);
    return operator_named(field);
  }
};

torch::jit::CompilationUnit& functional_unit();

struct functional_module : SugaredValue {
  std::string kind() const override { return "module"; }
  SugaredValuePtr attr(const SourceRange& /*loc*/, GraphFunction& /*f*/,
                       const std::string& field) override {
    if (auto* function = functional_unit().find_function(c10::QualifiedName(field)))
      return std::make_shared<torch::jit::FunctionValue>(function);
    if (field == "interpolate" || field == "upsample") return operator_named("__" + field);
    return operator_named(field);
  }
};

struct nn_module : SugaredValue {
  std::string kind() const override { return "module"; }
  SugaredValuePtr attr(const SourceRange& loc, GraphFunction& f,
                       const std::string& field) override {
    if (field == "functional") return std::make_shared<functional_module>();
    return SugaredValue::attr(loc, f, field);
  }
};

struct torch_module : SugaredValue {
  std::string kind() const override { return "module"; }
  SugaredValuePtr attr(const SourceRange& loc, GraphFunction& f,
                       const std::string& field) override {
    if (const auto type = dtype_names().find(field); type != dtype_names().end())
      return constant(f, static_cast<std::int64_t>(type->second), loc);
    if (const auto number = number_named(field)) return constant(f, *number, loc);
    if (field == "nn") return std::make_shared<nn_module>();
    if (field == "einsum") return std::make_shared<einsum_function>();
    if (field == "linalg" || field == "fft" || field == "special")
      return std::make_shared<prefixed_operators>(field + "_");
    if (field == "ops" || field == "aten") return std::make_shared<aten_path>();
    if (field == "contiguous_format")
      return constant(f, static_cast<std::int64_t>(at::MemoryFormat::Contiguous), loc);
    if (field == "preserve_format")
      return constant(f, static_cast<std::int64_t>(at::MemoryFormat::Preserve), loc);
    if (field == "channels_last")
      return constant(f, static_cast<std::int64_t>(at::MemoryFormat::ChannelsLast), loc);
    if (field == "channels_last_3d")
      return constant(f, static_cast<std::int64_t>(at::MemoryFormat::ChannelsLast3d), loc);
    if (field == "strided") return constant(f, static_cast<std::int64_t>(at::kStrided), loc);
    return operator_named(field);
  }

 private:
  // torch.ops.aten.NAME
  struct aten_path : SugaredValue {
    std::string kind() const override { return "module"; }
    SugaredValuePtr attr(const SourceRange& loc, GraphFunction& f,
                         const std::string& field) override {
      if (field == "aten") return std::make_shared<prefixed_operators>("");
      return SugaredValue::attr(loc, f, field);
    }
  };
};

struct names : torch::jit::Resolver {
  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& /*f*/,
                               const SourceRange& /*loc*/) override {
    if (name == "torch") return std::make_shared<torch_module>();
    if (name == "F") return std::make_shared<functional_module>();
    if (name == "math") return std::make_shared<math_module>();
    if (name == "launch") return std::make_shared<launch_function>();
    if (name == "stream") return std::make_shared<stream_function>();
    if (name == "join") return std::make_shared<join_function>();
    if (is_exception(name)) return std::make_shared<torch::jit::ExceptionValue>(name);
    return nullptr;
  }
  c10::TypePtr resolveType(const std::string& /*name*/, const SourceRange& /*loc*/) override {
    return nullptr;
  }
};

torch::jit::CompilationUnit& functional_unit() {
  static torch::jit::CompilationUnit unit = [] {
    torch::jit::CompilationUnit compiled;
    compiled.define(std::nullopt, std::string(embedded::functional), std::make_shared<names>(),
                    nullptr);
    return compiled;
  }();
  return unit;
}

}  // namespace

std::shared_ptr<torch::jit::Resolver> torchscript_names() {
  functional_unit();
  return std::make_shared<names>();
}

}  // namespace hone
