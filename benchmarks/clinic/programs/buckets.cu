// Count and spread keys, with scratch memory.
//
// Ailing: cudaMalloc and cudaFree of the scratch memory in each step.
// Cured:  it is allocated once.
#include "harness.cuh"

constexpr int SIZE = 1 << 20, BUCKETS = 4096, PASSES = 3;

__global__ void count(const unsigned* keys, unsigned* counts, int pass) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(counts + (keys[i] >> (pass * 4)) % BUCKETS, 1u);
}

__global__ void spread(const unsigned* keys, unsigned* result, int pass) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  result[i] = (keys[i] + i) * 2654435761u + pass;
}

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  unsigned *keys, *counts = nullptr, *result = nullptr;
  CHECK(cudaMalloc(&keys, SIZE * sizeof(unsigned)));
  CHECK(cudaMemset(keys, 1, SIZE * sizeof(unsigned)));
  auto allocate = [&] {
    CHECK(cudaMalloc(&counts, BUCKETS * sizeof(unsigned)));
    CHECK(cudaMalloc(&result, SIZE * sizeof(unsigned)));
  };
  if (args.is_cured) allocate();
  measure(args, [&](int) {
    for (int pass = 0; pass < PASSES; ++pass) {
      if (!args.is_cured) allocate();
      CHECK(cudaMemsetAsync(counts, 0, BUCKETS * sizeof(unsigned)));
      spread<<<SIZE / 256, 256>>>(keys, result, pass);
      count<<<SIZE / 256, 256>>>(result, counts, pass);
      if (!args.is_cured) {
        CHECK(cudaFree(counts));
        CHECK(cudaFree(result));
      }
    }
  });
}
