#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>
#define OK(x) do { auto e_ = (x); if ((int)e_ != 0) { printf("%s: error %d at line %d\n", #x, (int)e_, __LINE__); exit(1); } } while (0)
using Clock = std::chrono::steady_clock;
static double us_since(Clock::time_point t) { return std::chrono::duration<double, std::micro>(Clock::now() - t).count(); }

__device__ float burn(float x, int n) { for (int i = 0; i < n; i++) x = fmaf(x, 1.0001f, 0.5f); return x; }
__global__ void layer(float *data, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; data[i] = burn(data[i], n); }
__global__ void layer_dependent(float *data, int before, int n) {
  cudaTriggerProgrammaticLaunchCompletion();
  float prepared = burn(1.0f + threadIdx.x, before);
  cudaGridDependencySynchronize();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = burn(data[i] + prepared * 1e-9f, n);
}
__global__ void start(int *left, int n) { *left = n; }
__global__ void relax(float *data, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; data[i] = burn(data[i], n); }
__global__ void converged(cudaGraphConditionalHandle handle, int *left) { cudaGraphSetConditional(handle, --*left > 0); }
__global__ void finish(float *data) { data[threadIdx.x] *= 0.5f; }
__global__ void compute_bound(float *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = data[i], b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < n; k++) { a = fmaf(a, 1.0001f, .5f); b = fmaf(b, 1.0001f, .5f); c = fmaf(c, 1.0001f, .5f); d = fmaf(d, 1.0001f, .5f); }
  data[i] = a + b + c + d;
}
__global__ void memory_bound(const float4 *in, float4 *out, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) out[i] = in[i];
}

