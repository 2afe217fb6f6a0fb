// Mix two large signals.
//
// Ailing: blocks of 32 threads.
// Cured:  blocks of 256 threads.
#include "harness.cuh"

constexpr int SIZE = 1 << 25;

__global__ void mix(const float* a, const float* b, float* result, float weight) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  result[i] = weight * a[i] + (1 - weight) * b[i];
}

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  float *a, *b, *result;
  for (float** signal : {&a, &b, &result}) {
    CHECK(cudaMalloc(signal, SIZE * sizeof(float)));
    CHECK(cudaMemset(*signal, 0, SIZE * sizeof(float)));
  }
  int threads = args.is_cured ? 256 : 32;
  measure(args, [&](int index) {
    mix<<<SIZE / threads, threads>>>(a, b, result, 0.3f);
    mix<<<SIZE / threads, threads>>>(result, b, a, 0.6f);
  }, false);
}
