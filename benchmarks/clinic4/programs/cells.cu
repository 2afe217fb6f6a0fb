// Cells: particles are sorted by the cell of a grid that they are in (4096 cells), then their counts are made.
#include <cub/cub.cuh>

#include "harness.cuh"

constexpr int PARTICLES = 1 << 24, THREADS = 256, CELLS = 4096;

__global__ void locate(const float* x, unsigned* cell, unsigned* number, float shift) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  float place = x[i] + shift;
  cell[i] = min(CELLS - 1, int((place - floorf(place)) * CELLS));
  number[i] = i;
}

__global__ void scatter(float* x) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  x[i] = ((i * 2654435761u) >> 8) / 16777216.f;
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  auto x = allocate<float>(PARTICLES);
  auto cell = allocate<unsigned>(PARTICLES), sorted = allocate<unsigned>(PARTICLES);
  auto number = allocate<unsigned>(PARTICLES), order = allocate<unsigned>(PARTICLES);
  scatter<<<PARTICLES / THREADS, THREADS>>>(x);
  size_t bytes = 0;
  int bits = args.is_cured ? 12 : 32;
  CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, cell, sorted, number, order, PARTICLES, 0, bits));
  auto space = allocate<char>(bytes);
  measure(args, [&](int step) {
    locate<<<PARTICLES / THREADS, THREADS>>>(x, cell, number, step * 1e-3f);
    CHECK(cub::DeviceRadixSort::SortPairs(space, bytes, cell, sorted, number, order, PARTICLES, 0, bits));
  });
}
