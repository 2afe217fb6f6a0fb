// Project volumes that lie in host memory.
//
// Ailing: each volume is copied by cudaMemcpy from memory of malloc.
// Cured:  pinned memory, and two streams, so that one volume is copied while the other is projected.
#include "harness.cuh"

constexpr int WIDTH = 512, DEPTH = 64;
constexpr size_t SIZE = size_t(WIDTH) * WIDTH * DEPTH;

__global__ void project(const float* volume, float* image) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int z = 0; z < DEPTH; ++z) sum += __expf(-volume[size_t(z) * WIDTH * WIDTH + i]);
  image[i] = sum;
}

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  float *host[2], *volumes[2], *images[2];
  cudaStream_t streams[2];
  for (int k = 0; k < 2; ++k) {
    if (args.is_cured)
      CHECK(cudaMallocHost(&host[k], SIZE * sizeof(float)));
    else
      host[k] = static_cast<float*>(malloc(SIZE * sizeof(float)));
    for (size_t i = 0; i < SIZE; ++i) host[k][i] = float(i % 100) / 100;
    CHECK(cudaMalloc(&volumes[k], SIZE * sizeof(float)));
    CHECK(cudaMalloc(&images[k], WIDTH * WIDTH * sizeof(float)));
    CHECK(cudaStreamCreate(&streams[k]));
  }
  measure(args, [&](int index) {
    int k = index % 2;
    if (args.is_cured) {
      CHECK(cudaMemcpyAsync(volumes[k], host[k], SIZE * sizeof(float), cudaMemcpyHostToDevice, streams[k]));
      project<<<WIDTH * WIDTH / 256, 256, 0, streams[k]>>>(volumes[k], images[k]);
    } else {
      CHECK(cudaMemcpy(volumes[k], host[k], SIZE * sizeof(float), cudaMemcpyHostToDevice));
      project<<<WIDTH * WIDTH / 256, 256>>>(volumes[k], images[k]);
    }
  });
}
