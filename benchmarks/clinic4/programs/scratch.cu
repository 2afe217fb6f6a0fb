// Scratch: a filter with a large temporary array, which the stream's memory pool lends for each step.
#include "harness.cuh"

constexpr size_t CELLS = 1 << 26;
constexpr int THREADS = 256;

__global__ void square(const float* in, float* out) {
  size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
  out[i] = in[i] * in[i] + 1;
}

__global__ void smooth(const float* in, float* out) {
  size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
  out[i] = 0.5f * in[i] + 0.25f * (in[(i + 1) % CELLS] + in[(i + CELLS - 1) % CELLS]);
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  auto data = allocate<float>(CELLS);
  cudaMemPool_t pool;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  if (args.is_cured) {
    unsigned long long keep = ~0ull;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  }
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  measure(args, [&](int) {
    float* scratch;
    CHECK(cudaMallocAsync(&scratch, CELLS * sizeof(float), stream));
    square<<<CELLS / THREADS, THREADS, 0, stream>>>(data, scratch);
    smooth<<<CELLS / THREADS, THREADS, 0, stream>>>(scratch, data);
    CHECK(cudaFreeAsync(scratch, stream));
    CHECK(cudaStreamSynchronize(stream));
  });
}
