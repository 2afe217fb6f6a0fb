#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <chrono>
#include <cuda_runtime.h>
#include <cuda_profiler_api.h>
#define OK(x) do { cudaError_t r_ = (x); if (r_ != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(r_)); exit(1); } } while (0)
__global__ void scale(float *x, size_t n) { for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= 1.0001f; }
static double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
// staged pipeline|access|sizes: a pipeline of two GPUs; each step, GPU 0 works, sends its result to GPU 1, which works on it.
int main(int argc, char **argv) {
  bool access = !strcmp(argv[1], "access"), sizes = !strcmp(argv[1], "sizes"); const size_t N = 256 << 20; float *p[2]; cudaStream_t s[2]; cudaEvent_t sent;
  for (int d = 0; d < 2; d++) { OK(cudaSetDevice(d)); OK(cudaMalloc(&p[d], N)); OK(cudaStreamCreate(&s[d])); scale<<<528, 256, 0, s[d]>>>(p[d], N / 4); if (access) OK(cudaDeviceEnablePeerAccess(1 - d, 0)); OK(cudaDeviceSynchronize()); }
  OK(cudaSetDevice(0)); OK(cudaEventCreateWithFlags(&sent, cudaEventDisableTiming)); OK(cudaMemcpyPeerAsync(p[1], 1, p[0], 0, N, s[0])); OK(cudaDeviceSynchronize());
  OK(cudaProfilerStart());
  if (sizes) {
    for (size_t n = 4096; n <= N; n *= 4) for (int i = 0; i < 3; i++) { double a = now(); OK(cudaMemcpyPeerAsync(p[1], 1, p[0], 0, n, s[0])); double b = now(); for (int d = 1; d >= 0; d--) { cudaSetDevice(d); OK(cudaDeviceSynchronize()); } printf("%zu %.1f call, %.1f all\n", n, b - a, now() - a); }
  } else {
    double a = now(); const int steps = 30; const size_t n = 16 << 20;
    for (int i = 0; i < steps; i++) {
      scale<<<528, 256, 0, s[0]>>>(p[0], N / 4); OK(cudaMemcpyPeerAsync(p[1], 1, p[0], 0, n, s[0])); OK(cudaEventRecord(sent, s[0]));
      OK(cudaSetDevice(1)); OK(cudaStreamWaitEvent(s[1], sent, 0)); scale<<<528, 256, 0, s[1]>>>(p[1], n / 4); OK(cudaStreamSynchronize(s[1])); OK(cudaSetDevice(0));
    }
    OK(cudaDeviceSynchronize()); printf("%s: %.1f us per step\n", argv[1], (now() - a) / steps);
  }
  OK(cudaProfilerStop());
}
