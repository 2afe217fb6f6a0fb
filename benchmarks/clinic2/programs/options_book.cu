// Prices of Asian options by Monte Carlo: a book of strikes over simulated daily prices.
#include <curand_kernel.h>

#include "harness.cuh"

constexpr int PATHS = 1 << 18, DAYS = 126, THREADS = 256;

__global__ void prepare(curandState* states, unsigned long long seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, i, 0, &states[i]);
}

__global__ void simulate(curandState* states, float* means, float drift, float volatility) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandState state = states[i];
  float logarithm = 0, sum = 0;
  for (int day = 0; day < DAYS; ++day) {
    logarithm += drift + volatility * curand_normal(&state);
    sum += __expf(logarithm);
  }
  means[i] = 100 * sum / DAYS;
  states[i] = state;
}

__global__ void payoff(const float* means, float* values) {
  __shared__ float partial[THREADS];
  float strike = 80 + blockIdx.y, sum = 0;
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < PATHS; i += gridDim.x * THREADS)
    sum += fmaxf(means[i] - strike, 0.f);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int width = THREADS / 2; width; width /= 2) {
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(&values[blockIdx.y], partial[0] / PATHS);
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  auto states = allocate<curandState>(PATHS);
  auto means = allocate<float>(PATHS), values = allocate<float>(40);
  if (args.is_cured) prepare<<<PATHS / THREADS, THREADS>>>(states, 1234);
  measure(args, [&](int step) {
    if (!args.is_cured) prepare<<<PATHS / THREADS, THREADS>>>(states, 1234 + step);
    simulate<<<PATHS / THREADS, THREADS>>>(states, means, 1e-4f, 0.012f);
    CHECK(cudaMemsetAsync(values, 0, 40 * sizeof(float)));
    payoff<<<dim3(32, 40), THREADS>>>(means, values);
  });
}
