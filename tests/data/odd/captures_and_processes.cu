// One behavior per mode: captures that are cut, processes that follow or share, launches that block or fail. The output is what the program itself measured.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#define OK(x) do { auto error_ = (x); if ((int)error_) { printf("%s: error %d\n", #x, (int)error_); exit(1); } } while (0)
__device__ void pause_for(long long ns) { long long a, b; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a)); do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b)); } while (b - a < ns); }
__global__ void work(long long ns) { pause_for(ns); }
__global__ void other(long long ns) { pause_for(ns); }
extern __shared__ char shared[];
__global__ void wide(long long ns) { if (threadIdx.x == 0) shared[0] = 1; pause_for(ns); }
__global__ void read_all(const float4 *p, float4 *q, size_t n) { for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) q[i] = p[i]; }
static double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
static void compute(double us) { for (double a = now(); now() - a < us;) {} }
static double begin;
static void start() { OK(cudaDeviceSynchronize()); OK(cudaProfilerStart()); begin = now(); }
static void stop(const char *what, int steps) { OK(cudaDeviceSynchronize()); printf("%s: %.1f us per step\n", what, (now() - begin) / steps); OK(cudaProfilerStop()); fflush(stdout); }
__attribute__((noinline)) void wait_for_batch() { OK(cudaDeviceSynchronize()); compute(1); }
__attribute__((noinline)) void launch_batch(cudaStream_t s) { for (int k = 0; k < 3; k++) work<<<1, 1, 0, s>>>(100000); compute(1); }
static cudaGraphExec_t instantiate(cudaGraph_t g) { cudaGraphExec_t x; OK(cudaGraphInstantiate(&x, g, 0)); return x; }
static cudaGraphNode_t add_kernel(cudaGraph_t g, cudaGraphNode_t after, void *f, long long *ns) {
  cudaGraphNode_t n; void *args[] = {ns}; cudaKernelNodeParams p = {}; p.func = f; p.gridDim = p.blockDim = dim3(1); p.kernelParams = args; OK(cudaGraphAddKernelNode(&n, g, after ? &after : nullptr, after ? 1 : 0, &p)); return n; }

