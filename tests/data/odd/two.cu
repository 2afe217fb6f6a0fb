// One behaviour of two GPUs per mode. The output is what the program itself measured.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <chrono>
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>
#define OK(x) do { cudaError_t error_ = (x); if (error_ != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(error_)); exit(1); } } while (0)
__global__ void spin(long long ns) { long long a, b; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(a)); do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(b)); } while (b - a < ns); }
__global__ void sum(const float *x, size_t n, float *y) { float s = 0; for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i]; if (s == 12345.f) *y = s; }
static double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
const size_t N = 64 << 20;
template <class F> void timed(const char *what, F f) { for (int i = 0; i < 3; i++) { double a = now(); f(); for (int d = 0; d < 2; d++) { cudaSetDevice(d); OK(cudaDeviceSynchronize()); } cudaSetDevice(0); printf("%s %d: %.1f us\n", what, i, now() - a); } }
int main(int argc, char **argv) {
  const char *mode = argv[1];
  float *p[2], *out[2]; cudaStream_t s[2];
  for (int d = 0; d < 2; d++) { OK(cudaSetDevice(d)); OK(cudaMalloc(&p[d], N)); OK(cudaMalloc(&out[d], 4)); OK(cudaStreamCreate(&s[d])); spin<<<1, 1, 0, s[d]>>>(1000); OK(cudaDeviceSynchronize()); }
  OK(cudaSetDevice(0)); OK(cudaProfilerStart());
  if (!strcmp(mode, "peer")) {
    timed("peer copy without access", [&] { OK(cudaMemcpyPeerAsync(p[1], 1, p[0], 0, N, s[0])); });
    timed("default copy without access", [&] { OK(cudaMemcpyAsync(p[1], p[0], N, cudaMemcpyDefault, s[0])); });
    for (int d = 0; d < 2; d++) { OK(cudaSetDevice(d)); OK(cudaDeviceEnablePeerAccess(1 - d, 0)); } cudaSetDevice(0);
    timed("peer copy with access", [&] { OK(cudaMemcpyPeerAsync(p[1], 1, p[0], 0, N, s[0])); });
    timed("default copy pulled by 1", [&] { OK(cudaMemcpyAsync(p[1], p[0], N, cudaMemcpyDefault, s[1])); });
    timed("kernel on 0 reads 1", [&] { sum<<<1056, 256, 0, s[0]>>>(p[1], N / 4, out[0]); });
    timed("memset of 1 on stream of 0", [&] { OK(cudaMemsetAsync(p[1], 0, N, s[0])); });
  } else if (!strcmp(mode, "cross")) {
    float *h; OK(cudaMallocHost(&h, N)); cudaEvent_t e; OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    timed("to GPU 1 on stream of 0", [&] { OK(cudaMemcpyAsync(p[1], h, N, cudaMemcpyHostToDevice, s[0])); });
    timed("to GPU 1 on null stream of 0", [&] { OK(cudaMemcpy(p[1], h, N, cudaMemcpyHostToDevice)); });
    timed("event of 0 waited by 1", [&] { spin<<<1, 1, 0, s[0]>>>(300000); OK(cudaEventRecord(e, s[0])); OK(cudaStreamWaitEvent(s[1], e, 0)); cudaSetDevice(1); spin<<<1, 1, 0, s[1]>>>(100000); });
    char *r = (char *)aligned_alloc(4096, N); memset(r, 1, N); OK(cudaHostRegister(r, N, cudaHostRegisterMapped));
    timed("registered to 0", [&] { OK(cudaMemcpyAsync(p[0], r, N, cudaMemcpyHostToDevice, s[0])); });
    float *dev; OK(cudaHostGetDevicePointer((void **)&dev, r, 0));
    timed("kernel reads host", [&] { sum<<<1056, 256, 0, s[0]>>>(dev, N / 4, out[0]); });
    OK(cudaDeviceSynchronize());
  } else if (!strcmp(mode, "graph")) {
    cudaGraph_t g; cudaGraphExec_t x; cudaEvent_t a, b; OK(cudaEventCreateWithFlags(&a, cudaEventDisableTiming)); cudaSetDevice(1); OK(cudaEventCreateWithFlags(&b, cudaEventDisableTiming)); cudaSetDevice(0);
    OK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeGlobal)); spin<<<1, 1, 0, s[0]>>>(50000); OK(cudaEventRecord(a, s[0])); cudaSetDevice(1); OK(cudaStreamWaitEvent(s[1], a, 0)); spin<<<1, 1, 0, s[1]>>>(200000); OK(cudaEventRecord(b, s[1])); cudaSetDevice(0); spin<<<1, 1, 0, s[0]>>>(50000); OK(cudaStreamWaitEvent(s[0], b, 0)); spin<<<1, 1, 0, s[0]>>>(50000); OK(cudaStreamEndCapture(s[0], &g)); OK(cudaGraphInstantiate(&x, g, 0));
    timed("graph of two GPUs", [&] { OK(cudaGraphLaunch(x, s[0])); });
  } else if (!strcmp(mode, "threads")) {
    timed("per-thread streams", [&] { auto f = [&] { cudaSetDevice(0); for (int i = 0; i < 20; i++) spin<<<1, 1, 0, cudaStreamPerThread>>>(20000); cudaStreamSynchronize(cudaStreamPerThread); }; std::thread a(f), b(f); a.join(); b.join(); });
  } else if (!strcmp(mode, "prefetch")) {
    float *m; OK(cudaMallocManaged(&m, N)); for (size_t i = 0; i < N / 4; i++) m[i] = i;
    cudaMemLocation l0 = {cudaMemLocationTypeDevice, 0}, l1 = {cudaMemLocationTypeDevice, 1}, h = {cudaMemLocationTypeHost, 0};
    timed("prefetch to 0, use, to 1, use, to host", [&] { OK(cudaMemPrefetchAsync(m, N, l0, 0, s[0])); sum<<<1056, 256, 0, s[0]>>>(m, N / 4, out[0]); OK(cudaStreamSynchronize(s[0])); OK(cudaMemPrefetchAsync(m, N, l1, 0, s[1])); cudaSetDevice(1); sum<<<1056, 256, 0, s[1]>>>(m, N / 4, out[1]); OK(cudaStreamSynchronize(s[1])); OK(cudaMemPrefetchAsync(m, N, h, 0, s[1])); });
  } else if (!strcmp(mode, "pools")) {
    timed("one pool, two streams", [&] { for (int i = 0; i < 4; i++) { void *q, *w; OK(cudaMallocAsync(&q, 8 << 20, s[0])); spin<<<1, 1, 0, s[0]>>>(50000); OK(cudaFreeAsync(q, s[0])); OK(cudaMallocAsync(&w, 8 << 20, s[0])); OK(cudaFreeAsync(w, s[0])); } });
  }
  for (int d = 0; d < 2; d++) { cudaSetDevice(d); OK(cudaDeviceSynchronize()); }
  OK(cudaProfilerStop()); puts("done");
}
