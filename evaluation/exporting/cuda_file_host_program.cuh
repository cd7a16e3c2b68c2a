// ---- Runs a host program by LibTorch's interpreter.

namespace hone_exported {

// The streams of a call. Side stream k begins behind the work of the main stream, and join() puts
// all work before it in front of all work behind it.
class call_streams {
 public:
  void begin() {
    const at::cuda::CUDAStream now = at::cuda::getCurrentCUDAStream();
    if (main_ && main_->device_index() != now.device_index()) {
      side_ = {};
      done_ = {};
    }
    main_.emplace(now);
    ahead_.fill(false);
    current_ = 0;
  }

  void use(std::int64_t k) {
    TORCH_CHECK(k >= 0 && k <= sides, "stream(", k, "): expected 0 to ", sides);
    current_ = static_cast<std::size_t>(k);
    if (current_ > 0 && !ahead_[current_]) fork(current_);
    at::cuda::setCurrentCUDAStream(stream(current_));
  }

  void join() {
    for (std::size_t k = 1; k <= sides; ++k) {
      if (!ahead_[k]) continue;
      done_[k].record(stream(k));
      done_[k].block(*main_);
      ahead_[k] = false;
    }
    if (current_ > 0) fork(current_);
  }

  void end() {
    current_ = 0;
    join();
    at::cuda::setCurrentCUDAStream(*main_);
  }

 private:
  static constexpr std::int64_t sides = 8;

  at::cuda::CUDAStream stream(std::size_t k) {
    if (k == 0) return *main_;
    if (!side_[k]) side_[k].emplace(at::cuda::getStreamFromPool(false, main_->device_index()));
    return *side_[k];
  }

  void fork(std::size_t k) {
    done_[0].record(*main_);
    done_[0].block(stream(k));
    ahead_[k] = true;
  }

  std::optional<at::cuda::CUDAStream> main_;
  std::array<std::optional<at::cuda::CUDAStream>, sides + 1> side_;
  std::array<at::cuda::CUDAEvent, sides + 1> done_;
  std::array<bool, sides + 1> ahead_{};
  std::size_t current_ = 0;
};

// What launch(), stream() and join() of the running program mean.
struct surroundings {
  const std::map<std::string, launcher>* kernels = nullptr;
  call_streams* streams = nullptr;
  // Tensors of the call. The allocator would give the memory of one to the stream on which it was
  // made while another stream still reads it.
  std::vector<at::Tensor> kept;
};
inline thread_local surroundings* running = nullptr;

inline dim3 extents(const std::vector<std::int64_t>& given) {
  const auto extent = [&](std::size_t i) {
    return given.size() > i ? static_cast<unsigned>(given[i]) : 1U;
  };
  return {extent(0), extent(1), extent(2)};
}

inline void run_launch(torch::jit::Stack& stack) {
  const auto count = static_cast<std::size_t>(torch::jit::pop(stack).toInt());
  const std::vector<c10::IValue> inputs = torch::jit::pop(stack, count);
  const std::string& name = inputs[0].toStringRef();
  const auto found = running->kernels->find(name);
  TORCH_CHECK(found != running->kernels->end(), "there is no kernel '", name, "'");
  found->second({extents(inputs[1].toIntVector()), extents(inputs[2].toIntVector()),
                 static_cast<std::size_t>(inputs[3].toInt())},
                at::ArrayRef<c10::IValue>(inputs).slice(4));
}

inline void run_stream(torch::jit::Stack& stack) {
  running->streams->use(torch::jit::pop(stack).toInt());
}

inline void run_join(torch::jit::Stack& /*stack*/) { running->streams->join(); }

inline void run_keep(torch::jit::Stack& stack) {
  running->kept.push_back(torch::jit::pop(stack).toTensor());
}

// PyTorch subtracts from a number in one launch, and TorchScript itself in two.
inline void run_difference(torch::jit::Stack& stack) {
  const at::Tensor subtrahend = torch::jit::pop(stack).toTensor();
  const c10::Scalar minuend = torch::jit::pop(stack).toScalar();
  stack.emplace_back(at::rsub(subtrahend, minuend));
}

inline void register_operators() {
  static const bool done = [] {
    const auto add = [](const char* schema, void (*run)(torch::jit::Stack&)) {
      torch::jit::registerOperator(
          torch::jit::Operator(schema, run, c10::AliasAnalysisKind::CONSERVATIVE));
    };
    add("hone::launch(str kernel, int[] grid, int[] block, int shared, ...) -> ()", run_launch);
    add("hone::stream(int k) -> ()", run_stream);
    add("hone::join() -> ()", run_join);
    add("hone::keep(Tensor made) -> ()", run_keep);
    add("aten::sub.from_number(Scalar self, Tensor other) -> Tensor", run_difference);
    return true;
  }();
  (void)done;
}

inline bool takes_tensors(const c10::FunctionSchema& schema) {
  const auto& declared = schema.arguments();
  return std::any_of(declared.begin(), declared.end(), [](const c10::Argument& argument) {
    return argument.type()->isSubtypeOf(*c10::TensorType::get()) ||
           argument.type()->isSubtypeOf(*c10::ListType::ofTensors());
  });
}

// Lets operators that make tensors of none, and name no device, make them on the GPU.
inline void make_tensors_on_gpu(torch::jit::Block* block) {
  for (torch::jit::Node* node : block->nodes()) {
    for (torch::jit::Block* inner : node->blocks()) make_tensors_on_gpu(inner);
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr || takes_tensors(*schema)) continue;
    const auto place = schema->argumentIndexWithName("device");
    if (!place || static_cast<std::size_t>(*place) >= node->inputs().size()) continue;
    const auto given = torch::jit::toIValue(node->inputs()[static_cast<std::size_t>(*place)]);
    if (!given || !given->isNone()) continue;
    const torch::jit::WithInsertPoint here(node);
    node->replaceInput(static_cast<std::size_t>(*place),
                       node->owningGraph()->insertConstant(c10::Device(c10::kCUDA)));
  }
}

