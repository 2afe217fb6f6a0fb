// Integrate a chain of masses and springs in many short substeps.
//
// Ailing: three small kernels a substep are launched one by one.
// Cured:  a step of 40 substeps is captured once as a CUDA graph.
#include "harness.cuh"

constexpr int MASSES = 1024, SUBSTEPS = 40;

__global__ void pull(const float* place, float* force) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float left = i ? place[i - 1] : 0, right = i + 1 < MASSES ? place[i + 1] : 0;
  force[i] = left + right - 2 * place[i];
}

__global__ void kick(float* speed, const float* force) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  speed[i] = 0.9999f * speed[i] + 0.01f * force[i];
}

__global__ void drift(float* place, const float* speed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  place[i] += 0.01f * speed[i];
}

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  float *place, *speed, *force;
  for (float** array : {&place, &speed, &force}) {
    CHECK(cudaMalloc(array, MASSES * sizeof(float)));
    CHECK(cudaMemset(*array, 0, MASSES * sizeof(float)));
  }
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  auto launch = [&] {
    for (int s = 0; s < SUBSTEPS; ++s) {
      pull<<<MASSES / 256, 256, 0, stream>>>(place, force);
      kick<<<MASSES / 256, 256, 0, stream>>>(speed, force);
      drift<<<MASSES / 256, 256, 0, stream>>>(place, speed);
    }
  };
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  if (args.is_cured) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
  }
  measure(args, [&](int) {
    if (args.is_cured)
      CHECK(cudaGraphLaunch(exec, stream));
    else
      launch();
  });
}
