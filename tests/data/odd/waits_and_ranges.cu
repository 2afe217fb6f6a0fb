// One behavior per mode: waits that no CUDA call shows, streams, contexts, and NVTX. The output is what the program itself measured.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <sys/syscall.h>
#include <unistd.h>
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#define OK(x) do { auto error_ = (x); if ((int)error_) { printf("%s: error %d\n", #x, (int)error_); exit(1); } } while (0)
__device__ void pause_for(long long ns) { long long a, b; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a)); do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b)); } while (b - a < ns); }
__global__ void work(long long ns) { pause_for(ns); }
__global__ void other(long long ns) { pause_for(ns); }
__global__ void work_and_tell(long long ns, volatile int *flag, int value) { pause_for(ns); __threadfence_system(); *flag = value; }
// Serves requests until a negative one comes. Each takes ns.
__global__ void serve(long long ns, volatile int *request, volatile int *reply) {
  for (int done = 0;;) { int r = *request; if (r < 0) return; if (r > done) { pause_for(ns); done = r; __threadfence_system(); *reply = r; } }
}
__global__ void touch(float *p, size_t n, long long ns) { for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) p[i] = 1; pause_for(ns); }
static double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
static void compute(double us) { for (double a = now(); now() - a < us;) {} }
static double begin;
static void start() { OK(cudaDeviceSynchronize()); OK(cudaProfilerStart()); begin = now(); }
static void stop(const char *what, int steps) { OK(cudaDeviceSynchronize()); printf("%s: %.1f us per step\n", what, (now() - begin) / steps); OK(cudaProfilerStop()); }
struct Signal { std::mutex m; std::condition_variable c; int n = 0;
  void give() { { std::lock_guard<std::mutex> l(m); n++; } c.notify_one(); }
  void take() { std::unique_lock<std::mutex> l(m); c.wait(l, [&] { return n > 0; }); n--; } };
static void CUDART_CB wake(void *s) { ((Signal *)s)->give(); }
static nvtxEventAttributes_t named(const char *text) { nvtxEventAttributes_t a = {}; a.version = NVTX_VERSION; a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE; a.messageType = NVTX_MESSAGE_TYPE_ASCII; a.message.ascii = text; return a; }

