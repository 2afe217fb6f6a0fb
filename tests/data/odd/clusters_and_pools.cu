// One behavior per mode: clusters, graphs, pools, pages and copies. The output is what the program itself measured.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <cooperative_groups.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#define OK(x) do { auto error_ = (x); if ((int)error_) { printf("%s: error %d\n", #x, (int)error_); exit(1); } } while (0)
__device__ void pause_for(long long ns) { long long a, b; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a)); do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b)); } while (b - a < ns); }
__global__ void work(long long ns) { pause_for(ns); }
// Each block reads a word of the next block of its cluster, and then takes 100 us. One block fits on an SM.
template <int N> __global__ void share(int *out) {
  extern __shared__ int words[];
  auto cluster = cooperative_groups::this_cluster(); words[threadIdx.x] = threadIdx.x; cluster.sync();
  int *other = cluster.map_shared_rank(words, (cluster.block_rank() + 1) % cluster.num_blocks()); if (other[threadIdx.x] < 0) *out = 1;
  pause_for(100000); cluster.sync();
}
// 3 us that do not need the kernel before, and 5 us that do.
__global__ void dependent() { cudaTriggerProgrammaticLaunchCompletion(); pause_for(3000); cudaGridDependencySynchronize(); pause_for(5000); }
__global__ void first(int *count) { *count = 0; pause_for(5000); }
__global__ void choose(cudaGraphConditionalHandle h, int *count) { cudaGraphSetConditional(h, *count % 3); }
__global__ void next(cudaGraphConditionalHandle h, int *count) { cudaGraphSetConditional(h, ++*count < 9); }
template <int N> __global__ void branch(long long ns) { pause_for(ns); }
static double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
static void compute(double us) { for (double a = now(); now() - a < us;) {} }
static double begin;
static void start() { OK(cudaDeviceSynchronize()); OK(cudaProfilerStart()); begin = now(); }
static void stop(const char *what, int steps) { OK(cudaDeviceSynchronize()); printf("%s: %.1f us per step\n", what, (now() - begin) / steps); OK(cudaProfilerStop()); fflush(stdout); }
static cudaStream_t stream() { cudaStream_t s; OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); return s; }
template <typename F> static double part(const char *name, F call) { nvtxRangePushA(name); double a = now(); call(); double us = now() - a; nvtxRangePop(); return us; }
template <int N> static void clusters(int blocks, cudaStream_t s, int *p, bool is_last) {
  cudaLaunchAttribute a = {}; a.id = cudaLaunchAttributeClusterDimension; a.val.clusterDim.x = N; a.val.clusterDim.y = a.val.clusterDim.z = 1;
  cudaLaunchConfig_t c = {}; c.gridDim = dim3(blocks); c.blockDim = dim3(128); c.dynamicSmemBytes = 200 << 10; c.stream = s; c.attrs = &a; c.numAttrs = 1;
  OK(cudaFuncSetAttribute(share<N>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10)); if (N > 8) OK(cudaFuncSetAttribute(share<N>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  int most = 0; OK(cudaOccupancyMaxActiveClusters(&most, share<N>, &c)); double us = part("clusters", [&] { OK(cudaLaunchKernelEx(&c, share<N>, p)); OK(cudaStreamSynchronize(s)); });
  if (is_last) printf("%d blocks in clusters of %d: %.0f us, at most %d clusters at once\n", blocks, N, us, most);
}
static void launch_dependent(cudaStream_t s, bool is_programmatic) {
  cudaLaunchAttribute a = {}; a.id = cudaLaunchAttributeProgrammaticStreamSerialization; a.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t c = {}; c.gridDim = c.blockDim = dim3(1); c.stream = s; c.attrs = &a; c.numAttrs = is_programmatic;
  for (int k = 0; k < 20; k++) OK(cudaLaunchKernelEx(&c, dependent));
}
static void add(cudaGraph_t g, cudaGraphNode_t *n, cudaGraphNode_t *after, void *f, void **args) { cudaKernelNodeParams p = {}; p.func = f; p.gridDim = p.blockDim = dim3(1); p.kernelParams = args; OK(cudaGraphAddKernelNode(n, g, after, after ? 1 : 0, &p)); }
static cudaGraph_t *conditional(cudaGraph_t g, cudaGraphNode_t *n, cudaGraphNode_t *after, cudaGraphConditionalHandle h, cudaGraphConditionalNodeType type, int size) {
  cudaGraphNodeParams p = {}; p.type = cudaGraphNodeTypeConditional; p.conditional.handle = h; p.conditional.type = type; p.conditional.size = size; OK(cudaGraphAddNode(n, g, after, nullptr, 1, &p)); return p.conditional.phGraph_out;
}

int main(int argc, char **argv) {
  std::string mode = argv[1]; OK(cudaFree(0)); cudaStream_t s = stream();
  if (mode == "clusters") {
    int *p; OK(cudaMalloc(&p, 4));
    for (int i = -2; i < 20; i++) {
      if (i == 0) start();
      clusters<1>(132, s, p, i == 19); clusters<2>(132, s, p, i == 19); clusters<4>(132, s, p, i == 19); clusters<8>(128, s, p, i == 19); clusters<16>(128, s, p, i == 19);
    }
    stop("clusters", 20);
  }
  if (mode == "serial" || mode == "programmatic" || mode == "captured") {
    cudaGraph_t g; cudaGraphExec_t x = nullptr;
    if (mode == "captured") { OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); launch_dependent(s, true); OK(cudaStreamEndCapture(s, &g)); OK(cudaGraphInstantiate(&x, g, 0)); OK(cudaGraphLaunch(x, s)); }
    else launch_dependent(s, mode == "programmatic");
    start();
    for (int i = 0; i < 30; i++) { if (x) OK(cudaGraphLaunch(x, s)); else launch_dependent(s, mode == "programmatic"); OK(cudaStreamSynchronize(s)); compute(20); }
    stop(mode.c_str(), 30);
  }
  if (mode == "switch") {
    int *count; OK(cudaMalloc(&count, 4)); cudaGraph_t g; cudaGraphExec_t x; cudaGraphConditionalHandle loop, which; cudaGraphNode_t a, b, c, d, e; OK(cudaGraphCreate(&g, 0));
    OK(cudaGraphConditionalHandleCreate(&loop, g, 1, cudaGraphCondAssignDefault)); OK(cudaGraphConditionalHandleCreate(&which, g, 0, cudaGraphCondAssignDefault));
    void *f[] = {&count}, *h[] = {&which, &count}, *l[] = {&loop, &count}; long long ns[] = {20000, 40000, 60000}; add(g, &a, nullptr, (void *)first, f);
    cudaGraph_t inner = conditional(g, &b, &a, loop, cudaGraphCondTypeWhile, 1)[0]; add(inner, &c, nullptr, (void *)choose, h);
    cudaGraph_t *cases = conditional(inner, &d, &c, which, cudaGraphCondTypeSwitch, 3); void *bodies[] = {(void *)branch<0>, (void *)branch<1>, (void *)branch<2>};
    for (int k = 0; k < 3; k++) { void *args[] = {&ns[k]}; cudaGraphNode_t n; add(cases[k], &n, nullptr, bodies[k], args); }
    add(inner, &e, &d, (void *)next, l); OK(cudaGraphInstantiate(&x, g, 0)); OK(cudaGraphLaunch(x, s)); start();
    for (int i = 0; i < 30; i++) { OK(cudaGraphLaunch(x, s)); OK(cudaStreamSynchronize(s)); compute(20); }
    stop("switch", 30);
  }
  if (mode == "branches") { // a graph of 40 branches of 3 kernels
    cudaGraph_t g; cudaGraphExec_t x; cudaEvent_t forked, joined; OK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming)); OK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal)); OK(cudaEventRecord(forked, s));
    for (int b = 0; b < 40; b++) { cudaStream_t t = stream(); OK(cudaStreamWaitEvent(t, forked)); for (int k = 0; k < 3; k++) work<<<1, 1, 0, t>>>(20000 + 500 * b); OK(cudaEventRecord(joined, t)); OK(cudaStreamWaitEvent(s, joined)); }
    OK(cudaStreamEndCapture(s, &g)); OK(cudaGraphInstantiate(&x, g, 0)); OK(cudaGraphLaunch(x, s)); start();
    for (int i = 0; i < 30; i++) { OK(cudaGraphLaunch(x, s)); OK(cudaStreamSynchronize(s)); compute(20); }
    stop("branches", 30);
  }
  if (mode == "trim" || mode == "keep") {
    cudaMemPool_t pool; OK(cudaDeviceGetDefaultMemPool(&pool, 0)); uint64_t most = UINT64_MAX; OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most)); double trims = 0, allocations = 0;
    for (int i = -3; i < 30; i++) {
      if (i == 0) { start(); trims = allocations = 0; }
      void *p[4]; allocations += part("allocate", [&] { for (auto &q : p) OK(cudaMallocAsync(&q, 32 << 20, s)); });
      for (auto &q : p) { work<<<1, 1, 0, s>>>(10000); OK(cudaFreeAsync(q, s)); }
      OK(cudaStreamSynchronize(s)); if (mode == "trim") trims += part("trim", [&] { OK(cudaMemPoolTrimTo(pool, 0)); });
    }
    stop(mode.c_str(), 30); printf("4 allocations: %.0f us, trim: %.0f us\n", allocations / 30, trims / 30);
  }
  if (mode == "heap" || mode == "file" || mode == "kept" || mode == "pinned" || mode == "register" || mode == "read") {
    const size_t n = 64 << 20; char *p = nullptr, *d; OK(cudaMalloc(&d, n)); double open_us = 0, copy_us = 0, close_us = 0;
    int file = open("numbers.bin", O_RDWR | O_CREAT, 0600); char *text = (char *)malloc(n); memset(text, 7, n); if (write(file, text, n) != (ssize_t)n) return 1;
    auto map = [&] { p = (char *)mmap(nullptr, n, PROT_READ, MAP_SHARED, file, 0); if (p == MAP_FAILED) exit(1); };
    if (mode == "kept") map(); else if (mode == "pinned" || mode == "read") { OK(cudaMallocHost(&p, n)); memset(p, 7, n); } else if (mode != "file") p = text;
    for (int i = -2; i < 12; i++) {
      if (i == 0) { start(); open_us = copy_us = close_us = 0; }
      open_us += part("open", [&] { if (mode == "file") map(); if (mode == "read" && pread(file, p, n, 0) != (ssize_t)n) exit(1); if (mode == "register") OK(cudaHostRegister(p, n, 0)); });
      copy_us += part("copy", [&] { OK(cudaMemcpyAsync(d, p, n, cudaMemcpyHostToDevice, s)); work<<<1, 1, 0, s>>>(300000); OK(cudaStreamSynchronize(s)); });
      close_us += part("close", [&] { if (mode == "file") munmap(p, n); if (mode == "register") OK(cudaHostUnregister(p)); });
    }
    stop(mode.c_str(), 12); printf("before: %.0f us, copy and kernel: %.0f us, after: %.0f us\n", open_us / 12, copy_us / 12, close_us / 12); unlink("numbers.bin");
  }
  if (mode == "within") {
    const size_t n = 256 << 20; char *a, *b; OK(cudaMalloc(&a, n)); OK(cudaMalloc(&b, n));
    auto copy = [&](const char *name, bool is_last, auto call) { OK(cudaDeviceSynchronize()); double us = part(name, call), all = us + part("wait", [&] { OK(cudaDeviceSynchronize()); }); if (is_last) printf("%s: %.0f us in the call, %.0f us in all\n", name, us, all); };
    for (int i = -2; i < 10; i++) {
      if (i == 0) start();
      copy("cudaMemcpy", i == 9, [&] { OK(cudaMemcpy(a, b, n, cudaMemcpyDeviceToDevice)); }); copy("cudaMemcpyDefault", i == 9, [&] { OK(cudaMemcpy(a, b, n, cudaMemcpyDefault)); });
      copy("cudaMemcpyPeer", i == 9, [&] { OK(cudaMemcpyPeer(a, 0, b, 0, n)); }); copy("cudaMemcpyPeerAsync", i == 9, [&] { OK(cudaMemcpyPeerAsync(a, 0, b, 0, n, s)); });
      copy("by one byte", i == 9, [&] { OK(cudaMemcpyAsync(a + 1, b, n - 1, cudaMemcpyDeviceToDevice, s)); });
    }
    stop("within", 10);
  }
  return 0;
}
