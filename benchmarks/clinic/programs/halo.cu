// Smooth a block of a grid and gather its side into the buffer of a neighbor.
//
// Ailing: the side is copied row by row: 256 copies of 16 bytes.
// Cured:  one cudaMemcpy2DAsync.
#include "harness.cuh"

constexpr int SIZE = 1024, ROWS = 256, WIDTH = 4;

__global__ void smooth(const float* from, float* to) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x == SIZE - 1 || y == SIZE - 1) return;
  int i = y * SIZE + x;
  to[i] = 0.5f * from[i] + 0.125f * (from[i - 1] + from[i + 1] + from[i - SIZE] + from[i + SIZE]);
}

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  float *fields[2], *side;
  for (auto& field : fields) {
    CHECK(cudaMalloc(&field, SIZE * SIZE * sizeof(float)));
    CHECK(cudaMemset(field, 0, SIZE * SIZE * sizeof(float)));
  }
  CHECK(cudaMalloc(&side, ROWS * WIDTH * sizeof(float)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  dim3 block(32, 8), grid(SIZE / 32, SIZE / 8);
  measure(args, [&](int index) {
    float* field = fields[(index + 1) % 2];
    smooth<<<grid, block, 0, stream>>>(fields[index % 2], field);
    if (args.is_cured) {
      CHECK(cudaMemcpy2DAsync(side, WIDTH * 4, field + SIZE + 1, SIZE * 4, WIDTH * 4, ROWS,
                              cudaMemcpyDeviceToDevice, stream));
    } else {
      for (int row = 0; row < ROWS; ++row)
        CHECK(cudaMemcpyAsync(side + row * WIDTH, field + (row + 1) * SIZE + 1, WIDTH * 4,
                              cudaMemcpyDeviceToDevice, stream));
    }
  });
}