int main(int argc, char **argv) {
  std::string mode = argv[1];
  float *data; OK(cudaMalloc(&data, 64 << 20)); OK(cudaMemset(data, 0, 64 << 20));
  cudaStream_t s; OK(cudaStreamCreate(&s));
  layer<<<1, 128, 0, s>>>(data, 10); OK(cudaDeviceSynchronize());
  int steps = argc > 2 ? atoi(argv[2]) : 6;

  if (mode == "pdl" || mode == "plain") {
    auto step = [&] {
      for (int k = 0; k < 40; k++) {
        cudaLaunchConfig_t config = {}; config.gridDim = 16; config.blockDim = 128; config.stream = s;
        cudaLaunchAttribute attribute; attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        config.attrs = &attribute; config.numAttrs = mode == "pdl";
        OK(cudaLaunchKernelEx(&config, layer_dependent, data, 1000, 2000));
      }
      OK(cudaStreamSynchronize(s));
    };
    step(); step();
    auto t = Clock::now(); for (int i = 0; i < 200; i++) step(); printf("%s: %.1f us a step of 40 kernels (events off)\n", mode.c_str(), us_since(t) / 200);
    OK(cudaProfilerStart());
    t = Clock::now(); for (int i = 0; i < steps; i++) step(); printf("%s: %.1f us a step in the capture range\n", mode.c_str(), us_since(t) / steps);
    OK(cudaProfilerStop());
  } else if (mode == "while") {
    int *left; OK(cudaMalloc(&left, 4));
    cudaGraph_t graph; OK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle; OK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    OK(cudaStreamBeginCaptureToGraph(s, graph, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    start<<<1, 1, 0, s>>>(left, 20); OK(cudaStreamEndCapture(s, &graph));
    size_t count = 1; cudaGraphNode_t first; OK(cudaGraphGetNodes(graph, &first, &count));
    cudaGraphNodeParams p = {cudaGraphNodeTypeConditional}; p.conditional.handle = handle; p.conditional.type = cudaGraphCondTypeWhile; p.conditional.size = 1;
    cudaGraphNode_t loop; OK(cudaGraphAddNode(&loop, graph, &first, nullptr, 1, &p));
    cudaGraph_t body = p.conditional.phGraph_out[0];
    OK(cudaStreamBeginCaptureToGraph(s, body, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    relax<<<16, 128, 0, s>>>(data, 2000); converged<<<1, 1, 0, s>>>(handle, left); OK(cudaStreamEndCapture(s, nullptr));
    OK(cudaStreamBeginCaptureToGraph(s, graph, &loop, nullptr, 1, cudaStreamCaptureModeRelaxed));
    finish<<<1, 128, 0, s>>>(data); OK(cudaStreamEndCapture(s, nullptr));
    cudaGraphExec_t exec; OK(cudaGraphInstantiate(&exec, graph, 0));
    auto step = [&] { OK(cudaGraphLaunch(exec, s)); OK(cudaStreamSynchronize(s)); };
    step(); step();
    auto t = Clock::now(); for (int i = 0; i < 100; i++) step(); printf("while: %.1f us a launch of 20 iterations\n", us_since(t) / 100);
    OK(cudaProfilerStart());
    t = Clock::now(); for (int i = 0; i < steps; i++) step(); printf("while: %.1f us a launch in the capture range\n", us_since(t) / steps);
    OK(cudaProfilerStop());
  } else if (mode == "green") {
    CUdevice device; OK(cuDeviceGet(&device, 0));
    CUdevResource all, part, rest; unsigned groups = 1;
    OK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 32));
    CUdevResourceDesc desc; OK(cuDevResourceGenerateDesc(&desc, &part, 1));
    CUgreenCtx green; OK(cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
    CUstream gs; OK(cuGreenCtxStreamCreate(&gs, green, CU_STREAM_NON_BLOCKING, 0));
    printf("green: %u of %u SMs\n", part.sm.smCount, all.sm.smCount);
    auto step = [&] { for (int k = 0; k < 4; k++) layer<<<264, 256, 0, (cudaStream_t)gs>>>(data, 20000); OK(cudaStreamSynchronize((cudaStream_t)gs)); };
    auto whole = [&] { for (int k = 0; k < 4; k++) relax<<<264, 256, 0, s>>>(data, 20000); OK(cudaStreamSynchronize(s)); };
    step(); whole();
    auto t = Clock::now(); for (int i = 0; i < 20; i++) step(); printf("green: %.1f us a step of 4 kernels\n", us_since(t) / 20);
    t = Clock::now(); for (int i = 0; i < 20; i++) whole(); printf("whole GPU: %.1f us a step of 4 kernels\n", us_since(t) / 20);
    OK(cudaProfilerStart());
    for (int i = 0; i < steps; i++) { step(); if (argc > 3) whole(); }
    OK(cudaProfilerStop());
  } else if (mode == "share") {
    auto step = [&] { for (int k = 0; k < 3; k++) layer<<<1056, 256, 0, s>>>(data, 30000); OK(cudaStreamSynchronize(s)); };
    step();
    if (argc > 4) { fclose(fopen(argv[3], "w")); while (access(argv[4], F_OK)) usleep(100); }
    auto t = Clock::now(); for (int i = 0; i < steps; i++) step(); printf("share: %.1f us a step of 3 kernels\n", us_since(t) / steps);
  } else if (mode == "loop") {
    std::string how = argv[3];
    auto body = [&] { for (int k = 0; k < 20; k++) layer<<<16, 128, 0, s>>>(data, 800); };
    cudaGraphExec_t exec;
    if (how == "graph") {
      cudaGraph_t graph; OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed)); body(); OK(cudaStreamEndCapture(s, &graph));
      OK(cudaGraphInstantiate(&exec, graph, 0));
    }
    auto step = [&] { if (how == "graph") OK(cudaGraphLaunch(exec, s)); else body(); OK(cudaStreamSynchronize(s)); };
    for (int i = 0; i < 5; i++) step();
    auto t = Clock::now(); for (int i = 0; i < 300; i++) step(); printf("%s: %.1f us a step of 20 kernels\n", how.c_str(), us_since(t) / 300);
    OK(cudaProfilerStart());
    t = Clock::now(); for (int i = 0; i < steps; i++) step(); printf("%s: %.1f us a step in the capture range\n", how.c_str(), us_since(t) / steps);
    OK(cudaProfilerStop());
  } else if (mode == "pool") {
    cudaMemPool_t pool; OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    uint64_t threshold = atoll(argv[3]) ? UINT64_MAX : 0; OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    auto step = [&] {
      float *p[4];
      for (auto &b : p) { OK(cudaMallocAsync(&b, 32 << 20, s)); layer<<<132, 256, 0, s>>>(b, 3000); }
      for (auto &b : p) OK(cudaFreeAsync(b, s));
      OK(cudaStreamSynchronize(s));
    };
    for (int i = 0; i < 5; i++) step();
    auto t = Clock::now(); for (int i = 0; i < 100; i++) step(); printf("pool threshold %s: %.1f us a step\n", threshold ? "max" : "0", us_since(t) / 100);
    OK(cudaProfilerStart());
    t = Clock::now(); for (int i = 0; i < steps; i++) step(); printf("pool threshold %s: %.1f us a step in the capture range\n", threshold ? "max" : "0", us_since(t) / steps);
    OK(cudaProfilerStop());
  } else if (mode == "poll") {
    cudaEvent_t e; OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    int queries = 0;
    auto nap = [] { auto t = Clock::now(); while (us_since(t) < 20) {} };
    OK(cudaProfilerStart());
    for (int i = 0; i < steps; i++) {
      layer<<<264, 256, 0, s>>>(data, 60000);
      for (queries++; cudaStreamQuery(s) == cudaErrorNotReady; queries++) nap();
      layer<<<264, 256, 0, s>>>(data, 60000); OK(cudaEventRecord(e, s));
      for (queries++; cudaEventQuery(e) == cudaErrorNotReady; queries++) nap();
      layer<<<264, 256, 0, s>>>(data, 60000); OK(cudaStreamSynchronize(s));
      layer<<<264, 256, 0, s>>>(data, 60000); OK(cudaEventRecord(e, s)); OK(cudaEventSynchronize(e));
      layer<<<264, 256, 0, s>>>(data, 60000); OK(cudaDeviceSynchronize());
    }
    OK(cudaProfilerStop());
    printf("poll: %d queries, %d stream, %d event, %d device synchronizations\n", queries, steps, steps, steps);
  } else if (mode == "copies") {
    size_t big = 64 << 20; char *host = (char *)malloc(big), *pinned; memset(host, 1, big); OK(cudaMallocHost(&pinned, big)); memset(pinned, 1, big);
    auto timed = [&](const char *name, int n, size_t bytes, char *h, cudaMemcpyKind kind) {
      auto copy = [&] { if (kind == cudaMemcpyHostToDevice) OK(cudaMemcpyAsync(data, h, bytes, kind, s)); else OK(cudaMemcpyAsync(h, data, bytes, kind, s)); };
      copy(); OK(cudaStreamSynchronize(s)); double host_us = 0, total = 0;
      for (int i = 0; i < n; i++) { auto t = Clock::now(); copy(); host_us += us_since(t); OK(cudaStreamSynchronize(s)); total += us_since(t); }
      printf("%s of %zu bytes: call %.1f us, done after %.1f us, %.1f GB/s\n", name, bytes, host_us / n, total / n, bytes / (total / n) / 1e3);
    };
    OK(cudaProfilerStart());
    for (size_t bytes : {size_t(65536), size_t(65537), big}) {
      int n = bytes == big ? 3 : 20;
      timed("pageable H2D", n, bytes, host, cudaMemcpyHostToDevice); timed("pageable D2H", n, bytes, host, cudaMemcpyDeviceToHost);
      timed("pinned H2D", n, bytes, pinned, cudaMemcpyHostToDevice); timed("pinned D2H", n, bytes, pinned, cudaMemcpyDeviceToHost);
    }
    OK(cudaProfilerStop());
  } else if (mode == "clock") {
    float4 *in, *out; size_t n = (256 << 20) / 16; OK(cudaMalloc(&in, n * 16)); OK(cudaMalloc(&out, n * 16)); OK(cudaMemset(in, 0, n * 16));
    auto step = [&] { compute_bound<<<132 * 8, 256, 0, s>>>(data, 20000); memory_bound<<<132 * 16, 512, 0, s>>>(in, out, n); OK(cudaStreamSynchronize(s)); };
    step(); OK(cudaProfilerStart()); for (int i = 0; i < steps; i++) step(); OK(cudaProfilerStop());
  }
  OK(cudaGetLastError());
  return 0;
}
