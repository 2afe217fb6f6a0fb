// CUDA C++ programs that are timed without nsys, attached to it, and inside a capture:
//   small alone              small nsys   under nsys profile --capture-range-end=repeat
// ONLY, a list of names in the environment, selects programs.
// Each line of the output is JSON: the program, where it was timed, and the microseconds of a step in each repetition.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#define CHECK(call)                                                                      \
  do {                                                                                   \
    cudaError_t status = (call);                                                         \
    if (status != cudaSuccess) {                                                         \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));    \
      exit(1);                                                                           \
    }                                                                                    \
  } while (0)

__global__ void advance(float* x, int cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
  x[threadIdx.x] += 1.0f;
}

__global__ void collect(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }

struct Program {
  const char* name;
  int captured_steps;
  std::function<void()> step;
};

static float *device, *pinned;

static void launch(int count, int cycles, cudaStream_t stream = 0) {
  for (int i = 0; i < count; ++i) advance<<<1, 32, 0, stream>>>(device, cycles);
}

static std::vector<Program> programs() {
  static cudaStream_t streams[4];
  static cudaEvent_t events[5];
  for (auto& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (auto& event : events) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  static cudaGraphExec_t graph;
  cudaGraph_t body;
  CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
  launch(100, 500, streams[0]);
  CHECK(cudaStreamEndCapture(streams[0], &body));
  CHECK(cudaGraphInstantiate(&graph, body, 0));
  auto wait = [] { CHECK(cudaStreamSynchronize(0)); };
  return {
      {"cpp_1_wait", 40, [=] { launch(1, 2000); wait(); }},
      {"cpp_20_wait", 40, [=] { launch(20, 500); wait(); }},
      {"cpp_200", 20, [=] { launch(200, 0); }},
      {"cpp_2000_wait", 8, [=] { launch(2000, 0); wait(); }},
      {"cpp_long_kernels", 20, [=] { launch(20, 60000); }},
      {"cpp_middle_kernels", 20, [=] { launch(60, 6000); }},
      {"cpp_memsets", 20, [=] {
         for (int i = 0; i < 200; ++i) CHECK(cudaMemsetAsync(device + 64 * i, 0, 256, 0));
         wait();
       }},
      {"cpp_copies", 20, [=] {
         for (int i = 0; i < 50; ++i) {
           CHECK(cudaMemcpyAsync(device + 4096, pinned, 1024, cudaMemcpyHostToDevice, 0));
           collect<<<1, 32>>>(device, device + 4096);
         }
         wait();
       }},
      {"cpp_graph", 40, [=] { CHECK(cudaGraphLaunch(graph, streams[0])); CHECK(cudaStreamSynchronize(streams[0])); }},
      {"cpp_ranges", 20, [=] {
         for (int i = 0; i < 50; ++i) {
           nvtxRangePushA("operation");
           nvtxRangePushA("kernel");
           launch(1, 500);
           nvtxRangePop();
           nvtxRangePop();
         }
         wait();
       }},
      {"cpp_streams", 20, [=] {
         CHECK(cudaEventRecord(events[4], streams[0]));
         for (int s = 1; s < 4; ++s) CHECK(cudaStreamWaitEvent(streams[s], events[4], 0));
         for (int i = 0; i < 20; ++i) launch(1, 4000, streams[i % 4]);
         for (int s = 1; s < 4; ++s) {
           CHECK(cudaEventRecord(events[s], streams[s]));
           CHECK(cudaStreamWaitEvent(streams[0], events[s], 0));
         }
       }},
  };
}

static double time_us(const Program& program, int steps) {
  using clock = std::chrono::steady_clock;
  CHECK(cudaDeviceSynchronize());
  auto begin = clock::now();
  for (int i = 0; i < steps; ++i) program.step();
  CHECK(cudaDeviceSynchronize());
  return std::chrono::duration<double, std::micro>(clock::now() - begin).count() / steps;
}

static void report(const Program& program, const char* where, std::vector<double> times) {
  printf("{\"program\": \"%s\", \"where\": \"%s\", \"step_us\": [", program.name, where);
  for (size_t i = 0; i < times.size(); ++i) printf("%s%.3f", i ? ", " : "", times[i]);
  printf("]}\n");
  fflush(stdout);
}

int main(int count, char** words) {
  bool is_profiled = count > 1 && !strcmp(words[1], "nsys");
  CHECK(cudaMalloc(&device, 1 << 20));
  CHECK(cudaMallocHost(&pinned, 1 << 16));
  auto all = programs();
  if (const char* only = getenv("ONLY")) {
    auto is_other = [&](const Program& program) { return !strstr((std::string(",") + only + ",").c_str(), ("," + std::string(program.name) + ",").c_str()); };
    all.erase(std::remove_if(all.begin(), all.end(), is_other), all.end());
  }
  for (auto& program : all) {
    time_us(program, 10);
    int steps = std::max(program.captured_steps, std::min(2000, int(20000 / time_us(program, 10))));
    std::vector<double> times;
    for (int i = 0; i < (is_profiled ? 5 : 9); ++i) times.push_back(time_us(program, steps));
    report(program, is_profiled ? "attached" : "alone", times);
  }
  for (size_t i = 0; is_profiled && i < all.size(); ++i) {
    time_us(all[i], 10);
    CHECK(cudaProfilerStart());
    double time = time_us(all[i], all[i].captured_steps);
    CHECK(cudaProfilerStop());
    report(all[i], "captured", {time});
    usleep(700000);  // a range that begins while nsys ends the last one may be missed
  }
}
