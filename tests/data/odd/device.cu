// Work that the GPU launches itself, one way per mode. Each prints what a step took by the clock of the host.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e_)); exit(1); } } while (0)
static double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
__device__ void wait_us(long us) {
    unsigned long long a, b;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(a));
    do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(b)); } while (b - a < us * 1000ull);
}
__global__ void child(long us) { wait_us(us); }
__global__ void after(long us) { wait_us(us); }
__global__ void parent(int children, long us) { if (threadIdx.x == 0) for (int i = 0; i < children; ++i) child<<<1, 32>>>(us); }
__global__ void parent_of_tail(int children, long us) { if (threadIdx.x == 0) for (int i = 0; i < children; ++i) child<<<1, 32, 0, cudaStreamTailLaunch>>>(us); }
__global__ void body_a(long us) { wait_us(us); }
__global__ void body_b(long us) { wait_us(us); }
__device__ cudaGraphExec_t launched;
__global__ void forget() { if (threadIdx.x == 0) cudaGraphLaunch(launched, cudaStreamGraphFireAndForget); }
__global__ void tail() { if (threadIdx.x == 0) cudaGraphLaunch(launched, cudaStreamGraphTailLaunch); }
int main(int, char **v) {
    std::string mode = v[1]; cudaStream_t s; CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); const int steps = 20;
    cudaGraphExec_t launcher = nullptr, inner;
    if (mode == "forget" || mode == "tail") {
        cudaGraph_t g; CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal)); body_a<<<1, 32, 0, s>>>(60); body_b<<<1, 32, 0, s>>>(60); CHECK(cudaStreamEndCapture(s, &g));
        CHECK(cudaGraphInstantiate(&inner, g, cudaGraphInstantiateFlagDeviceLaunch)); CHECK(cudaGraphUpload(inner, s)); CHECK(cudaMemcpyToSymbol(launched, &inner, sizeof(inner)));
        CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal)); if (mode == "forget") forget<<<1, 32, 0, s>>>(); else tail<<<1, 32, 0, s>>>(); CHECK(cudaStreamEndCapture(s, &g)); CHECK(cudaGraphInstantiate(&launcher, g, 0));
    }
    auto step = [&] {
        if (mode == "children") parent<<<1, 32, 0, s>>>(2, 100);
        else if (mode == "children_tail") parent_of_tail<<<1, 32, 0, s>>>(2, 100);
        else CHECK(cudaGraphLaunch(launcher, s));
        after<<<1, 32, 0, s>>>(20);
    };
    step(); CHECK(cudaDeviceSynchronize()); CHECK(cudaProfilerStart()); double a = now();
    for (int i = 0; i < steps; ++i) { step(); CHECK(cudaStreamSynchronize(s)); }
    printf("%s: %.1f us per step\n", v[1], (now() - a) / steps); CHECK(cudaDeviceSynchronize()); CHECK(cudaProfilerStop());
}
