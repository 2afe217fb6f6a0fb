// Chemistry of many cells: each thread advances the stiff rate equations of its cell with implicit Euler steps.
#include "harness.cuh"

constexpr int CELLS = 1 << 18, SPECIES = 8, SUBSTEPS = 24;

template <int THREADS, int BLOCKS>
__global__ __launch_bounds__(THREADS, BLOCKS) void advance(float* amounts, const float* rates, float dt) {
  int cell = blockIdx.x * blockDim.x + threadIdx.x;
  float amount[SPECIES], matrix[SPECIES][SPECIES], change[SPECIES];
#pragma unroll
  for (int i = 0; i < SPECIES; ++i) amount[i] = amounts[i * CELLS + cell];
#pragma unroll 1
  for (int substep = 0; substep < SUBSTEPS; ++substep) {
#pragma unroll
    for (int i = 0; i < SPECIES; ++i) {
      change[i] = 0;
#pragma unroll
      for (int j = 0; j < SPECIES; ++j) {
        float rate = __ldg(&rates[i * SPECIES + j]);
        change[i] += dt * rate * (amount[j] - amount[i] * amount[j]);
        matrix[i][j] = (i == j ? 1.f : 0.f) + dt * rate * (amount[i] - 1.f);
      }
    }
#pragma unroll
    for (int k = 0; k < SPECIES; ++k) {
      float inverse = __frcp_rn(matrix[k][k]);
#pragma unroll
      for (int i = k + 1; i < SPECIES; ++i) {
        float factor = matrix[i][k] * inverse;
#pragma unroll
        for (int j = k + 1; j < SPECIES; ++j) matrix[i][j] -= factor * matrix[k][j];
        change[i] -= factor * change[k];
      }
    }
#pragma unroll
    for (int i = SPECIES - 1; i >= 0; --i) {
#pragma unroll
      for (int j = i + 1; j < SPECIES; ++j) change[i] -= matrix[i][j] * change[j];
      change[i] *= __frcp_rn(matrix[i][i]);
    }
#pragma unroll
    for (int i = 0; i < SPECIES; ++i) amount[i] += change[i];
  }
#pragma unroll
  for (int i = 0; i < SPECIES; ++i) amounts[i * CELLS + cell] = amount[i];
}

__global__ void mix(const float* from, float* to) {
  int cell = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * CELLS;
  int left = max(cell - 1, 0), right = min(cell + 1, CELLS - 1);
  to[row + cell] = 0.25f * from[row + left] + 0.5f * from[row + cell] + 0.25f * from[row + right];
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  float start[SPECIES * SPECIES];
  for (int i = 0; i < SPECIES * SPECIES; ++i) start[i] = 0.01f + 0.002f * (i * 7 % 11);
  auto amounts = allocate<float>(SPECIES * CELLS), other = allocate<float>(SPECIES * CELLS);
  auto rates = allocate<float>(SPECIES * SPECIES);
  CHECK(cudaMemcpy(rates, start, sizeof start, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(amounts, 0x3d, SPECIES * CELLS * sizeof(float)));
  measure(args, [&](int) {
    if (args.is_cured)
      advance<256, 1><<<CELLS / 256, 256>>>(amounts, rates, 0.05f);
    else
      advance<1024, 2><<<CELLS / 256, 256>>>(amounts, rates, 0.05f);
    mix<<<dim3(CELLS / 256, SPECIES), 256>>>(amounts, other);
    std::swap(amounts, other);
  });
}