int main(int argc, char **argv) {
  std::string mode = argv[1];
  if (mode == "fork") { // The parent uses no CUDA. Each child has its own kernel.
    for (int c = 0; c < 2; c++) if (fork() == 0) {
      for (int i = 0; i < 20; i++) { for (int k = 0; k < 3; k++) if (c) other<<<1, 1>>>(100000); else work<<<1, 1>>>(50000); OK(cudaDeviceSynchronize()); }
      exit(0);
    }
    while (wait(nullptr) > 0) {}
    return 0;
  }
  if (mode == "exec" || mode == "exec_reset") { // The same process becomes another program.
    for (int i = 0; i < 20; i++) { for (int k = 0; k < 3; k++) work<<<1, 1>>>(50000); OK(cudaDeviceSynchronize()); compute(100); }
    if (mode == "exec_reset") { OK(cudaDeviceReset()); compute(1e6); }
    execl(argv[0], argv[0], "exec_second", nullptr);
  }
  if (mode == "exec_second") { for (int i = 0; i < 20; i++) { for (int k = 0; k < 3; k++) other<<<1, 1>>>(80000); OK(cudaDeviceSynchronize()); compute(100); } return 0; }
  if (mode == "ipc" || mode == "ipc_second") { // GPU 1 of one process waits for an event of the other process, on GPU 0.
    int to[2] = {100, 101}, from[2] = {102, 103}; const int steps = 40; cudaIpcMemHandle_t m; cudaIpcEventHandle_t h; void *p; cudaEvent_t e; cudaStream_t s; char c = 0;
    if (mode == "ipc") {
      int a[2], b[2]; if (pipe(a) || pipe(b)) return 1; dup2(a[0], to[0]); dup2(a[1], to[1]); dup2(b[0], from[0]); dup2(b[1], from[1]);
      if (fork() == 0) execl(argv[0], argv[0], "ipc_second", nullptr);
      OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); OK(cudaMalloc(&p, 1 << 20)); OK(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming)); OK(cudaIpcGetMemHandle(&m, p)); OK(cudaIpcGetEventHandle(&h, e));
      work<<<1, 1, 0, s>>>(1000); OK(cudaEventRecord(e, s)); OK(cudaDeviceSynchronize());
      if (write(to[1], &m, sizeof m) < 0 || write(to[1], &h, sizeof h) < 0 || read(from[0], &c, 1) < 0) return 1;
      begin = now();
      for (int i = 0; i < steps; i++) { work<<<1, 1, 0, s>>>(300000); OK(cudaMemsetAsync(p, i, 1 << 20, s)); OK(cudaEventRecord(e, s)); if (write(to[1], &c, 1) < 0 || read(from[0], &c, 1) < 0) return 1; }
      printf("ipc: %.1f us per step\n", (now() - begin) / steps); while (wait(nullptr) > 0) {}
    } else {
      if (read(to[0], &m, sizeof m) < 0 || read(to[0], &h, sizeof h) < 0) return 1;
      int n; OK(cudaGetDeviceCount(&n)); OK(cudaSetDevice(n - 1)); OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); OK(cudaIpcOpenEventHandle(&e, h)); OK(cudaIpcOpenMemHandle(&p, m, cudaIpcMemLazyEnablePeerAccess)); void *q; OK(cudaMalloc(&q, 1 << 20));
      other<<<1, 1, 0, s>>>(1000); OK(cudaDeviceSynchronize()); if (write(from[1], &c, 1) < 0) return 1;
      for (int i = 0; i < steps; i++) { if (read(to[0], &c, 1) < 0) return 1; OK(cudaStreamWaitEvent(s, e, 0)); OK(cudaMemcpyAsync(q, p, 1 << 20, cudaMemcpyDefault, s)); other<<<1, 1, 0, s>>>(50000); OK(cudaStreamSynchronize(s)); if (write(from[1], &c, 1) < 0) return 1; }
      OK(cudaIpcCloseMemHandle(p));
    }
    return 0;
  }
  cudaStream_t s[2]; for (auto &x : s) OK(cudaStreamCreateWithFlags(&x, cudaStreamNonBlocking));
  work<<<1, 1, 0, s[0]>>>(1000); other<<<1, 1, 0, s[0]>>>(1000); wide<<<1, 1, 16, s[0]>>>(1000); OK(cudaDeviceSynchronize());
  if (mode == "blocking") { // To be run with CUDA_LAUNCH_BLOCKING=1.
    start(); for (int i = 0; i < 40; i++) { for (int k = 0; k < 10; k++) work<<<1, 1, 0, s[0]>>>(50000); OK(cudaStreamSynchronize(s[0])); } stop("blocking", 40);
  } else if (mode == "repeat") { // Three ranges of ten steps, with five steps between them. A range of NVTX is open all the time.
    nvtxRangePushA("training");
    for (int r = 0; r < 3; r++) {
      other<<<1, 1, 0, s[1]>>>(2000000); OK(cudaProfilerStart()); nvtxRangePushA("part");
      for (int i = 0; i < 10; i++) { nvtxRangePushA("step"); for (int k = 0; k < 3; k++) work<<<1, 1, 0, s[0]>>>(100000); OK(cudaStreamSynchronize(s[0])); nvtxRangePop(); }
      nvtxRangePop(); OK(cudaProfilerStop()); for (int i = 0; i < 5; i++) { work<<<1, 1, 0, s[0]>>>(100000); OK(cudaDeviceSynchronize()); } compute(1000000);
    }
    nvtxRangePop();
  } else if (mode == "cut") { // Steps of 300 ms, to be cut by --delay and --duration.
    nvtxRangePushA("training"); for (int i = 0; i < 20; i++) { nvtxRangePushA("step"); work<<<1, 1, 0, s[0]>>>(290000000); OK(cudaStreamSynchronize(s[0])); compute(10000); nvtxRangePop(); } nvtxRangePop();
  } else if (mode == "payload") { // Ranges whose payload has a schema; of every other one, the name is in the payload.
    struct Request { char name[16]; int32_t tokens; double loss; } data = {"request", 0, 0};
    nvtxPayloadSchemaEntry_t entries[3] = {}; entries[0] = {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "name", nullptr, 16, offsetof(Request, name)};
    entries[1] = {0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "tokens", nullptr, 0, offsetof(Request, tokens)}; entries[2] = {0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "loss", nullptr, 0, offsetof(Request, loss)};
    nvtxPayloadSchemaAttr_t a = {}; a.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
    a.name = "Request"; a.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC; a.entries = entries; a.numEntries = 3; a.payloadStaticSize = sizeof(Request);
    auto domain = nvtxDomainCreateA("Server"); auto schema = nvtxPayloadSchemaRegister(domain, &a); start();
    for (int i = 0; i < 30; i++) {
      data.tokens = i; data.loss = 1.0 / (i + 1); nvtxPayloadData_t blob[1] = {{schema, sizeof data, &data}}; nvtxRangePushPayload(domain, blob, 1); work<<<1, 1, 0, s[0]>>>(100000); OK(cudaStreamSynchronize(s[0])); nvtxDomainRangePop(domain);
      nvtxEventAttributes_t e = {}; e.version = NVTX_VERSION; e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE; e.messageType = NVTX_MESSAGE_TYPE_ASCII; e.message.ascii = "answer"; NVTX_PAYLOAD_EVTATTR_SET_MULTIPLE(e, blob)
      nvtxDomainRangePushEx(domain, &e); other<<<1, 1, 0, s[0]>>>(50000); OK(cudaStreamSynchronize(s[0])); nvtxDomainRangePop(domain);
    }
    stop("payload", 30);
  } else if (mode == "backtrace") {
    start(); for (int i = 0; i < 30; i++) { launch_batch(s[0]); wait_for_batch(); } stop("backtrace", 30);
  } else if (mode == "refused") { // One launch per step has a block that is too large.
    start(); for (int i = 0; i < 30; i++) { work<<<1, 1, 0, s[0]>>>(50000); other<<<1, 2048, 0, s[0]>>>(50000); cudaGetLastError(); work<<<1, 1, 0, s[0]>>>(50000); OK(cudaStreamSynchronize(s[0])); } stop("refused", 30);
  } else if (mode == "renewed") { // A new thread and a new stream in each step.
    start(); for (int i = 0; i < 30; i++) std::thread([] { cudaStream_t t; cudaEvent_t e; OK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking)); OK(cudaEventCreate(&e)); for (int k = 0; k < 3; k++) work<<<1, 1, 0, t>>>(100000); OK(cudaEventRecord(e, t)); OK(cudaEventSynchronize(e)); OK(cudaEventDestroy(e)); OK(cudaStreamDestroy(t)); }).join();
    stop("renewed", 30);
  } else if (mode == "external") { // A graph waits within itself for an event of the other GPU.
    int n; OK(cudaGetDeviceCount(&n)); OK(cudaSetDevice(n - 1)); cudaStream_t t; cudaEvent_t e; OK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking)); OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming)); work<<<1, 1, 0, t>>>(1000); OK(cudaEventRecord(e, t)); OK(cudaDeviceSynchronize()); OK(cudaSetDevice(0));
    cudaGraph_t g; OK(cudaGraphCreate(&g, 0)); long long ns = 50000; cudaGraphNode_t w, a = add_kernel(g, nullptr, (void *)work, &ns); OK(cudaGraphAddEventWaitNode(&w, g, &a, 1, e)); add_kernel(g, w, (void *)other, &ns); auto x = instantiate(g); OK(cudaGraphLaunch(x, s[0])); start();
    for (int i = 0; i < 30; i++) { OK(cudaSetDevice(n - 1)); work<<<1, 1, 0, t>>>(400000); OK(cudaEventRecord(e, t)); OK(cudaSetDevice(0)); OK(cudaGraphLaunch(x, s[0])); OK(cudaStreamSynchronize(s[0])); }
    stop("external", 30);
  } else if (mode == "metrics") { // 20 copies of 64 MiB, and a pause of 30 us after each.
    float4 *p, *q; size_t n = 4 << 20; OK(cudaMalloc(&p, n * 16)); OK(cudaMalloc(&q, n * 16)); OK(cudaMemset(p, 1, n * 16)); start();
    for (int i = 0; i < 30; i++) { for (int k = 0; k < 20; k++) { read_all<<<1056, 256, 0, s[0]>>>(p, q, n); work<<<1, 1, 0, s[0]>>>(30000); } OK(cudaStreamSynchronize(s[0])); }
    stop("metrics", 30);
  } else if (mode == "same" || mode == "different") { // Two streams, blocks that fit side by side, with one split of L1 and shared memory or two.
    int most = 100 << 10; OK(cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, most)); OK(cudaFuncSetAttribute(wide, cudaFuncAttributePreferredSharedMemoryCarveout, 100)); OK(cudaFuncSetAttribute(work, cudaFuncAttributePreferredSharedMemoryCarveout, mode == "same" ? 100 : 0)); start();
    for (int i = 0; i < 30; i++) { work<<<132, 128, 0, s[0]>>>(200000); compute(30); wide<<<132, 128, most, s[1]>>>(200000); OK(cudaDeviceSynchronize()); }
    stop(mode.c_str(), 30);
  } else if (mode == "exit" || mode == "kill") { // The program ends without the runtime's own end.
    for (int i = 0; i < 40; i++) { nvtxRangePushA("step"); for (int k = 0; k < 3; k++) work<<<1, 1, 0, s[0]>>>(100000); OK(cudaStreamSynchronize(s[0])); nvtxRangePop(); }
    std::string before = argc > 2 ? argv[2] : ""; if (before == "stop") OK(cudaProfilerStop()); if (before == "reset") OK(cudaDeviceReset()); if (before == "pause") compute(1000000);
    if (mode == "exit") _exit(0); else raise(SIGKILL);
  } else if (mode == "nodes") { // The node in the middle is as it was for ten launches, off for ten, and another kernel for ten.
    cudaGraph_t g; OK(cudaGraphCreate(&g, 0)); long long ns = 50000; auto a = add_kernel(g, nullptr, (void *)work, &ns), b = add_kernel(g, a, (void *)work, &ns); add_kernel(g, b, (void *)work, &ns); auto x = instantiate(g); OK(cudaGraphLaunch(x, s[0])); start();
    for (int i = 0; i < 30; i++) {
      if (i == 10) OK(cudaGraphNodeSetEnabled(x, b, 0));
      if (i == 20) { OK(cudaGraphNodeSetEnabled(x, b, 1)); void *args[] = {&ns}; cudaKernelNodeParams p = {}; p.func = (void *)other; p.gridDim = p.blockDim = dim3(1); p.kernelParams = args; OK(cudaGraphExecKernelNodeSetParams(x, b, &p)); }
      OK(cudaGraphLaunch(x, s[0])); OK(cudaStreamSynchronize(s[0]));
    }
    stop("nodes", 30);
  }
  return 0;
}
