// ---- Runs the variant where it was verified and agrees with the original, else the original.

namespace hone_exported {

struct tolerance {
  double rtol;
  double atol;
};

// A tensor of the task: its name, how it is drawn, and its shape in each verified case.
struct tensor_facts {
  const char* name;
  at::ScalarType type;
  std::vector<std::vector<std::int64_t>> shapes;
  const char* drawn;  // TorchScript: a function draw() that returns the values on the CPU, or ""
};

// The file's description of the variant and its task.
struct facts_of_variant {
  const char* program;
  const char* original;
  std::map<std::string, launcher> kernels;
  bool tf32;
  bool cudnn_benchmark;
  bool cuda_graph;
  bool uses_streams;
  std::vector<tensor_facts> inputs;
  std::vector<tensor_facts> parameters;
  std::map<at::ScalarType, tolerance> tolerances;  // of results with floating-point numbers
};
const facts_of_variant& facts();

// Returns true if a result is as close to the original's as the task asks. The original is not
// exact itself, so that a result may be twice as far from it.
inline bool agrees(const at::Tensor& given, const at::Tensor& expected) {
  if (given.sizes() != expected.sizes() || given.scalar_type() != expected.scalar_type())
    return false;
  if (!expected.is_floating_point()) return at::equal(given, expected);
  const auto [rtol, atol] = facts().tolerances.at(expected.scalar_type());
  const at::Tensor finite = expected.isfinite();
  if (!at::equal(given.isfinite(), finite)) return false;
  const at::Tensor a = given.masked_select(finite).to(at::kDouble);
  const at::Tensor b = expected.masked_select(finite).to(at::kDouble);
  if (b.numel() == 0) return true;
  const at::Tensor allowed = b.square().mean().sqrt() * atol + b.abs() * rtol;
  return !((a - b).abs() > allowed * 2).any().item<bool>();
}

// A call as a CUDA graph. It keeps the memory of its outputs.
class captured_call {
 public:
  template <class Call>
  explicit captured_call(const Call& call) {
    const c10::cuda::CUDAStreamGuard on(at::cuda::getStreamFromPool());
    check(cudaDeviceSynchronize(), "the GPU");
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      outputs_ = call();
    } catch (...) {
      graph_.capture_end();
      throw;
    }
    graph_.capture_end();
    for (const at::Tensor& output : outputs_) own_uses_.push_back(output.storage().use_count());
  }

  // Returns true if a result of the last replay is still held, which the next would overwrite.
  bool is_held() const {
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].storage().use_count() != own_uses_[i]) return true;
    return false;
  }

  std::vector<at::Tensor> replay() {
    graph_.replay();
    std::vector<at::Tensor> made;
    for (const at::Tensor& output : outputs_) made.push_back(output.alias());
    return made;
  }

 private:
  at::cuda::CUDAGraph graph_;
  std::vector<at::Tensor> outputs_;
  std::vector<std::size_t> own_uses_;
};

// A call that comes a second time with the same addresses is captured, and replayed from then on.
// Two graphs take turns where the caller holds the last result during the next call.
class call_graphs {
 public:
  void clear() { captured_.clear(); }

  template <class Call>
  std::vector<at::Tensor> call(const std::vector<at::Tensor>& inputs, const Call& call) {
    constexpr std::size_t max_addresses = 8;
    constexpr std::size_t max_captures = 2;
    std::vector<std::int64_t> key = {at::cuda::getCurrentCUDAStream().id()};
    for (const at::Tensor& x : inputs) {
      key.push_back(reinterpret_cast<std::intptr_t>(x.data_ptr()));
      key.insert(key.end(), x.sizes().begin(), x.sizes().end());
    }
    const auto found = captured_.find(key);
    if (found == captured_.end()) {
      if (captured_.size() == max_addresses) captured_.clear();
      captured_[std::move(key)];
      return call();
    }
    auto& captured = found->second;
    for (const auto& graph : captured)
      if (!graph->is_held()) return graph->replay();
    if (captured.size() == max_captures) return call();
    captured.push_back(std::make_unique<captured_call>(call));
    return captured.back()->replay();
  }

 private:
  std::map<std::vector<std::int64_t>, std::vector<std::unique_ptr<captured_call>>> captured_;
};

class model::state {
 public:
  explicit state(std::vector<at::Tensor> parameters)
      : variant_(facts().program, facts().uses_streams), original_(facts().original) {
    set_parameters(std::move(parameters));
  }

