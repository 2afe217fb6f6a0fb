// Sound in a room: leapfrog steps of the acoustic wave equation with differences of fourth order.
#include <nvtx3/nvToolsExt.h>

#include "harness.cuh"

constexpr int SIZE = 384, PLANE = SIZE * SIZE, DEPTH = 48;

// Each block marches through DEPTH planes; a column of each thread stays in registers.
__global__ void propagate(const float* __restrict__ now, float* __restrict__ next, float factor) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int first = blockIdx.z * DEPTH;
  if (x < 2 || y < 2 || x >= SIZE - 2 || y >= SIZE - 2) return;
  int begin = max(first, 2), end = min(first + DEPTH, SIZE - 2);
  size_t place = size_t(begin) * PLANE + y * SIZE + x;
  float below2 = now[place - 2 * PLANE], below = now[place - PLANE], here = now[place], above = now[place + PLANE];
  for (int z = begin; z < end; ++z, place += PLANE) {
    float above2 = now[place + 2 * PLANE];
    float far = below2 + above2 + now[place - 2] + now[place + 2] + now[place - 2 * SIZE] + now[place + 2 * SIZE];
    float near = below + above + now[place - 1] + now[place + 1] + now[place - SIZE] + now[place + SIZE];
    float laplace = (16 * near - far - 90 * here) / 12;
    next[place] = 2 * here - next[place] + factor * laplace;
    below2 = below, below = here, here = above, above = above2;
  }
}

__global__ void excite(float* now, int place, float value) { now[place] += value; }

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  auto now = allocate<float>(size_t(SIZE) * PLANE), next = allocate<float>(size_t(SIZE) * PLANE);
  dim3 block(64, 4), grid(SIZE / 64, SIZE / 4, SIZE / DEPTH);
  excite<<<1, 1>>>(now, SIZE / 2 * (PLANE + SIZE + 1), 1.f);
  measure(args, [&](int) {
    nvtxRangePushA("sound");
    for (int i = 0; i < 8; ++i) {
      propagate<<<grid, block>>>(now, next, 0.2f);
      std::swap(now, next);
    }
    nvtxRangePop();
  });
}
