// A block that a waiting process compiles to warm up, with the constructs that blocks have in
// common: loops, shared memory, barriers, shuffles, vector loads, and some arithmetic.
extern "C" __global__ void hone_typical(const float* x, float4* y, int n, int m) {
  __shared__ float part[32];
  float sum = 0.0f;
  float most = -1e30f;
  for (int j = threadIdx.x; j < m; j += blockDim.x) {
    const float v = x[blockIdx.x * static_cast<long long>(m) + j];
    sum += expf(v) * rsqrtf(v + 1.5f);
    most = fmaxf(most, v);
  }
#pragma unroll
  for (int s = 16; s > 0; s >>= 1) sum += __shfl_xor_sync(0xffffffffU, sum, s);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  for (int i = 0; i < blockDim.x / 32; ++i) most += part[i];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    float4 v = y[row];
    v.x = v.x > 0.0f ? v.x / most : tanhf(v.y);
    y[row] = v;
  }
}