  void set_parameters(std::vector<at::Tensor> parameters) {
    TORCH_CHECK(parameters.size() == facts().parameters.size(), "the module has ",
                facts().parameters.size(), " parameters, not ", parameters.size());
    for (at::Tensor& p : parameters) p = p.detach().contiguous();
    parameters_ = std::move(parameters);
    is_prepared_ = false;
    refusals_.clear();
    graphs_.clear();
  }

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& given, bool any_shape) {
    std::vector<at::Tensor> inputs;
    std::vector<std::int64_t> kind = {any_shape ? 1 : 0};
    for (const at::Tensor& x : given) {
      inputs.push_back(x.detach().contiguous());
      kind.push_back(static_cast<std::int64_t>(x.scalar_type()));
      kind.push_back(x.is_cuda() ? x.get_device() : -1);
      kind.insert(kind.end(), x.sizes().begin(), x.sizes().end());
    }
    const auto known = refusals_.find(kind);
    if (known != refusals_.end() && known->second.empty()) return run_variant(inputs);
    if (known == refusals_.end()) {
      refusal_ = reason_against(inputs, any_shape);
      if (refusal_.empty()) refusal_ = compare(inputs);
      if (!refusal_.empty()) TORCH_WARN("the original runs instead of the variant: ", refusal_);
      refusals_[std::move(kind)] = refusal_;
      if (refusal_.empty()) return run_variant(inputs);
    } else {
      refusal_ = known->second;
    }
    return run_original(inputs);
  }

  std::vector<at::Tensor> run_original(const std::vector<at::Tensor>& inputs) {
    const c10::InferenceMode no_gradients;
    const c10::OptionalDeviceGuard on(at::device_of(inputs));
    const numerics_scope strict(false, false);
    return original_.forward(inputs, {parameters_.begin(), parameters_.end()});
  }

  const std::string& refusal() const { return refusal_; }

 private:
  std::vector<at::Tensor> run_variant(const std::vector<at::Tensor>& inputs) {
    refusal_.clear();
    const c10::InferenceMode no_gradients;
    const c10::OptionalDeviceGuard on(at::device_of(inputs));
    const numerics_scope numerics(facts().tf32, facts().cudnn_benchmark);
    if (!is_prepared_) {
      in_surroundings([&] { prepared_ = variant_.prepare(parameters_); });
      is_prepared_ = true;
    }
    const auto call = [&] {
      std::vector<at::Tensor> outputs;
      in_surroundings([&] { outputs = variant_.forward(inputs, prepared_); });
      return outputs;
    };
    const bool is_capturing =
        at::cuda::currentStreamCaptureStatusMayInitCtx() != at::cuda::CaptureStatus::None;
    return facts().cuda_graph && !is_capturing ? graphs_.call(inputs, call) : call();
  }

  template <class Work>
  void in_surroundings(const Work& work) {
    surroundings here{&facts().kernels, &streams_, {}};
    surroundings* const outer = std::exchange(running, &here);
    streams_.begin();
    const auto end = [&] {
      streams_.end();
      running = outer;
    };
    try {
      work();
    } catch (...) {
      end();
      throw;
    }
    end();
  }

  // Returns why the variant cannot serve a call, or "".
  std::string reason_against(const std::vector<at::Tensor>& inputs, bool any_shape) const {
    if (inputs.size() != facts().inputs.size())
      return "it takes " + std::to_string(facts().inputs.size()) + " tensors";
    std::vector<at::Tensor> all = inputs;
    all.insert(all.end(), parameters_.begin(), parameters_.end());
    for (const at::Tensor& x : all)
      if (!x.is_cuda() || x.get_device() != all.front().get_device()) return "it runs on one GPU";
    const auto have_types = [](const std::vector<at::Tensor>& tensors,
                               const std::vector<tensor_facts>& wanted) {
      for (std::size_t i = 0; i < tensors.size(); ++i)
        if (tensors[i].scalar_type() != wanted[i].type) return false;
      return true;
    };
    if (!have_types(inputs, facts().inputs) || !have_types(parameters_, facts().parameters))
      return "it was not made for these types";
    for (std::size_t at = 0; at < facts().inputs.front().shapes.size(); ++at)
      if (have_shapes(inputs, facts().inputs, at) &&
          have_shapes(parameters_, facts().parameters, at))
        return "";
    return any_shape ? "" : "it was not verified for these shapes (any_shape allows them)";
  }

  static bool have_shapes(const std::vector<at::Tensor>& tensors,
                          const std::vector<tensor_facts>& wanted, std::size_t at) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].sizes() != at::IntArrayRef(wanted[i].shapes[at])) return false;
    return true;
  }

  // Runs the variant and the original. Returns why the variant is not used, or "".
  std::string compare(const std::vector<at::Tensor>& inputs) {
    const std::vector<at::Tensor> expected = run_original(inputs);
    try {
      const std::vector<at::Tensor> given = run_variant(inputs);
      bool same = given.size() == expected.size();
      for (std::size_t i = 0; same && i < given.size(); ++i) same = agrees(given[i], expected[i]);
      return same ? "" : "its result differs from the original's";
    } catch (const std::exception& error) {
      return std::string("it fails here: ") + error.what();
    }
  }

  host_program variant_;
  host_program original_;
  std::vector<at::Tensor> parameters_;
  std::vector<c10::IValue> prepared_;
  bool is_prepared_ = false;
  std::map<std::vector<std::int64_t>, std::string> refusals_;  // by the kind of call
  std::string refusal_;                                        // of the last call
  call_streams streams_;
  call_graphs graphs_;
};

model::model(std::vector<at::Tensor> parameters)
    : state_(std::make_shared<state>(std::move(parameters))) {}
std::vector<at::Tensor> model::forward(const std::vector<at::Tensor>& inputs) {
  return state_->run(inputs, any_shape);
}
std::vector<at::Tensor> model::original(const std::vector<at::Tensor>& inputs) {
  return state_->run_original(inputs);
}
void model::set_parameters(std::vector<at::Tensor> parameters) {
  state_->set_parameters(std::move(parameters));
}
const std::string& model::refusal() const { return state_->refusal(); }

}  // namespace hone_exported
