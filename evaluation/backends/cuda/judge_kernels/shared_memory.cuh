// Leaves poison in the shared memory of the block's multiprocessor.
// sandbox/child/gpu/judge_tools.cpp launches it.
extern "C" __global__ void spoil_shared() {
  extern __shared__ unsigned words[];
  unsigned bytes;
  asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  volatile unsigned* seen = words;
  for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) seen[i] = 0xffffffffu;
}
