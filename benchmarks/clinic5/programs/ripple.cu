// Waves on shallow water: thirty short time steps of two kernels each, launched as one graph for each picture.
#include "harness.cuh"

constexpr int SIZE = 512, SHORT_STEPS = 30;
constexpr float GRAVITY = 9.81f, INTERVAL = 0.002f, DRAG = 0.02f;

__device__ int wrap(int place) { return (place + SIZE) % SIZE; }

__global__ void accelerate(const float* height, float* east, float* south) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int here = y * SIZE + x;
  float slope_x = height[y * SIZE + wrap(x + 1)] - height[here];
  float slope_y = height[wrap(y + 1) * SIZE + x] - height[here];
  east[here] = (1 - DRAG * INTERVAL) * east[here] - INTERVAL * GRAVITY * slope_x;
  south[here] = (1 - DRAG * INTERVAL) * south[here] - INTERVAL * GRAVITY * slope_y;
}

__global__ void rise(float* height, const float* east, const float* south) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int here = y * SIZE + x;
  float out = east[here] - east[y * SIZE + wrap(x - 1)] + south[here] - south[wrap(y - 1) * SIZE + x];
  height[here] -= INTERVAL * out;
}

__global__ void drop(float* height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float dx = x - SIZE / 2.0f, dy = y - SIZE / 3.0f;
  height[y * SIZE + x] = 1 + 0.5f * expf(-(dx * dx + dy * dy) / 400);
}

struct Pond {
  float *height = allocate<float>(SIZE * SIZE), *east = allocate<float>(SIZE * SIZE);
  float* south = allocate<float>(SIZE * SIZE);
  dim3 block{32, 8}, grid{SIZE / 32, SIZE / 8};
  cudaStream_t stream;

  Pond() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    drop<<<grid, block>>>(height);
    CHECK(cudaDeviceSynchronize());
  }

  cudaGraphExec_t record() {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int count = 0; count < SHORT_STEPS; ++count) {
      accelerate<<<grid, block, 0, stream>>>(height, east, south);
      rise<<<grid, block, 0, stream>>>(height, east, south);
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return ready;
  }
};

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  Pond pond;
  cudaGraphExec_t kept = args.is_cured ? pond.record() : nullptr;
  measure(args, [&](int) {
    cudaGraphExec_t ready = kept ? kept : pond.record();
    CHECK(cudaGraphLaunch(ready, pond.stream));
    if (!kept) CHECK(cudaGraphExecDestroy(ready));
  });
}
