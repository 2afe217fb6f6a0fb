// Lanes: traffic on eight independent roads, each advanced on a stream of its own.
#include <vector>

#include "harness.cuh"

constexpr int ROADS = 8, CELLS = 1 << 18, THREADS = 256;

__global__ void advance(const float* from, float* to, float speed) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  float left = from[(i + CELLS - 1) % CELLS], here = from[i];
  to[i] = here - speed * (here * (1 - here) - left * (1 - left));
}

__global__ void total(const float* const* roads, float* sum) {
  float value = 0;
  for (int i = threadIdx.x; i < CELLS; i += blockDim.x) value += roads[blockIdx.x][i];
  atomicAdd(sum, value);
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  std::vector<float*> a(ROADS), b(ROADS);
  for (int i = 0; i < ROADS; ++i) a[i] = allocate<float>(CELLS), b[i] = allocate<float>(CELLS);
  auto list = allocate<float*>(ROADS);
  CHECK(cudaMemcpy(list, a.data(), ROADS * sizeof(float*), cudaMemcpyHostToDevice));
  auto sum = allocate<float>(1);
  std::vector<cudaStream_t> streams(ROADS);
  std::vector<cudaEvent_t> ends(ROADS);
  auto create = [&] {
    for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (auto& end : ends) CHECK(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  };
  if (args.is_cured) create();
  cudaEvent_t begin;
  cudaStream_t main_stream;
  CHECK(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming));
  CHECK(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
  measure(args, [&](int) {
    if (!args.is_cured) create();
    CHECK(cudaEventRecord(begin, main_stream));
    for (int i = 0; i < ROADS; ++i) {
      CHECK(cudaStreamWaitEvent(streams[i], begin, 0));
      advance<<<CELLS / THREADS, THREADS, 0, streams[i]>>>(a[i], b[i], 0.3f);
      advance<<<CELLS / THREADS, THREADS, 0, streams[i]>>>(b[i], a[i], 0.3f);
      CHECK(cudaEventRecord(ends[i], streams[i]));
      CHECK(cudaStreamWaitEvent(main_stream, ends[i], 0));
    }
    total<<<ROADS, 1024, 0, main_stream>>>(list, sum);
    if (!args.is_cured) {
      for (auto& stream : streams) CHECK(cudaStreamDestroy(stream));
      for (auto& end : ends) CHECK(cudaEventDestroy(end));
    }
  });
}
