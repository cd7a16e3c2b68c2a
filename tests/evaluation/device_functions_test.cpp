// Tests of evaluation/compile/device_functions.cuh on the CPU device: every reduction, over the
// threads of a warp, a block and a tile, and kept between two kernels.

#include <gtest/gtest.h>

#include <string>

#include "tests/support/judging_bench.hpp"

namespace hone {
namespace {

using testing_support::judging_bench;

// Rows have equal elements, so that only their places differ.
const char* const reductions_task = R"(
name = "reductions"
summary = "all reductions of a row"
distributions = ["declared"]
reference = '''
def forward(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    y = torch.cat([x, x], 1)
    return (torch.sum(y, dim=1), torch.prod(y, dim=1), torch.amax(y, dim=1), torch.amin(y, dim=1),
            torch.argmax(y, dim=1), torch.argmin(y, dim=1), torch.logsumexp(y, dim=1),
            torch.var(y, dim=1, unbiased=False))
'''
[[input]]
name = "x"
shape = ["N", "M"]
[[case]]
sizes = { N = 70, M = 45 }
[[case]]
sizes = { N = 3, M = 5 }
timed = true
)";

const std::string states = R"(
struct everything {
  device::sum<> sum;
  device::product<> product;
  device::largest largest;
  device::smallest smallest;
  device::place_of_largest high;
  device::place_of_smallest low;
  device::exponentials<> exponentials;
  device::moments<double> moments;
  __device__ void add(const float* row, int m, int at) {
    const float v = row[at % m];
    sum.add(v); product.add(v); largest.add(v); smallest.add(v);
    high.add(v, at); low.add(v, at); exponentials.add(v); moments.add(v);
  }
  __device__ void add(const everything& o) {
    sum.add(o.sum); product.add(o.product); largest.add(o.largest); smallest.add(o.smallest);
    high.add(o.high); low.add(o.low); exponentials.add(o.exponentials); moments.add(o.moments);
  }
  __device__ everything of_other_lane(int step) const {
    return {sum.of_other_lane(step), product.of_other_lane(step), largest.of_other_lane(step),
            smallest.of_other_lane(step), high.of_other_lane(step), low.of_other_lane(step),
            exponentials.of_other_lane(step), moments.of_other_lane(step)};
  }
  __device__ void write(int o, int m, float* s, float* p, float* a, float* b, long long* h,
                        long long* l, float* e, float* v) const {
    s[o] = sum.total; p[o] = product.total; a[o] = largest.best; b[o] = smallest.best;
    h[o] = high.place; l[o] = low.place; e[o] = exponentials.largest + logf(exponentials.total);
    v[o] = moments.squares / (2 * m);
  }
};
#define RESULTS \
  float *s, float *p, float *a, float *b, long long *h, long long *l, float *e, float *v
)";

// Returns a document of kernels, the last of which has the rest of its launch filled in.
std::string document(const std::string& kernels, const std::string& launches) {
  return "## Code Implementation\n```cuda\n" + states + kernels +
         "```\n```python\n"
         "def forward(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, "
         "Tensor]:\n"
         "    n, m = x.size(0), x.size(1)\n"
         "    s, p, a, b = torch.empty([n]), torch.empty([n]), torch.empty([n]), torch.empty([n])\n"
         "    h, l = torch.empty([n], dtype=torch.int64), torch.empty([n], dtype=torch.int64)\n"
         "    e, v = torch.empty([n]), torch.empty([n])\n" +
         launches + "    return s, p, a, b, h, l, e, v\n```\n";
}

struct over {
  const char* what;
  std::string kernels;
  std::string launches;
};

class DeviceFunctions : public testing::TestWithParam<over> {};

TEST_P(DeviceFunctions, ReduceRows) {
  const auto evaluation = judging_bench::instance().judge().verify(
      document(GetParam().kernels, GetParam().launches), parse_task(reductions_task, "."));
  EXPECT_EQ(evaluation->getOutcome(), Outcome::OK) << view(evaluation->getMessage());
}

const std::string arguments = "s, p, a, b, h, l, e, v, m)\n";

