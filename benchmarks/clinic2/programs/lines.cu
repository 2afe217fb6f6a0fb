// Implicit diffusion along lines: a tridiagonal system for each line of a volume, solved by elimination.
#include <nvtx3/nvToolsExt.h>

#include "harness.cuh"

constexpr int LINES = 1 << 15, LENGTH = 128;

// Element k of line i lies at k * LINES + i.
__global__ void solve(const float* __restrict__ right, float* __restrict__ ratios, float* __restrict__ result, float d) {
  int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line >= LINES) return;
  float ratio = 0, value = 0;
  for (int k = 0; k < LENGTH; ++k) {
    float inverse = 1 / (1 + 2 * d + d * ratio);
    value = (right[k * LINES + line] + d * value) * inverse;
    ratio = -d * inverse;
    ratios[k * LINES + line] = ratio;
    result[k * LINES + line] = value;
  }
  for (int k = LENGTH - 2; k >= 0; --k) {
    value = result[k * LINES + line] - ratios[k * LINES + line] * value;
    result[k * LINES + line] = value;
  }
}

__global__ void source(float* values, float strength) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] += strength * (i % 97 == 0);
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  auto now = allocate<float>(LINES * LENGTH), next = allocate<float>(LINES * LENGTH);
  auto ratios = allocate<float>(LINES * LENGTH);
  int threads = args.is_cured ? 128 : 1;
  measure(args, [&](int) {
    nvtxRangePushA("half step");
    source<<<LINES * LENGTH / 256, 256>>>(now, 0.1f);
    solve<<<LINES / threads, threads>>>(now, ratios, next, 0.4f);
    std::swap(now, next);
    nvtxRangePop();
  });
}
