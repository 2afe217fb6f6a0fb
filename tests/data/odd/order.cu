// One behavior per mode: what waits for what, in which order, and where. The output is what the program itself measured.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#define OK(x) do { auto error_ = (x); if ((int)error_) { printf("%s: error %d\n", #x, (int)error_); exit(1); } } while (0)
__device__ void pause_for(long long ns) { long long a, b; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a)); do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b)); } while (b - a < ns); }
__global__ void work(long long ns) { pause_for(ns); }
__global__ void body(long long ns) { pause_for(ns); }
__global__ void decide(cudaGraphConditionalHandle h, int *count) { cudaGraphSetConditional(h, (*count)++ & 1); }
template <int N> struct Block { char bytes[N]; };
template <int N> __global__ void take(Block<N> b, char *out) { if (b.bytes[0] == 77) *out = b.bytes[N - 1]; }
__device__ int symbol[256];
static double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
static void compute(double us) { for (double a = now(); now() - a < us;) {} }
static double begin;
static void start() { OK(cudaDeviceSynchronize()); OK(cudaProfilerStart()); begin = now(); }
static void stop(const char *what, int steps) { OK(cudaDeviceSynchronize()); printf("%s: %.1f us per step\n", what, (now() - begin) / steps); OK(cudaProfilerStop()); fflush(stdout); }
static cudaStream_t stream() { cudaStream_t s; OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); return s; }
template <typename F> static void check(const char *name, cudaStream_t busy, F call) { // how long the call takes while a kernel of 5 ms runs
  static cudaEvent_t ended; if (!ended) OK(cudaEventCreateWithFlags(&ended, cudaEventDisableTiming));
  OK(cudaDeviceSynchronize()); work<<<1, 1, 0, busy>>>(5000000); OK(cudaEventRecord(ended, busy)); compute(200);
  nvtxRangePushA(name); double a = now(); call(); double us = now() - a; nvtxRangePop();
  bool runs = cudaEventQuery(ended) == cudaErrorNotReady; printf("%s: %.1f us, the kernel %s\n", name, us, runs ? "runs" : "has ended"); compute(100);
}
template <int N> static void launch_all(const char *name, cudaStream_t s, char *p) {
  Block<N> b = {}; take<N><<<1, 1, 0, s>>>(b, p); OK(cudaStreamSynchronize(s)); nvtxRangePushA(name); double a = now();
  for (int i = 0; i < 1000; i++) take<N><<<1, 1, 0, s>>>(b, p);
  double us = (now() - a) / 1000; OK(cudaStreamSynchronize(s)); nvtxRangePop(); printf("%s: %.2f us per launch call, %.2f us per kernel\n", name, us, (now() - a) / 1000);
}