// Keeps every tensor that an operator makes until the end of the call.
inline void keep_tensors(torch::jit::Block* block) {
  const std::vector<torch::jit::Node*> nodes(block->nodes().begin(), block->nodes().end());
  for (torch::jit::Node* node : nodes) {
    for (torch::jit::Block* inner : node->blocks()) keep_tensors(inner);
    if (!node->kind().is_aten()) continue;
    for (torch::jit::Value* made : node->outputs()) {
      if (!made->type()->isSubtypeOf(*c10::TensorType::get())) continue;
      node->owningGraph()
          ->create(c10::Symbol::fromQualString("hone::keep"), {made}, 0)
          ->insertAfter(node);
    }
  }
}

// The functions forward() and, if there is one, prepare() of a program.
class host_program {
 public:
  explicit host_program(const std::string& source, bool uses_streams = false) {
    register_operators();
    torch::jit::Parser parser(std::make_shared<torch::jit::Source>(source, "python", 1));
    std::vector<torch::jit::Def> definitions;
    std::vector<torch::jit::ResolverPtr> resolvers;
    while (parser.lexer().cur().kind != torch::jit::TK_EOF) {
      definitions.emplace_back(parser.parseFunction(/*is_method=*/false));
      resolvers.push_back(torchscript_names());
    }
    unit_.define(std::nullopt, {}, {}, definitions, resolvers, nullptr);
    forward_.emplace(code_of("forward", uses_streams));
    if (unit_.find_function(c10::QualifiedName("prepare")) != nullptr)
      prepare_.emplace(code_of("prepare", uses_streams));
  }

  // Returns what forward() takes behind the inputs.
  std::vector<c10::IValue> prepare(const std::vector<at::Tensor>& parameters) const {
    torch::jit::Stack stack(parameters.begin(), parameters.end());
    return prepare_ ? run(*prepare_, std::move(stack)) : stack;
  }

  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs,
                                  const std::vector<c10::IValue>& prepared) const {
    torch::jit::Stack stack(inputs.begin(), inputs.end());
    stack.insert(stack.end(), prepared.begin(), prepared.end());
    std::vector<at::Tensor> outputs;
    for (const c10::IValue& made : run(*forward_, std::move(stack)))
      outputs.push_back(made.toTensor());
    return outputs;
  }

 private:
  torch::jit::Code code_of(const std::string& name, bool uses_streams) {
    auto graph =
        torch::jit::toGraphFunction(unit_.get_function(c10::QualifiedName(name))).graph()->copy();
    constexpr int max_levels = 64;  // of functions that call functions
    for (int level = 0; level < max_levels; ++level) torch::jit::Inline(*graph);
    make_tensors_on_gpu(graph->block());
    if (uses_streams) keep_tensors(graph->block());
    torch::jit::runRequiredPasses(graph);
    return torch::jit::Code(graph, name);
  }

  static std::vector<c10::IValue> run(const torch::jit::Code& code, torch::jit::Stack stack) {
    torch::jit::InterpreterState(code).run(stack);
    if (!stack.front().isTuple()) return stack;
    return stack.front().toTupleRef().elements().vec();
  }

  torch::jit::CompilationUnit unit_;
  std::optional<torch::jit::Code> forward_;
  std::optional<torch::jit::Code> prepare_;
};

// LibTorch's settings of precision, for as long as the object lives.
class numerics_scope {
 public:
  numerics_scope(bool tf32, bool cudnn_benchmark)
      : tf32_(at::globalContext().allowTF32CuBLAS()),
        cudnn_tf32_(at::globalContext().allowTF32CuDNN()),
        cudnn_benchmark_(at::globalContext().benchmarkCuDNN()) {
    set(tf32, tf32, cudnn_benchmark);
  }
  ~numerics_scope() { set(tf32_, cudnn_tf32_, cudnn_benchmark_); }
  numerics_scope(const numerics_scope&) = delete;
  numerics_scope& operator=(const numerics_scope&) = delete;

 private:
  static void set(bool tf32, bool cudnn_tf32, bool cudnn_benchmark) {
    at::globalContext().setAllowTF32CuBLAS(tf32);
    at::globalContext().setAllowTF32CuDNN(cudnn_tf32);
    at::globalContext().setBenchmarkCuDNN(cudnn_benchmark);
  }
  bool tf32_;
  bool cudnn_tf32_;
  bool cudnn_benchmark_;
};

}  // namespace hone_exported
