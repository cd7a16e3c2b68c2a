// ---- Compares the variant with the original, as a program.

namespace hone_exported {

// Draws tensors as the task does, in the first of the verified cases.
inline std::vector<at::Tensor> drawn(const std::vector<tensor_facts>& wanted) {
  std::vector<at::Tensor> tensors;
  for (const tensor_facts& one : wanted) {
    TORCH_CHECK(*one.drawn != '\0', "the values of ", one.name, " are not in this file");
    torch::jit::CompilationUnit unit;
    unit.define(std::nullopt, one.drawn, torchscript_names(), nullptr);
    const c10::IValue values = unit.get_function(c10::QualifiedName("draw"))({});
    tensors.push_back(values.toTensor().to(at::kCUDA, one.type).contiguous());
  }
  return tensors;
}

// Returns the time of a call in us: the median of several, each behind writes that fill the L2
// cache and keep the GPU busy while the host launches.
template <class Call>
double time_of(const Call& call) {
  constexpr int calls = 41;
  constexpr int writes = 6;
  const at::Tensor flushed = at::empty({256 << 20}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    at::cuda::CUDAEvent begin(cudaEventDefault);
    at::cuda::CUDAEvent end(cudaEventDefault);
    check(cudaDeviceSynchronize(), "the GPU");
    for (int write = 0; write < writes; ++write) flushed.zero_();
    begin.record();
    call();
    end.record();
    end.synchronize();
    times.push_back(begin.elapsed_time(end) * 1e3);
  }
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  return times[calls / 2];
}

// Prints both times. Returns the program's exit code: 1 if the original runs instead of the
// variant.
inline int compare_with_original() {
  model compared(drawn(facts().parameters));
  const std::vector<at::Tensor> inputs = drawn(facts().inputs);
  compared.forward(inputs);
  if (!compared.refusal().empty()) return 1;  // which a warning has said
  const double variant = time_of([&] { compared.forward(inputs); });
  const double original = time_of([&] { compared.original(inputs); });
  std::cout << "original " << original << " us, variant " << variant << " us, speed-up "
            << original / variant << "\n";
  return 0;
}

}  // namespace hone_exported
