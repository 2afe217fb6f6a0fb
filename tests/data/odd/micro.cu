// One kernel per known limit, for ncu: the name says what limits it.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e_)); exit(1); } } while (0)
namespace cg = cooperative_groups;
const int N = 1 << 26;
// All warps poll a clock: nothing is computed.
__global__ void spins_on_clock(long us) { unsigned long long a, b; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(a)); do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(b)); } while (b - a < us * 1000ull); }
// All blocks but one poll a flag in memory, which the last block sets after 200 us.
__global__ void spins_on_flag(volatile int *flag, int turn) {
    if (blockIdx.x == gridDim.x - 1) { unsigned long long a, b; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(a)); do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(b)); } while (b - a < 200000ull); __syncthreads(); if (threadIdx.x == 0) { *flag = turn; __threadfence(); *flag = 0; *(flag + 32) = turn; } }
    else while (*(flag + 32) != turn) {}
}
__global__ void sleeps() { for (int i = 0; i < 200; ++i) __nanosleep(1000); }
__global__ void atomics_on_one_address(unsigned *p) { for (int i = 0; i < 16; ++i) atomicAdd(p, threadIdx.x & i); }
__global__ void atomics_returning(unsigned *p, unsigned *q) { unsigned s = 0; for (int i = 0; i < 16; ++i) s += atomicAdd(p, threadIdx.x & i); q[blockIdx.x * blockDim.x + threadIdx.x] = s; }
__global__ void grid_barriers(float *p) { auto g = cg::this_grid(); for (int i = 0; i < 100; ++i) { p[g.thread_rank()] += 1.f; g.sync(); } }
__global__ void __cluster_dims__(4, 1, 1) cluster_exchange(float *p) {
    __shared__ float a[1024]; auto c = cg::this_cluster(); a[threadIdx.x] = threadIdx.x; c.sync(); float s = 0;
    for (int i = 0; i < 400; ++i) { float *o = c.map_shared_rank(a, (c.block_rank() + 1 + (i & 1)) & 3); s += o[(threadIdx.x * 4 + i) & 1023]; }
    c.sync(); p[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
// The bulk copy engine reads all of x, one thread per block asks for it.
__global__ void bulk_reads(const float *x, float *y) {
    extern __shared__ __align__(128) char buffer[]; const int bytes = 65536; __shared__ unsigned long long bar; unsigned b = (unsigned)__cvta_generic_to_shared(&bar), d = (unsigned)__cvta_generic_to_shared(buffer); unsigned phase = 0;
    if (threadIdx.x == 0) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b)); asm volatile("fence.proxy.async;"); } __syncthreads();
    for (long at = blockIdx.x * (long)bytes; at < N * 4l; at += gridDim.x * (long)bytes) {
        if (threadIdx.x == 0) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes)); asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(d), "l"((const char *)x + at), "r"(bytes), "r"(b) : "memory"); }
        asm volatile("{ .reg .pred P; L: mbarrier.try_wait.parity.shared::cta.b64 P, [%0], %1; @!P bra L; }" ::"r"(b), "r"(phase)); phase ^= 1; __syncthreads();
    }
    if (threadIdx.x == 0 && buffer[0] == 77) y[blockIdx.x] = 1;
}
__global__ void reads_in_order(const float4 *x, float *y) { float s = 0; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N / 4; i += gridDim.x * blockDim.x) { float4 v = x[i]; s += v.x + v.y + v.z + v.w; } if (s == 12345.f) *y = s; }
__global__ void doubles(double *p) { double a = p[threadIdx.x], b = a; for (int i = 0; i < 2000; ++i) { a = a * 1.0001 + b; b = b * 0.9999 + a; } p[threadIdx.x] = a + b; }
__global__ void divisions(int *p, int n) { int s = 0; for (int i = 1; i < 1000; ++i) s += (p[threadIdx.x] + i) / (n + i); p[blockIdx.x * blockDim.x + threadIdx.x] = s; }
__global__ void reads_host(const float *x, float *y) { float s = 0; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (1 << 22); i += gridDim.x * blockDim.x) s += x[i]; if (s == 12345.f) *y = s; }
__global__ void chases(const int *next, int *y) { int at = threadIdx.x; for (int i = 0; i < 500; ++i) at = next[at]; if (at == -1) *y = at; }
__global__ void writes_only(float4 *x) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N / 4; i += gridDim.x * blockDim.x) x[i] = make_float4(1, 2, 3, 4); }
int main() {
    float *x, *y; CHECK(cudaMalloc(&x, N * 4l)); CHECK(cudaMalloc(&y, 1 << 24)); CHECK(cudaMemset(x, 1, N * 4l)); CHECK(cudaMemset(y, 0, 1 << 24)); float *h, *hd; CHECK(cudaHostAlloc(&h, 1 << 24, cudaHostAllocMapped)); CHECK(cudaHostGetDevicePointer(&hd, h, 0));
    int *next; CHECK(cudaMalloc(&next, N * 4l)); int *hn = (int *)malloc(N * 4l); for (long i = 0; i < N; ++i) hn[i] = (int)((i * 7368787l + 12345) % N); CHECK(cudaMemcpy(next, hn, N * 4l, cudaMemcpyHostToDevice));
    CHECK(cudaFuncSetAttribute(bulk_reads, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    spins_on_clock<<<264, 256>>>(200); CHECK(cudaDeviceSynchronize());
    spins_on_flag<<<132, 256>>>((int *)y, 1); CHECK(cudaDeviceSynchronize());
    sleeps<<<264, 256>>>(); CHECK(cudaDeviceSynchronize());
    atomics_on_one_address<<<1056, 256>>>((unsigned *)y); CHECK(cudaDeviceSynchronize());
    atomics_returning<<<1056, 256>>>((unsigned *)y, (unsigned *)x); CHECK(cudaDeviceSynchronize());
    void *args[] = {&y}; CHECK(cudaLaunchCooperativeKernel((void *)grid_barriers, dim3(132), dim3(256), args)); CHECK(cudaDeviceSynchronize());
    cluster_exchange<<<528, 1024>>>(x); CHECK(cudaDeviceSynchronize());
    bulk_reads<<<396, 32, 65536>>>(x, y); CHECK(cudaDeviceSynchronize());
    reads_in_order<<<1056, 256>>>((float4 *)x, y); CHECK(cudaDeviceSynchronize());
    doubles<<<528, 256>>>((double *)x); CHECK(cudaDeviceSynchronize());
    divisions<<<528, 256>>>((int *)x, 3); CHECK(cudaDeviceSynchronize());
    reads_host<<<528, 256>>>(hd, y); CHECK(cudaDeviceSynchronize());
    chases<<<1, 32>>>(next, (int *)y); CHECK(cudaDeviceSynchronize());
    writes_only<<<1056, 256>>>((float4 *)x); CHECK(cudaDeviceSynchronize());
    puts("done"); return 0;
}