int main(int argc, char **argv) {
  std::string mode = argv[1]; OK(cudaFree(0)); cudaStream_t s = stream(), t = stream();
  if (mode == "blocks") {
    auto repeat = [&](bool is_last) {
      void *p, *q, *h, *g; cudaArray_t array; cudaEvent_t e; cudaStream_t other = stream(); cudaGraph_t graph; cudaGraphExec_t x; CUmodule module; size_t a, b; cudaMemPool_t pool; cudaIpcMemHandle_t m; void *pageable = malloc(1 << 20);
      const char *ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n"; static char text[1024];
      cudaChannelFormatDesc d = cudaCreateChannelDesc<float>(); OK(cudaMalloc(&p, 1 << 20)); OK(cudaMallocHost(&h, 1 << 20)); OK(cudaMallocArray(&array, &d, 256, 256)); OK(cudaHostRegister(pageable, 1 << 20, 0)); OK(cudaMallocAsync(&q, 1 << 20, t)); OK(cudaEventCreate(&e));
      OK(cudaDeviceGetDefaultMemPool(&pool, 0)); OK(cudaGraphCreate(&graph, 0)); cudaGraphNode_t n; OK(cudaGraphAddEmptyNode(&n, graph, nullptr, 0)); OK((cudaError_t)cuModuleLoadData(&module, ptx));
      check("cudaGraphInstantiate", s, [&] { OK(cudaGraphInstantiate(&x, graph, 0)); }); check("cudaGraphExecDestroy", s, [&] { OK(cudaGraphExecDestroy(x)); });
      check("cudaMalloc", s, [&] { OK(cudaMalloc(&g, 64 << 20)); }); check("cudaFree", s, [&] { OK(cudaFree(g)); });
      check("cudaMallocHost", s, [&] { OK(cudaMallocHost(&g, 64 << 20)); }); check("cudaFreeHost", s, [&] { OK(cudaFreeHost(g)); });
      check("cudaHostUnregister", s, [&] { OK(cudaHostUnregister(pageable)); }); check("cudaHostRegister", s, [&] { OK(cudaHostRegister(pageable, 1 << 20, 0)); }); OK(cudaHostUnregister(pageable));
      check("cudaFreeArray", s, [&] { OK(cudaFreeArray(array)); }); check("cudaFreeAsync", s, [&] { OK(cudaFreeAsync(q, t)); }); check("cudaMemPoolTrimTo", s, [&] { OK(cudaMemPoolTrimTo(pool, 0)); });
      check("cudaEventDestroy", s, [&] { OK(cudaEventDestroy(e)); }); check("cudaStreamDestroy", other, [&] { OK(cudaStreamDestroy(other)); }); check("cudaStreamCreate", s, [&] { other = stream(); }); OK(cudaStreamDestroy(other));
      check("cudaMallocManaged", s, [&] { OK(cudaMallocManaged(&g, 1 << 20)); }); OK(cudaFree(g)); check("cudaMemGetInfo", s, [&] { OK(cudaMemGetInfo(&a, &b)); });
      check("cudaDeviceSetLimit", s, [&] { OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, is_last ? 2 << 20 : 4 << 20)); }); check("cudaFuncSetAttribute", s, [&] { OK(cudaFuncSetAttribute(work, cudaFuncAttributePreferredSharedMemoryCarveout, 50)); });
      check("cudaMemcpyToSymbol", s, [&] { OK(cudaMemcpyToSymbol(symbol, text, sizeof symbol)); }); check("cudaMemset", s, [&] { OK(cudaMemset(p, 0, 1 << 20)); }); check("cudaIpcGetMemHandle", s, [&] { OK(cudaIpcGetMemHandle(&m, p)); });
      check("cuModuleUnload", s, [&] { OK((cudaError_t)cuModuleUnload(module)); }); OK(cudaFree(p)); OK(cudaFreeHost(h)); OK(cudaGraphDestroy(graph)); free(pageable);
    };
    repeat(false); printf("again\n"); start(); repeat(true); stop("blocks", 1);
  }
  if (mode == "twice") {
    cudaGraph_t g; cudaGraphExec_t x; OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); for (int k = 0; k < 4; k++) work<<<1, 1, 0, s>>>(50000); OK(cudaStreamEndCapture(s, &g)); OK(cudaGraphInstantiate(&x, g, 0));
    OK(cudaGraphLaunch(x, s)); start();
    for (int i = 0; i < 40; i++) { OK(cudaGraphLaunch(x, s)); OK(cudaGraphLaunch(x, t)); OK(cudaStreamSynchronize(s)); OK(cudaStreamSynchronize(t)); compute(20); }
    stop("twice", 40);
  }
  if (mode == "full") {
    std::vector<double> at(3001); work<<<1, 1, 0, s>>>(20000); start(); at[0] = now();
    for (int i = 0; i < 3000; i++) { work<<<1, 1, 0, s>>>(20000); at[i + 1] = now(); }
    int first = 0; for (int i = 3000; i && at[i] - at[i - 10] > 100; i--) first = i - 1; // the last calls all wait
    printf("first slow call: %d; calls before it %.2f us, after it %.2f us\n", first, (at[first] - at[0]) / (first ? first : 1), (at[3000] - at[first]) / (3000 - first)); stop("full", 3000);
  }
  if (mode == "engines") {
    const size_t n = 64 << 20; void *h[4], *d[4], *e[4]; cudaStream_t u[4]; for (int i = 0; i < 4; i++) { OK(cudaMallocHost(&h[i], n)); OK(cudaMalloc(&d[i], n)); OK(cudaMalloc(&e[i], n)); u[i] = stream(); OK(cudaMemcpyAsync(d[i], h[i], n, cudaMemcpyDefault, u[i])); }
    start();
    for (int r = 0; r < 5; r++) {
      auto part = [&](const char *name, auto call) { nvtxRangePushA(name); double a = now(); call(); OK(cudaDeviceSynchronize()); printf("%s: %.0f us\n", name, now() - a); nvtxRangePop(); };
      part("one to the GPU", [&] { OK(cudaMemcpyAsync(d[0], h[0], n, cudaMemcpyDefault, u[0])); });
      part("two to the GPU", [&] { for (int i = 0; i < 2; i++) OK(cudaMemcpyAsync(d[i], h[i], n, cudaMemcpyDefault, u[i])); });
      part("one to the host", [&] { OK(cudaMemcpyAsync(h[1], d[1], n, cudaMemcpyDefault, u[1])); });
      part("both ways", [&] { OK(cudaMemcpyAsync(d[0], h[0], n, cudaMemcpyDefault, u[0])); OK(cudaMemcpyAsync(h[1], d[1], n, cudaMemcpyDefault, u[1])); });
      part("one on the GPU", [&] { OK(cudaMemcpyAsync(d[0], e[0], n, cudaMemcpyDefault, u[0])); });
      part("four on the GPU", [&] { for (int i = 0; i < 4; i++) OK(cudaMemcpyAsync(d[i], e[i], n, cudaMemcpyDefault, u[i])); });
    }
    stop("engines", 5);
  }
  if (mode == "params") { char *p; OK(cudaMalloc(&p, 1)); start(); for (int r = 0; r < 3; r++) { launch_all<8>("8 bytes", s, p); launch_all<4000>("4 KB", s, p); launch_all<31000>("31 KB", s, p); } stop("params", 9000); }
  if (mode == "branch") {
    int *count; OK(cudaMalloc(&count, 4)); OK(cudaMemset(count, 0, 4)); long long ns = 50000, before = 10000; cudaGraph_t g; cudaGraphExec_t x; cudaGraphConditionalHandle h; cudaGraphNode_t a, b, c, d; OK(cudaGraphCreate(&g, 0)); OK(cudaGraphConditionalHandleCreate(&h, g, 0, cudaGraphCondAssignDefault));
    auto add = [](cudaGraph_t g, cudaGraphNode_t *n, cudaGraphNode_t *after, void *f, void **args) { cudaKernelNodeParams p = {}; p.func = f; p.gridDim = p.blockDim = dim3(1); p.kernelParams = args; OK(cudaGraphAddKernelNode(n, g, after, after ? 1 : 0, &p)); };
    void *w[] = {&before}, *k[] = {&h, &count}, *y[] = {&ns}; add(g, &a, nullptr, (void *)work, w); add(g, &b, &a, (void *)decide, k);
    cudaGraphNodeParams params = {}; params.type = cudaGraphNodeTypeConditional; params.conditional.handle = h; params.conditional.type = cudaGraphCondTypeIf; params.conditional.size = 1; OK(cudaGraphAddNode(&c, g, &b, nullptr, 1, &params)); add(params.conditional.phGraph_out[0], &d, nullptr, (void *)body, y);
    OK(cudaGraphInstantiate(&x, g, 0)); OK(cudaGraphLaunch(x, s)); start();
    for (int i = 0; i < 40; i++) { OK(cudaGraphLaunch(x, s)); OK(cudaStreamSynchronize(s)); compute(20); }
    stop("branch", 40);
  }
  if (mode == "hops" || mode == "chain") {
    cudaEvent_t e; OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming)); start();
    for (int i = 0; i < 40; i++) {
      for (int k = 0; k < 100; k++) { cudaStream_t here = mode == "chain" || k % 2 ? s : t, there = here == s ? t : s; work<<<1, 1, 0, here>>>(5000); if (mode == "hops") { OK(cudaEventRecord(e, here)); OK(cudaStreamWaitEvent(there, e)); } }
      OK(cudaStreamSynchronize(s)); OK(cudaStreamSynchronize(t));
    }
    stop(mode.c_str(), 40);
  }
  return 0;
}