int main(int argc, char **argv) {
  std::string mode = argv[1];
  cudaStream_t s[16]; for (auto &x : s) OK(cudaStreamCreateWithFlags(&x, cudaStreamNonBlocking));
  work<<<1, 1, 0, s[0]>>>(1000); other<<<1, 1, 0, s[0]>>>(1000); OK(cudaDeviceSynchronize());
  if (mode == "flag") {
    volatile int *f; OK(cudaHostAlloc((void **)&f, 4, cudaHostAllocMapped)); *f = -1; work_and_tell<<<1, 1, 0, s[0]>>>(1000, f, -1); start();
    for (int i = 0; i < 40; i++) { work<<<1, 1, 0, s[0]>>>(100000); work_and_tell<<<1, 1, 0, s[0]>>>(200000, f, i); while (*f != i) {} compute(100); }
    stop("flag", 40);
  } else if (mode == "serve") {
    volatile int *f; OK(cudaHostAlloc((void **)&f, 8, cudaHostAllocMapped)); f[0] = f[1] = 0; start();
    serve<<<1, 1, 0, s[0]>>>(50000, f, f + 1);
    for (int i = 1; i <= 40; i++) { nvtxRangePushA("request"); f[0] = i; while (f[1] != i) {} nvtxRangePop(); compute(200); }
    f[0] = -1; stop("serve", 40);
  } else if (mode == "waiter" || mode == "callback") {
    Signal done, go; cudaEvent_t e; OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming)); bool quit = false;
    std::thread waits([&] { for (;;) { go.take(); if (quit) return; OK(cudaEventSynchronize(e)); done.give(); } }); start();
    for (int i = 0; i < 40; i++) {
      for (int k = 0; k < 4; k++) work<<<1, 1, 0, s[0]>>>(50000);
      if (mode == "waiter") { OK(cudaEventRecord(e, s[0])); go.give(); } else OK(cudaLaunchHostFunc(s[0], wake, &done));
      done.take(); compute(50);
    }
    stop(mode.c_str(), 40); quit = true; go.give(); waits.join();
  } else if (mode == "queues") {
    start();
    for (int i = 0; i < 20; i++) { for (int k = 0; k < 16; k++) for (int n = 0; n < 2; n++) work<<<1, 1, 0, s[k]>>>(k ? 50000 : 500000); OK(cudaDeviceSynchronize()); }
    stop("queues", 20);
  } else if (mode == "reuse" || mode == "noreuse") {
    cudaMemPool_t pool; OK(cudaDeviceGetDefaultMemPool(&pool, 0)); uint64_t all = ~0ull; OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all)); int off = 0;
    if (mode == "noreuse") { OK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &off)); OK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &off)); }
    size_t n = 16 << 20; void *p; OK(cudaMallocAsync(&p, n * 4, s[0])); touch<<<8, 256, 0, s[0]>>>((float *)p, n, 0); OK(cudaFreeAsync(p, s[0])); start();
    for (int i = 0; i < 20; i++) for (int k = 0; k < 2; k++) { OK(cudaMallocAsync(&p, n * 4, s[k])); touch<<<32, 256, 0, s[k]>>>((float *)p, n, 200000); OK(cudaFreeAsync(p, s[k])); }
    stop(mode.c_str(), 20); uint64_t high; OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &high)); printf("reserved at most %llu MiB\n", (unsigned long long)high >> 20);
  } else if (mode == "contexts") {
    void *entry; cudaDriverEntryPointQueryResult r; CUcontext c[2];
    OK(cudaGetDriverEntryPointByVersion("cuCtxCreate", &entry, 13000, cudaEnableDefault, &r)); auto create = (CUresult (*)(CUcontext *, CUctxCreateParams *, unsigned, CUdevice))entry;
    OK(cudaGetDriverEntryPointByVersion("cuCtxSetCurrent", &entry, 13000, cudaEnableDefault, &r)); auto use = (CUresult (*)(CUcontext))entry;
    for (auto &x : c) OK(create(&x, nullptr, 0, 0));
    auto loop = [&](int k, int steps) { OK(use(c[k])); cudaStream_t t; OK(cudaStreamCreate(&t)); for (int i = 0; i < steps; i++) { for (int n = 0; n < 10; n++) work<<<1, 1, 0, t>>>(100000); OK(cudaStreamSynchronize(t)); compute(50); } };
    for (int k = 0; k < 2; k++) std::thread(loop, k, 2).join();
    start(); std::thread a(loop, 0, 20), b(loop, 1, 20); a.join(); b.join(); stop("contexts", 20);
  } else if (mode == "events") {
    cudaEvent_t e[2]; for (auto &x : e) OK(cudaEventCreateWithFlags(&x, cudaEventDisableTiming)); cudaEvent_t t; OK(cudaEventCreate(&t)); start();
    for (int i = 0; i < 20; i++) {
      for (int n = 0; n < 10; n++) for (int k = 0; k < 2; k++) { work<<<1, 1, 0, s[k]>>>(k ? 20000 : 30000); OK(cudaEventRecord(t, s[k])); OK(cudaEventRecord(e[k], s[k])); }
      OK(cudaStreamWaitEvent(s[0], e[1], 0)); other<<<1, 1, 0, s[0]>>>(20000); OK(cudaEventRecord(e[0], s[0])); OK(cudaEventSynchronize(e[0]));
    }
    stop("events", 20);
  } else if (mode == "ranges") {
    Signal go; std::vector<nvtxRangeId_t> open; std::mutex m; const int steps = 30; start();
    std::thread worker([&] {
      for (int i = 0; i < steps; i++) {
        go.take(); nvtxRangePushA("forward"); for (int k = 0; k < 3; k++) work<<<1, 1, 0, s[0]>>>(50000); nvtxRangePop();
        OK(cudaStreamSynchronize(s[0])); nvtxRangeId_t r; { std::lock_guard<std::mutex> l(m); r = open[i]; } nvtxRangeEnd(r);
      } });
    for (int i = 0; i < steps; i++) { std::string name = "request " + std::to_string(i); auto r = nvtxRangeStartA(name.c_str()); { std::lock_guard<std::mutex> l(m); open.push_back(r); } go.give(); compute(170); }
    worker.join(); stop("ranges", steps);
  } else if (mode == "pop") {
    start();
    for (int i = 0; i < 40; i++) {
      nvtxRangePushA("step"); nvtxRangePushA("forward"); work<<<1, 1, 0, s[0]>>>(100000); nvtxRangePop();
      nvtxRangePushA("sample"); other<<<1, 1, 0, s[0]>>>(50000); OK(cudaStreamSynchronize(s[0])); if (i % 10 != 5) nvtxRangePop(); nvtxRangePop();
    }
    stop("pop", 40);
  } else if (mode == "domains") {
    auto loader = nvtxDomainCreateA("Loader"), model = nvtxDomainCreateA("Model"); auto text = nvtxDomainRegisterStringA(loader, "batch");
    nvtxDomainNameCategoryA(loader, 7, "input"); nvtxNameCudaStreamA(s[1], "copies"); nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "launcher");
    nvtxCounterAttr_t counter = {}; counter.structSize = sizeof counter; counter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE; counter.name = "loss"; counter.scopeId = NVTX_SCOPE_CURRENT_VM; auto id = nvtxCounterRegister(model, &counter);
    void *h, *d; OK(cudaMallocHost(&h, 1 << 20)); OK(cudaMalloc(&d, 1 << 20)); start();
    for (int i = 0; i < 30; i++) {
      auto a = named(""); a.messageType = NVTX_MESSAGE_TYPE_REGISTERED; a.message.registered = text; a.category = 7; a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64; a.payload.ullValue = i;
      nvtxDomainRangePushEx(loader, &a); OK(cudaMemcpyAsync(d, h, 1 << 20, cudaMemcpyHostToDevice, s[1])); nvtxDomainRangePop(loader);
      auto b = named("batch"); nvtxDomainRangePushEx(model, &b); work<<<1, 1, 0, s[0]>>>(100000); OK(cudaDeviceSynchronize()); nvtxDomainRangePop(model);
      nvtxCounterSampleFloat64(model, id, 1.0 / (i + 1)); auto l = named("loss"); l.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE; l.payload.dValue = 1.0 / (i + 1); nvtxDomainMarkEx(model, &l);
    }
    stop("domains", 30);
  } else if (mode == "nodes") {
    const size_t n = 4 << 20; char *h, *d, *q, *r = (char *)calloc(n, 1); OK(cudaMallocHost((void **)&h, n)); OK(cudaMalloc(&d, n)); OK(cudaMalloc(&q, n)); cudaEvent_t e; OK(cudaEventCreate(&e)); cudaGraph_t g; cudaGraphExec_t x;
    auto body = [&] { OK(cudaMemsetAsync(d, 1, n, s[0])); OK(cudaMemsetAsync(q, 0, 64, s[0])); OK(cudaMemcpyAsync(d, h, n, cudaMemcpyHostToDevice, s[0])); work<<<1, 1, 0, s[0]>>>(50000); OK(cudaMemcpyAsync(q, d, n, cudaMemcpyDeviceToDevice, s[0])); OK(cudaMemcpyAsync(h, q, n, cudaMemcpyDeviceToHost, s[0])); OK(cudaMemcpyAsync(h, q, 64, cudaMemcpyDeviceToHost, s[0])); };
    OK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeGlobal)); body(); OK(cudaMemcpyAsync(d, r, n, cudaMemcpyHostToDevice, s[0])); OK(cudaStreamEndCapture(s[0], &g)); OK(cudaGraphInstantiate(&x, g, 0)); OK(cudaGraphUpload(x, s[0])); start();
    for (int i = 0; i < 5; i++) { body(); OK(cudaStreamSynchronize(s[0])); }
    for (int i = 0; i < 20; i++) { OK(cudaGraphLaunch(x, s[0])); OK(cudaStreamSynchronize(s[0])); }
    stop("nodes", 25);
  } else if (mode == "priority") {
    int low, high; OK(cudaDeviceGetStreamPriorityRange(&low, &high)); cudaStream_t a, b; OK(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, low)); OK(cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, high)); start();
    for (int i = 0; i < 20; i++) { // First small blocks, many times as many as fit; then blocks that all fit and take 2 ms.
      work<<<132 * 8 * 20, 256, 0, a>>>(50000); compute(300); other<<<132, 256, 0, b>>>(50000); OK(cudaDeviceSynchronize());
      work<<<132 * 8, 256, 0, a>>>(2000000); compute(300); other<<<132, 256, 0, b>>>(50000); OK(cudaDeviceSynchronize());
    }
    stop("priority", 20);
  } else if (mode == "thrust") {
    thrust::device_vector<int> keys(1 << 20), v(1 << 20, 3); start(); long sum = 0;
    for (int i = 0; i < 30; i++) { keys = v; thrust::sort(keys.begin(), keys.end()); thrust::device_vector<int> out(1 << 20); thrust::exclusive_scan(keys.begin(), keys.end(), out.begin()); sum += thrust::reduce(out.begin(), out.end()); }
    stop("thrust", 30);
  } else if (mode == "visible") {
    int n; OK(cudaGetDeviceCount(&n)); cudaStream_t t[2]; for (int d = 0; d < n; d++) { OK(cudaSetDevice(d)); OK(cudaStreamCreate(&t[d])); work<<<1, 1, 0, t[d]>>>(1000); OK(cudaDeviceSynchronize()); } start();
    for (int i = 0; i < 20; i++) for (int d = n - 1; d >= 0; d--) { OK(cudaSetDevice(d)); for (int k = 0; k < 5; k++) work<<<1, 1, 0, t[d]>>>(d ? 20000 : 100000); OK(cudaStreamSynchronize(t[d])); }
    stop("visible", 20);
  }
  return 0;
}
