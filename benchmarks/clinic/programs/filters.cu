// Run a graph of 60 filters in six chains over a ring of frames.
//
// Ailing: each step sets the pointers of all kernel nodes to the next frame.
// Cured:  the filters work on one buffer, into which the frame is copied; the graph does not change.
#include <vector>

#include "harness.cuh"

constexpr int FILTERS = 60, CHAINS = 6, FRAMES = 4, SIZE = 1 << 13;

__global__ void filter(const float* frame, float* result, float gain, int chain) {
  result += chain * SIZE;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  result[i] += gain * frame[i];
}

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  float *frames, *input, *result;
  CHECK(cudaMalloc(&frames, FRAMES * SIZE * sizeof(float)));
  CHECK(cudaMalloc(&input, SIZE * sizeof(float)));
  CHECK(cudaMalloc(&result, CHAINS * SIZE * sizeof(float)));
  CHECK(cudaMemset(frames, 0, FRAMES * SIZE * sizeof(float)));
  CHECK(cudaMemset(result, 0, CHAINS * SIZE * sizeof(float)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  std::vector<cudaGraphNode_t> nodes(FILTERS);
  float gain = 0.01f;
  int chain = 0;
  void* values[] = {&input, &result, &gain, &chain};
  cudaKernelNodeParams params = {};
  params.func = (void*)filter;
  params.gridDim = dim3(SIZE / 256);
  params.blockDim = dim3(256);
  params.kernelParams = values;
  CHECK(cudaGraphCreate(&graph, 0));
  for (int n = 0; n < FILTERS; ++n) {
    chain = n % CHAINS;
    bool is_first = n < CHAINS;
    CHECK(cudaGraphAddKernelNode(&nodes[n], graph, is_first ? nullptr : &nodes[n - CHAINS], is_first ? 0 : 1, &params));
  }
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  measure(args, [&](int index) {
    float* frame = frames + index % FRAMES * SIZE;
    if (args.is_cured) {
      CHECK(cudaMemcpyAsync(input, frame, SIZE * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    } else {
      values[0] = &frame;
      for (int n = 0; n < FILTERS; ++n) {
        chain = n % CHAINS;
        CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[n], &params));
      }
    }
    CHECK(cudaGraphLaunch(exec, stream));
  });
}
