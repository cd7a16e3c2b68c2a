#include "evaluation/backends/cuda/gpu_context.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "evaluation/judge/element_rule.cuh"
#include "evaluation/program/arena_layout.hpp"

namespace hone {
namespace {

constexpr unsigned threads_per_block = 256;  // judge_kernels/comparison.cuh relies on it
constexpr unsigned blocks_per_multiprocessor = 8;

// The pairs of one launch; `pairs` in judge_kernels/memory.cuh has the same size.
constexpr std::size_t max_pairs = 128;
using pair_list = std::array<gpu_context::range_pair, max_pairs>;
static_assert(sizeof(gpu_context::range_pair) == 24);

// The drawings of one launch; `placements` in judge_kernels/drawing.cuh has the same size.
constexpr std::size_t max_drawings = 48;
using drawing_list = std::array<gpu_placed_drawing, max_drawings>;
static_assert(sizeof(gpu_placed_drawing) == 64);

constexpr std::size_t max_argument_bytes = 4096;  // of a launch, on every GPU
static_assert(sizeof(pair_list) + sizeof(CUdeviceptr) <= max_argument_bytes);
static_assert(sizeof(drawing_list) <= max_argument_bytes);

// A strided tensor. Must have the layout of `strided` in judge_kernels/memory.cuh.
struct gpu_strided {
  std::uint64_t n = 0;
  std::int32_t dimensions = 0;
  std::int32_t bytes = 0;
  std::array<std::int64_t, 12> sizes{};
  std::array<std::int64_t, 12> strides{};
};

}  // namespace

// An output and the expected ones. Must have the layout of `compared` in
// judge_kernels/comparison.cuh.
struct gpu_context::comparison {
  CUdeviceptr actual = 0;
  CUdeviceptr own = 0;
  CUdeviceptr wide = 0;
  CUdeviceptr settled = 0;
  std::array<CUdeviceptr, JUDGE_MOST_NOISY> noisy{};
  std::array<CUdeviceptr, JUDGE_MOST_ALTERNATIVES> alternatives{};
  std::int32_t noisy_count = 0;
  std::int32_t alternative_count = 0;
  std::uint64_t n = 0;
  std::int32_t type = 0;
  double unit = 0;
  double least = 0;
  judging::output_scale scale{};
};

gpu_memory::gpu_memory(const cuda_driver& driver, std::uint64_t bytes)
    : driver_(&driver), bytes_(bytes) {
  driver.check(driver.cuMemAlloc(&at_, std::max<std::uint64_t>(bytes, 1)),
               "allocating " + std::to_string(bytes >> 20U) + " MiB of a GPU's memory");
}

gpu_memory::~gpu_memory() {
  if (at_ != 0) driver_->cuMemFree(at_);
}

gpu_event::gpu_event(const cuda_driver& driver) : driver_(&driver) {
  driver.check(driver.cuEventCreate(&event_, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING),
               "making an event");
  CUipcEventHandle handle{};
  driver.check(driver.cuIpcGetEventHandle(&handle, event_), "sharing an event");
  handle_.assign(reinterpret_cast<const char*>(&handle), sizeof handle);
}

gpu_event::~gpu_event() { driver_->cuEventDestroy(event_); }

gpu_context::gpu_context(const gpu_facts& facts) : driver_(&cuda_driver::get()) {
  driver_->check(driver_->cuDeviceGet(&device_, facts.ordinal), "finding the GPU");
  CUcontext context = nullptr;
  driver_->check(driver_->cuDevicePrimaryCtxRetain(&context, device_), "making a context");
  driver_->check(driver_->cuCtxSetCurrent(context), "taking a context");
  driver_->check(driver_->cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
  blocks_ = static_cast<unsigned>(facts.multiprocessors) * blocks_per_multiprocessor;
  flag_ = allocate(sizeof(std::uint32_t));
  partial_ = allocate(blocks_ * sizeof(judging::measures));
}

gpu_context& gpu_context::load(const std::vector<compiled_block>& kernels) {
  for (const compiled_block& block : kernels) {
    CUmodule& loaded = modules_.emplace_back(nullptr);
    driver_->check(driver_->cuModuleLoadData(&loaded, block.code.data()),
                   "loading the judge's kernels");
    for (const kernel_facts& k : block.kernels)
      driver_->check(driver_->cuModuleGetFunction(&kernels_[k.name], loaded, k.symbol.c_str()),
                     "finding the judge's kernels");
  }
  return *this;
}

gpu_context::~gpu_context() {
  flag_ = {};
  partial_ = {};
  ranges_ = {};
  for (CUmodule loaded : modules_) {
    if (loaded != nullptr) driver_->cuModuleUnload(loaded);
  }
  if (stream_ != nullptr) driver_->cuStreamDestroy(stream_);
  driver_->cuDevicePrimaryCtxRelease(device_);
}

void gpu_context::grow(gpu_memory& memory, std::uint64_t bytes) const {
  if (memory.bytes() >= bytes && memory.at() != 0) return;
  memory = {};
  memory = allocate(bytes);
}

std::string gpu_context::export_handle(const gpu_memory& memory) const {
  CUipcMemHandle handle{};
  driver_->check(driver_->cuIpcGetMemHandle(&handle, memory.at()), "sharing a GPU's memory");
  return {reinterpret_cast<const char*>(&handle), sizeof handle};
}

void gpu_context::record(const gpu_event& event) const {
  driver_->check(driver_->cuEventRecord(event.at(), stream_), "recording an event");
}

void gpu_context::fill(CUdeviceptr at, unsigned char value, std::uint64_t bytes) const {
  if (bytes > 0)
    driver_->check(driver_->cuMemsetD8Async(at, value, bytes, stream_), "filling memory");
}

void gpu_context::copy(CUdeviceptr to, CUdeviceptr from, std::uint64_t bytes) const {
  if (bytes > 0)
    driver_->check(driver_->cuMemcpyDtoDAsync(to, from, bytes, stream_), "copying memory");
}

void gpu_context::upload(CUdeviceptr to, const void* from, std::uint64_t bytes) const {
  if (bytes == 0) return;
  driver_->check(driver_->cuMemcpyHtoDAsync(to, from, bytes, stream_), "sending memory to a GPU");
  finish();
}

void gpu_context::download(void* to, CUdeviceptr from, std::uint64_t bytes) const {
  if (bytes == 0) return;
  driver_->check(driver_->cuMemcpyDtoHAsync(to, from, bytes, stream_), "reading a GPU's memory");
  finish();
}

void gpu_context::finish() const {
  driver_->check(driver_->cuStreamSynchronize(stream_), "waiting for the judge's kernels");
}

void gpu_context::launch(const char* name, std::uint64_t threads, void** arguments,
                         std::size_t rows) const {
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::uint64_t>((threads + threads_per_block - 1) / threads_per_block, 1, blocks_));
  driver_->check(driver_->cuLaunchKernel(kernel(name), blocks, static_cast<unsigned>(rows), 1,
                                         threads_per_block, 1, 1, 0, stream_, arguments, nullptr),
                 std::string("starting ") + name);
}

void gpu_context::draw_all(std::span<const gpu_placed_drawing> drawings) const {
  for (std::size_t first = 0; first < drawings.size(); first += max_drawings) {
    const auto some = drawings.subspan(first, std::min(max_drawings, drawings.size() - first));
    drawing_list list{};
    std::copy(some.begin(), some.end(), list.begin());
    std::uint64_t largest = 0;
    for (const gpu_placed_drawing& one : some) largest = std::max(largest, one.what.n);
    std::array<void*, 1> arguments = {&list};
    launch("draw", (largest + 3) / 4, arguments.data(), some.size());
  }
}

void gpu_context::vary(CUdeviceptr at, dtype type, const variation& v) const {
  auto number = static_cast<std::int32_t>(type);
  variation changed = v;
  std::array<void*, 3> arguments = {&at, &number, &changed};
  launch("vary", v.n, arguments.data());
}

void gpu_context::vary_data(CUdeviceptr to, CUdeviceptr from, dtype type, std::uint64_t n,
                            const variation& v) const {
  auto number = static_cast<std::int32_t>(type);
  variation changed = v;
  std::array<void*, 5> arguments = {&to, &from, &number, &n, &changed};
  launch("vary_data", n, arguments.data());
}

void gpu_context::perturb(CUdeviceptr to, const gpu_drawing& drawing, std::uint64_t seed,
                          int count) const {
  if (drawing.n == 0) return;
  gpu_drawing d = drawing;
  std::array<void*, 4> arguments = {&to, &d, &seed, &count};
  driver_->check(driver_->cuLaunchKernel(kernel("perturb"), 1, 1, 1, 1, 1, 1, 0, stream_,
                                         arguments.data(), nullptr),
                 "starting perturb");
}

void gpu_context::scramble(CUdeviceptr at, std::uint64_t bytes, std::uint64_t key) const {
  if (bytes == 0) return;
  std::array<void*, 3> arguments = {&at, &bytes, &key};
  launch("scramble", (bytes + 15) / 16, arguments.data());
}

void gpu_context::convert(CUdeviceptr to, dtype to_type, CUdeviceptr from, dtype from_type,
                          std::uint64_t n) const {
  if (n == 0) return;
  auto to_number = static_cast<std::int32_t>(to_type);
  auto from_number = static_cast<std::int32_t>(from_type);
  std::array<void*, 5> arguments = {&to, &to_number, &from, &from_number, &n};
  launch("convert", n, arguments.data());
}

void gpu_context::gather(CUdeviceptr to, CUdeviceptr from, const tensor_layout& layout,
                         const std::vector<std::int64_t>& strides) const {
  gpu_strided s;
  s.n = layout.elements();
  if (s.n == 0) return;
  s.dimensions = static_cast<std::int32_t>(layout.shape.size());
  s.bytes = static_cast<std::int32_t>(bytes_of(layout.type));
  std::copy(layout.shape.begin(), layout.shape.end(), s.sizes.begin());
  std::copy(strides.begin(), strides.end(), s.strides.begin());
  std::array<void*, 3> arguments = {&to, &from, &s};
  launch("gather", s.n, arguments.data());
}

// Of many small tensors the launches take longer than the work, hence many pairs by one. They are
// arguments of the launch, so that nothing has to be uploaded.
void gpu_context::launch_over(const char* name, std::span<const range_pair> pairs) const {
  for (std::size_t first = 0; first < pairs.size(); first += max_pairs) {
    const auto some = pairs.subspan(first, std::min(max_pairs, pairs.size() - first));
    pair_list list{};
    std::copy(some.begin(), some.end(), list.begin());
    std::uint64_t largest = 0;
    for (const range_pair& pair : some) largest = std::max(largest, pair.bytes);
    CUdeviceptr flag = flag_.at();
    std::array<void*, 2> arguments = {&list, &flag};
    launch(name, (largest + 15) / 16, arguments.data(), some.size());
  }
}

void gpu_context::copy_all(std::span<const range_pair> pairs) const {
  launch_over("copy_ranges", pairs);
}

bool gpu_context::all_equal(std::span<const range_pair> pairs) const {
  if (std::all_of(pairs.begin(), pairs.end(), [](const range_pair& p) { return p.bytes == 0; }))
    return true;
  fill(flag_.at(), 0, sizeof(std::uint32_t));
  launch_over("find_difference", pairs);
  std::uint32_t differs = 0;
  download(&differs, flag_.at(), sizeof differs);
  return differs == 0;
}

std::optional<std::size_t> gpu_context::find_damage(CUdeviceptr base,
                                                    const std::vector<gpu_range>& ranges) {
  if (ranges.empty()) return std::nullopt;
  grow(ranges_, ranges.size() * sizeof(gpu_range));
  driver_->check(driver_->cuMemcpyHtoDAsync(ranges_.at(), ranges.data(),
                                            ranges.size() * sizeof(gpu_range), stream_),
                 "sending memory to a GPU");
  fill(flag_.at(), 0xff, sizeof(std::uint32_t));
  auto count = static_cast<std::uint32_t>(ranges.size());
  CUdeviceptr list = ranges_.at();
  CUdeviceptr flag = flag_.at();
  std::array<void*, 4> arguments = {&base, &list, &count, &flag};
  launch("find_damage", std::uint64_t{count} * threads_per_block, arguments.data());
  std::uint32_t first = 0;
  download(&first, flag_.at(), sizeof first);
  if (first == ~std::uint32_t{0}) return std::nullopt;
  return first;
}

judging::measures gpu_context::reduced(const char* kernel_name, comparison& with) {
  const auto blocks = static_cast<unsigned>(
      std::clamp<std::uint64_t>((with.n + threads_per_block - 1) / threads_per_block, 1, blocks_));
  CUdeviceptr out = partial_.at();
  std::array<void*, 2> arguments = {&with, &out};
  driver_->check(driver_->cuLaunchKernel(kernel(kernel_name), blocks, 1, 1, threads_per_block, 1, 1,
                                         0, stream_, arguments.data(), nullptr),
                 std::string("starting ") + kernel_name);
  std::vector<judging::measures> partial(blocks);
  download(partial.data(), partial_.at(), blocks * sizeof(judging::measures));
  judging::measures all;
  for (const judging::measures& m : partial) judging::add(all, m);
  return all;
}

gpu_context::comparison gpu_context::comparison_of(CUdeviceptr actual, const gpu_runs& expected,
                                                   dtype type, std::uint64_t n) {
  comparison with{actual, expected.own, expected.wide, expected.settled};
  const auto list = [](const std::vector<CUdeviceptr>& runs, auto& to) {
    const std::size_t count = std::min(runs.size(), to.size());
    std::copy_n(runs.begin(), count, to.begin());
    return static_cast<std::int32_t>(count);
  };
  with.noisy_count = list(expected.noisy, with.noisy);
  with.alternative_count = list(expected.alternatives, with.alternatives);
  with.n = n;
  with.type = static_cast<std::int32_t>(type);
  const type_limits limits = limits_of(type);
  with.unit = limits.unit;
  with.least = limits.least;
  return with;
}

std::optional<std::size_t> gpu_context::find_wrong_element(CUdeviceptr actual,
                                                           const gpu_runs& expected, dtype type,
                                                           std::uint64_t n) {
  if (n == 0) return std::nullopt;
  comparison with = comparison_of(actual, expected, type, n);
  const std::uint64_t first = reduced("measure_exact", with).first_bad;
  return first < n ? std::optional<std::size_t>(first) : std::nullopt;
}

output_errors gpu_context::measure_floating(CUdeviceptr actual, const gpu_runs& expected,
                                            dtype type, std::uint64_t n, tolerance allowed,
                                            double known_error) {
  if (n == 0) return {};
  comparison with = comparison_of(actual, expected, type, n);
  const judging::measures sizes = reduced("measure_expected", with);
  with.scale = scale_of(sizes, allowed, known_error);
  return errors_of(sizes, reduced("measure_errors", with));
}

double gpu_context::element(CUdeviceptr from, dtype type, std::uint64_t index) const {
  tensor_value value{{type, {1}}, std::vector<std::byte>(bytes_of(type))};
  download(value.bytes.data(), from + index * bytes_of(type), value.bytes.size());
  return to_doubles(value).front();
}

}  // namespace hone
