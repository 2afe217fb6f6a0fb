// Standardize a large vector by its mean.
//
// Ailing: one block of 1024 threads sums the vector.
// Cured:  cub::DeviceReduce.
#include <cub/cub.cuh>

#include "harness.cuh"

constexpr int SIZE = 1 << 22;

__global__ void accumulate(const float* values, int count, float* total) {
  __shared__ float parts[1024];
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += values[i];
  parts[threadIdx.x] = sum;
  for (int half = blockDim.x / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *total = parts[0];
}

__global__ void fill(float* values, int seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = float((i * 7919u + seed) % 1013u) / 1013;
}

__global__ void shift(float* values, const float* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] -= *total / SIZE;
}

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  float *values, *total;
  void* scratch = nullptr;
  size_t bytes = 0;
  CHECK(cudaMalloc(&values, SIZE * sizeof(float)));
  CHECK(cudaMalloc(&total, sizeof(float)));
  CHECK(cub::DeviceReduce::Sum(scratch, bytes, values, total, SIZE));
  CHECK(cudaMalloc(&scratch, bytes));
  measure(args, [&](int index) {
    fill<<<SIZE / 256, 256>>>(values, index);
    if (args.is_cured)
      CHECK(cub::DeviceReduce::Sum(scratch, bytes, values, total, SIZE));
    else
      accumulate<<<1, 1024>>>(values, SIZE, total);
    shift<<<SIZE / 256, 256>>>(values, total);
  });
}
