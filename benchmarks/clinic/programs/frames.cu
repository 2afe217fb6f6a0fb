// Upload the tiles of a frame from pinned memory and equalize each.
//
// Ailing: cudaStreamSynchronize after the copy of each tile.
// Cured:  the order of the stream is enough; nothing waits inside a frame.
#include "harness.cuh"

constexpr int TILES = 48, SIZE = 1 << 16;

__global__ void equalize(const float* tile, float* result, float gain) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = tile[i] * gain;
  result[i] = value / (1.0f + fabsf(value));
}

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  float *host, *tiles, *results;
  CHECK(cudaMallocHost(&host, TILES * SIZE * sizeof(float)));
  CHECK(cudaMalloc(&tiles, TILES * SIZE * sizeof(float)));
  CHECK(cudaMalloc(&results, TILES * SIZE * sizeof(float)));
  for (int i = 0; i < TILES * SIZE; ++i) host[i] = float(i % 255);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  measure(args, [&](int) {
    for (int t = 0; t < TILES; ++t) {
      CHECK(cudaMemcpyAsync(tiles + t * SIZE, host + t * SIZE, SIZE * sizeof(float), cudaMemcpyHostToDevice, stream));
      if (!args.is_cured) CHECK(cudaStreamSynchronize(stream));
      equalize<<<SIZE / 256, 256, 0, stream>>>(tiles + t * SIZE, results + t * SIZE, 0.01f);
    }
  });
}
