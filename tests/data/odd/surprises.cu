// Small programs, one per mode. Each prints what a step took by the clock of the host, and what it measured itself.
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>
#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e_)); exit(1); } } while (0)
#define CHECKU(x) do { CUresult e_ = (x); if (e_ != CUDA_SUCCESS) { printf("%s: %d\n", #x, (int)e_); exit(1); } } while (0)
static double now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
__device__ void wait_us(long us) {
    unsigned long long a, b;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(a));
    do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(b)); } while (b - a < us * 1000ull);
}
__global__ void produce(long us) { wait_us(us); }
__global__ void consume(long us) { wait_us(us); }
__global__ void small(long us) { wait_us(us); }
__global__ void running(long us) { wait_us(us); }
__global__ void compute(float *p, int n) { float x = p[threadIdx.x], y = x; for (int i = 0; i < n; ++i) { x = x * 1.0001f + y; y = y * 0.9999f + x; } p[threadIdx.x] = x + y; }
template <int N> __global__ void code(float *p) {
    float x = p[threadIdx.x];
#pragma unroll
    for (int i = 0; i < 100; ++i) x = x * (float)(N + i) + p[(threadIdx.x + i) & 31];
    p[threadIdx.x] = x;
}
template <int N> __global__ void stack(float *p, int n) {
    volatile float a[N * 256]; for (int i = 0; i < n; ++i) a[(i * 37 + n) % (N * 256)] = p[i & 31];
    p[threadIdx.x] = a[(n * 11) % (N * 256)];
}
static const int steps = 30;
template <class F> void loop(const char *mode, F step) {
    for (int i = 0; i < 3; ++i) step();
    CHECK(cudaDeviceSynchronize()); CHECK(cudaProfilerStart()); double a = now();
    for (int i = 0; i < steps; ++i) step();
    CHECK(cudaDeviceSynchronize()); printf("%s: %.1f us per step\n", mode, (now() - a) / steps); CHECK(cudaProfilerStop());
}
void CUDART_CB host_function(void *) { usleep(200); }
template <int N> void first(cudaStream_t busy, cudaStream_t s, float *p) {
    running<<<1, 32, 0, busy>>>(10000); usleep(1000); double a = now(); code<N><<<1, 32, 0, s>>>(p); double b = now(); code<N><<<1, 32, 0, s>>>(p); double c = now();
    CHECK(cudaStreamSynchronize(s)); double d = now(); CHECK(cudaDeviceSynchronize()); printf("code %d: first launch %.1f us, second %.1f us, both done after %.1f us\n", N, b - a, c - b, d - a);
}
template <int N> void deeper(cudaStream_t busy, cudaStream_t s, float *p) {
    running<<<1, 32, 0, busy>>>(10000); usleep(1000); double a = now(); stack<N><<<1, 32, 0, s>>>(p, 40); double b = now(); stack<N><<<1, 32, 0, s>>>(p, 40); double c = now();
    CHECK(cudaStreamSynchronize(s)); double d = now(); CHECK(cudaDeviceSynchronize()); printf("stack of %d KiB: first launch %.1f us, second %.1f us, both done after %.1f us\n", N, b - a, c - b, d - a);
}
int main(int argc, char **v) {
    std::string m = v[1], option = argc > 2 ? v[2] : "";
    if (m == "wait") CHECK(cudaSetDeviceFlags(option == "spin" ? cudaDeviceScheduleSpin : option == "yield" ? cudaDeviceScheduleYield : option == "block" ? cudaDeviceScheduleBlockingSync : cudaDeviceScheduleAuto));
    cudaStream_t s, busy; CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); CHECK(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking)); float *p; CHECK(cudaMalloc(&p, 1 << 20)); CHECK(cudaMemset(p, 0, 1 << 20));
    if (m == "hostnode") {
        cudaGraph_t g; cudaGraphExec_t e; CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal)); produce<<<1, 32, 0, s>>>(50); CHECK(cudaLaunchHostFunc(s, host_function, nullptr)); consume<<<1, 32, 0, s>>>(50); CHECK(cudaStreamEndCapture(s, &g)); CHECK(cudaGraphInstantiate(&e, g, 0));
        loop("hostnode", [&] { CHECK(cudaGraphLaunch(e, s)); CHECK(cudaStreamSynchronize(s)); });
    } else if (m == "flag") {
        unsigned *flag; CUdeviceptr at; CHECK(cudaHostAlloc((void **)&flag, 64, cudaHostAllocMapped)); *flag = 0; CHECK(cudaHostGetDevicePointer((void **)&at, flag, 0)); unsigned turn = 0;
        loop("flag", [&] { ++turn; produce<<<1, 32, 0, s>>>(50); CHECKU(cuStreamWaitValue32((CUstream)s, at, turn, CU_STREAM_WAIT_VALUE_GEQ)); consume<<<1, 32, 0, s>>>(50); usleep(300); *(volatile unsigned *)flag = turn; CHECK(cudaStreamSynchronize(s)); });
    } else if (m == "graph") {
        const int n = 60; cudaGraph_t g; cudaGraphExec_t e; auto capture = [&] { CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal)); for (int i = 0; i < n; ++i) small<<<1, 32, 0, s>>>(3); CHECK(cudaStreamEndCapture(s, &g)); };
        capture(); CHECK(cudaGraphInstantiate(&e, g, 0)); cudaGraphNode_t nodes[n]; size_t count = n; CHECK(cudaGraphGetNodes(g, nodes, &count)); long us = 3; double update = 0, launch = 0; int turns = 0;
        loop(("graph " + option).c_str(), [&] {
            double a = now();
            if (option == "update") { cudaGraphExecUpdateResultInfo info; capture(); a = now(); CHECK(cudaGraphExecUpdate(e, g, &info)); CHECK(cudaGraphDestroy(g)); }
            else if (option == "instantiate") { CHECK(cudaGraphExecDestroy(e)); capture(); a = now(); CHECK(cudaGraphInstantiate(&e, g, 0)); CHECK(cudaGraphDestroy(g)); }
            else if (option == "params") for (int i = 0; i < n; ++i) { void *args[] = {&us}; cudaKernelNodeParams q = {}; q.func = (void *)small; q.gridDim = dim3(1); q.blockDim = dim3(32); q.kernelParams = args; CHECK(cudaGraphExecKernelNodeSetParams(e, nodes[i], &q)); }
            double b = now(); CHECK(cudaGraphLaunch(e, s)); double c = now(); update += b - a; launch += c - b; ++turns; CHECK(cudaStreamSynchronize(s)); });
        printf("graph %s: change %.1f us, launch %.1f us\n", option.c_str(), update / turns, launch / turns);
    } else if (m == "wait") {
        loop(("wait " + option).c_str(), [&] { produce<<<1, 32, 0, s>>>(300); CHECK(cudaStreamSynchronize(s)); });
    } else if (m == "threads") {
        int n = atoi(option.c_str()); std::vector<cudaStream_t> own(n); for (auto &o : own) CHECK(cudaStreamCreateWithFlags(&o, cudaStreamNonBlocking)); std::atomic<int> ready{0}, done{0}; std::vector<std::thread> pool; const int launches = 100;
        for (int t = 0; t < n; ++t) pool.emplace_back([&, t] { for (int turn = 1; turn <= steps + 3; ++turn) { while (ready < turn) {} for (int i = 0; i < launches; ++i) small<<<1, 32, 0, own[t]>>>(1); CHECK(cudaStreamSynchronize(own[t])); ++done; } });
        int turn = 0; loop(("threads " + option).c_str(), [&] { ++turn; ready = turn; while (done < turn * n) {} }); for (auto &t : pool) t.join();
    } else if (m == "strided") {
        const size_t rows = 65536, pitch = 4096, width = 16; char *h, *d, *d2; CHECK(cudaMallocHost(&h, rows * pitch)); CHECK(cudaMalloc(&d, rows * pitch)); CHECK(cudaMalloc(&d2, rows * pitch)); memset(h, 1, rows * pitch);
        auto timed = [&](const char *what, auto f) { for (int i = 0; i < 5; ++i) { double a = now(); f(); CHECK(cudaStreamSynchronize(s)); printf("%s %d: %.1f us\n", what, i, now() - a); } };
        CHECK(cudaProfilerStart());
        timed("whole to host", [&] { CHECK(cudaMemcpyAsync(h, d, rows * width, cudaMemcpyDeviceToHost, s)); });
        timed("column to host", [&] { CHECK(cudaMemcpy2DAsync(h, width, d, pitch, width, rows, cudaMemcpyDeviceToHost, s)); });
        timed("column to GPU", [&] { CHECK(cudaMemcpy2DAsync(d, pitch, h, width, width, rows, cudaMemcpyHostToDevice, s)); });
        timed("column on GPU", [&] { CHECK(cudaMemcpy2DAsync(d2, pitch, d, pitch, width, rows, cudaMemcpyDeviceToDevice, s)); });
        timed("4 bytes of 64 to host", [&] { CHECK(cudaMemcpy2DAsync(h, 4, d, 64, 4, rows, cudaMemcpyDeviceToHost, s)); });
        char *pageable = (char *)malloc(rows * width); memset(pageable, 1, rows * width);
        timed("column to pageable host", [&] { CHECK(cudaMemcpy2DAsync(pageable, width, d, pitch, width, rows, cudaMemcpyDeviceToHost, s)); });
        timed("rows of 4096 to host", [&] { CHECK(cudaMemcpy2DAsync(h, 4096, d, 8192, 4096, rows / 2, cudaMemcpyDeviceToHost, s)); });
        CHECK(cudaProfilerStop());
    } else if (m == "first") {
        small<<<1, 32, 0, s>>>(1); running<<<1, 32, 0, busy>>>(1); CHECK(cudaDeviceSynchronize()); CHECK(cudaProfilerStart());
        first<1>(busy, s, p); first<2>(busy, s, p); first<3>(busy, s, p); first<4>(busy, s, p); CHECK(cudaProfilerStop());
    } else if (m == "stack") {
        small<<<1, 32, 0, s>>>(1); running<<<1, 32, 0, busy>>>(1); stack<1><<<1, 32, 0, s>>>(p, 0); cudaFuncAttributes a; CHECK(cudaFuncGetAttributes(&a, stack<8>)); CHECK(cudaFuncGetAttributes(&a, stack<16>)); CHECK(cudaFuncGetAttributes(&a, stack<64>)); CHECK(cudaFuncGetAttributes(&a, stack<4>));
        CHECK(cudaDeviceSynchronize()); CHECK(cudaProfilerStart()); deeper<8>(busy, s, p); deeper<16>(busy, s, p); deeper<4>(busy, s, p); deeper<64>(busy, s, p); deeper<16>(busy, s, p); CHECK(cudaProfilerStop());
    } else if (m == "pause") {
        for (int i = 0; i < 20; ++i) compute<<<528, 256, 0, s>>>(p, 20000);
        CHECK(cudaDeviceSynchronize()); CHECK(cudaProfilerStart());
        for (int turn = 0; turn < 6; ++turn) { usleep(turn == 0 ? 1000 : turn < 4 ? 1000000 : 100000); for (int i = 0; i < 4; ++i) { double a = now(); compute<<<528, 256, 0, s>>>(p, 20000); CHECK(cudaStreamSynchronize(s)); printf("pause %d kernel %d: %.1f us\n", turn, i, now() - a); } }
        CHECK(cudaProfilerStop());
    } else return 2;
    CHECK(cudaDeviceSynchronize()); return 0;
}
