// Diffuse heat on a grid with a ring of ghost cells.
//
// Ailing: cudaDeviceSynchronize after every launch, left over from the search for an error.
// Cured:  cudaGetLastError after the launch, no wait.
#include "harness.cuh"

constexpr int SIZE = 512, SWEEPS = 24;

__global__ void sweep(const float* from, float* to) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x == SIZE - 1 || y == SIZE - 1) return;
  int i = y * SIZE + x;
  to[i] = from[i] + 0.2f * (from[i - 1] + from[i + 1] + from[i - SIZE] + from[i + SIZE] - 4 * from[i]);
}

__global__ void border(float* field) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  field[i] = field[SIZE + i];
  field[(SIZE - 1) * SIZE + i] = field[(SIZE - 2) * SIZE + i];
  field[i * SIZE] = field[i * SIZE + 1];
  field[i * SIZE + SIZE - 1] = field[i * SIZE + SIZE - 2];
}

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  float* fields[2];
  for (auto& field : fields) {
    CHECK(cudaMalloc(&field, SIZE * SIZE * sizeof(float)));
    CHECK(cudaMemset(field, 0, SIZE * SIZE * sizeof(float)));
  }
  auto checked = [&] { CHECK(args.is_cured ? cudaGetLastError() : cudaDeviceSynchronize()); };
  dim3 block(32, 8), grid(SIZE / 32, SIZE / 8);
  measure(args, [&](int) {
    for (int s = 0; s < SWEEPS; ++s) {
      sweep<<<grid, block>>>(fields[s % 2], fields[(s + 1) % 2]);
      checked();
      border<<<SIZE / 128, 128>>>(fields[(s + 1) % 2]);
      checked();
    }
  }, false);
}