INSTANTIATE_TEST_SUITE_P(
    Threads, DeviceFunctions,
    testing::Values(
        over{"warp", R"(
extern "C" __global__ void rows(const float* x, RESULTS, int m) {
  everything all;
  for (int r = threadIdx.x; r < 2 * m; r += 32) all.add(x + blockIdx.x * m, m, r);
  all = device::over_warp(all);
  if (threadIdx.x == 0) all.write(blockIdx.x, m, s, p, a, b, h, l, e, v);
}
)",
             "    launch(\"rows\", [n], [32], x, " + arguments},
        over{"block", R"(
extern "C" __global__ void rows(const float* x, RESULTS, int m) {
  for (int o = blockIdx.x; o < blockIdx.x + 1; ++o) {
    everything all, again;
    for (int r = threadIdx.x; r < 2 * m; r += 96) all.add(x + o * m, m, r);
    again = device::over_block<96>(all);
    all = device::over_block<96>(all);  // uses the same memory
    if (threadIdx.x == 0) again.write(o, m, s, p, a, b, h, l, e, v);
    if (threadIdx.x == 95) s[o] = all.sum.total;
  }
}
)",
             "    launch(\"rows\", [n], [96], x, " + arguments},
        over{"tile", R"(
extern "C" __global__ void rows(const float* x, RESULTS, int m, int n) {
  const int row = blockIdx.x * 32 + threadIdx.x;
  const int o = row < n ? row : n - 1;
  everything all;
  for (int r = threadIdx.y; r < 2 * m; r += 4) all.add(x + o * m, m, r);
  all = device::over_tile<4>(all);
  if (row < n && threadIdx.y == 3) all.write(o, m, s, p, a, b, h, l, e, v);
}
)",
             "    launch(\"rows\", [(n + 31) // 32], [32, 4], x, s, p, a, b, h, l, e, v, m, n)\n"},
        over{"kept", R"(
extern "C" __global__ void parts(const float* x, float* kept, int m) {
  everything all;
  for (int r = blockIdx.x % 3; r < 2 * m; r += 3) all.add(x + device::div(blockIdx.x, 3) * m, m, r);
  device::keep(kept, blockIdx.x, all);
}
extern "C" __global__ void rows(const float* kept, RESULTS, int m) {
  everything all;
  for (int part = 0; part < 3; ++part) device::add_kept(all, kept, blockIdx.x * 3 + part);
  all.write(blockIdx.x, m, s, p, a, b, h, l, e, v);
}
)",
             "    kept = torch.empty([n * 3, 20])\n"
             "    launch(\"parts\", [n * 3], [1], x, kept, m)\n"
             "    launch(\"rows\", [n], [1], kept, " +
                 arguments}),
    [](const auto& each) { return each.param.what; });

TEST(DeviceFunctionsForElements, LoadAndStoreUpToTheLastOne) {
  const std::string text = R"(## Code Implementation
```cuda
extern "C" __global__ void doubled(const float* x, float* y, int n) {
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (first >= n) return;
  auto four = device::load<4>(x, first, n);
  for (int j = 0; j < 4; ++j) four.at[j] *= 1 + device::mod(first + j, 7) + device::div(j, 3);
  device::store(y, first, n, four);
}
```
```python
def forward(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    launch("doubled", [(x.size(0) + 127) // 128], [32], x, y, x.size(0))
    return y
```
)";
  const char* const elements_task = R"(
name = "elements"
summary = "products with numbers that follow from an element's place"
reference = '''
def forward(x: Tensor) -> Tensor:
    i = torch.arange(x.size(0))
    return x * (1 + i % 7 + (i % 4) // 3)
'''
[[input]]
name = "x"
shape = ["N"]
[[case]]
sizes = { N = 1001 }
timed = true
[[case]]
sizes = { N = 1002 }
[[case]]
sizes = { N = 1004 }
)";
  const auto evaluation =
      judging_bench::instance().judge().verify(text, parse_task(elements_task, "."));
  EXPECT_EQ(evaluation->getOutcome(), Outcome::OK) << view(evaluation->getMessage());
}

}  // namespace
}  // namespace hone
