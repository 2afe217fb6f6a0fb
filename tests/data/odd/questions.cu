// Small programs, one per mode, that ask what nsys records. Each prints what it measured itself.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("%s: %s\n", #x, cudaGetErrorString(e_)); exit(1); } } while (0)
#define CHECKU(x) do { CUresult e_ = (x); if (e_ != CUDA_SUCCESS) { printf("%s: %d\n", #x, (int)e_); exit(1); } } while (0)

__device__ void wait_us(long us) {
    unsigned long long a, b;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(a));
    do { asm volatile("mov.u64 %0, %globaltimer;" : "=l"(b)); } while (b - a < us * 1000ull);
}
__global__ void spin(long us) { wait_us(us); }
__global__ void child_a(long us) { wait_us(us); }
__global__ void child_b(long us) { wait_us(us); }
__global__ void child_c(long us) { wait_us(us); }
__global__ void before_host(long us) { wait_us(us); }
__global__ void after_host(long us) { wait_us(us); }
__global__ void timed(long us) { wait_us(us); }
__global__ void low(long us) { wait_us(us); }
__global__ void high(long us) { wait_us(us); }
__global__ void cooperative(int *p) { cooperative_groups::this_grid().sync(); if (p) p[0] = 1; }
__global__ void clustered(int *p) { if (p) p[0] = 2; }
__global__ void __cluster_dims__(2, 1, 1) clustered_fixed(int *p) { if (p) p[0] = 3; }
__global__ void no_cluster(int *p) { if (p) p[0] = 4; }
__global__ void prints() { printf("from the kernel, block %d\n", blockIdx.x); }
__global__ void leaves(int n) { if (n < 0) printf("never"); }
__global__ void touch_in_order(float *p, long n) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) p[i] += 1.f;
}
__global__ void touch_at_random(float *p, long n) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x)
        p[(i * 7368787l) % n] += 1.f;
}
__global__ void before_start(long us) { wait_us(us); }
__global__ void running_at_start(long us) { wait_us(us); }
__global__ void queued_at_start(long us) { wait_us(us); }
__global__ void other_stream_at_start(long us) { wait_us(us); }
__global__ void after_start(long us) { wait_us(us); }
__global__ void running_at_stop(long us) { wait_us(us); }
__global__ void queued_at_stop(long us) { wait_us(us); }
template <int N> __global__ void lazy(float *p) {
    float x = p[threadIdx.x];
#pragma unroll
    for (int i = 0; i < 200; ++i) x = x * (float)(N + i) + p[(threadIdx.x + i) & 31];
    p[threadIdx.x] = x;
}
void CUDART_CB host_function(void *) { usleep(200); }

static void child() {
    cudaStream_t s; CHECK(cudaStreamCreate(&s));
    cudaGraph_t g, c; cudaGraphNode_t n[3], alloc, use, sub, release; CHECK(cudaGraphCreate(&g, 0)); CHECK(cudaGraphCreate(&c, 0));
    long us = 20; void *args[] = {&us}; void *f[] = {(void *)child_a, (void *)child_b, (void *)child_c};
    for (int i = 0; i < 3; ++i) {
        cudaKernelNodeParams p = {}; p.func = f[i]; p.gridDim = dim3(1); p.blockDim = dim3(32); p.kernelParams = args;
        CHECK(cudaGraphAddKernelNode(&n[i], c, i ? &n[i - 1] : nullptr, i ? 1 : 0, &p));
    }
    cudaMemAllocNodeParams a = {}; a.bytesize = 1 << 22; a.poolProps.allocType = cudaMemAllocationTypePinned;
    a.poolProps.location.type = cudaMemLocationTypeDevice; a.poolProps.location.id = 0;
    CHECK(cudaGraphAddMemAllocNode(&alloc, g, nullptr, 0, &a));
    cudaMemsetParams m = {}; m.dst = a.dptr; m.elementSize = 1; m.width = 1 << 22; m.height = 1;
    CHECK(cudaGraphAddMemsetNode(&use, g, &alloc, 1, &m));
    CHECK(cudaGraphAddChildGraphNode(&sub, g, &use, 1, c));
    CHECK(cudaGraphAddMemFreeNode(&release, g, &sub, 1, a.dptr));
    cudaGraphExec_t e; CHECK(cudaGraphInstantiate(&e, g, 0));
    for (int i = 0; i < 3; ++i) { CHECK(cudaGraphLaunch(e, s)); CHECK(cudaStreamSynchronize(s)); }
}
static void host() {
    cudaStream_t s; CHECK(cudaStreamCreate(&s)); spin<<<1, 32, 0, s>>>(20); CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < 10; ++i) {
        before_host<<<1, 32, 0, s>>>(100); CHECK(cudaLaunchHostFunc(s, host_function, nullptr)); after_host<<<1, 32, 0, s>>>(100);
        CHECK(cudaStreamSynchronize(s));
    }
    printf("host function sleeps 200 us\n");
}
static void misc() {
    cudaEvent_t a, b; CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
    for (int i = 0; i < 10; ++i) {
        CHECK(cudaEventRecord(a)); timed<<<1, 32>>>(100); CHECK(cudaEventRecord(b)); CHECK(cudaEventSynchronize(b));
        float ms; CHECK(cudaEventElapsedTime(&ms, a, b)); printf("event %d: %.2f us\n", i, ms * 1000);
    }
    int least, greatest; CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest)); printf("priorities %d %d\n", least, greatest);
    cudaStream_t l, h; CHECK(cudaStreamCreateWithPriority(&l, cudaStreamNonBlocking, least)); CHECK(cudaStreamCreateWithPriority(&h, cudaStreamNonBlocking, greatest));
    low<<<1, 32, 0, l>>>(50); high<<<1, 32, 0, h>>>(50); CHECK(cudaDeviceSynchronize());
    int *p; CHECK(cudaMalloc(&p, 4)); void *args[] = {&p};
    CHECK(cudaLaunchCooperativeKernel((void *)cooperative, dim3(8), dim3(64), args, 0, l));
    cudaLaunchConfig_t c = {}; c.gridDim = dim3(16); c.blockDim = dim3(64); c.stream = l;
    cudaLaunchAttribute at[1]; at[0].id = cudaLaunchAttributeClusterDimension; at[0].val.clusterDim.x = 4; at[0].val.clusterDim.y = 1; at[0].val.clusterDim.z = 1;
    c.attrs = at; c.numAttrs = 1; CHECK(cudaLaunchKernelEx(&c, clustered, p));
    clustered_fixed<<<16, 64, 0, l>>>(p); no_cluster<<<16, 64, 0, l>>>(p); CHECK(cudaDeviceSynchronize());
    char *d, *q; size_t pitch; CHECK(cudaMallocPitch(&d, &pitch, 100, 1000)); CHECK(cudaMallocHost(&q, 1 << 20)); printf("pitch %zu\n", pitch);
    CHECK(cudaMemcpy2DAsync(d, pitch, q, 100, 100, 1000, cudaMemcpyHostToDevice, l)); CHECK(cudaStreamSynchronize(l));
    CHECK(cudaMemset2DAsync(d, pitch, 0, 100, 1000, l)); CHECK(cudaStreamSynchronize(l));
    char *big; CHECK(cudaMalloc(&big, 1 << 22)); CHECK(cudaMemsetAsync(big, 0, 1 << 22, l)); CHECK(cudaStreamSynchronize(l));
    const void *dst[4], *src[4]; size_t size[4], idx[1] = {0};
    for (int i = 0; i < 4; ++i) { dst[i] = big + i * 65536; src[i] = q + i * 65536; size[i] = 10000 + 1000 * i; }
    cudaMemcpyAttributes attr[1] = {}; attr[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    CHECK(cudaMemcpyBatchAsync((const void **)dst, (const void **)src, size, 4, attr, idx, 1, l)); CHECK(cudaStreamSynchronize(l));
    leaves<<<1, 32, 0, l>>>(1); leaves<<<1, 32, 0, l>>>(1); leaves<<<1000000, 32, 0, l>>>(1); leaves<<<1000000, 1024, 0, l>>>(1); CHECK(cudaStreamSynchronize(l));
    prints<<<2, 1, 0, l>>>(); CHECK(cudaStreamSynchronize(l));
}
static void um() {
    long n = 1 << 23; float *p; CHECK(cudaMallocManaged(&p, n * 4));  // 32 MiB
    for (int turn = 0; turn < 2; ++turn) {
        for (long i = 0; i < n; ++i) p[i] = 1.f;
        if (turn) touch_at_random<<<264, 256>>>(p, n); else touch_in_order<<<264, 256>>>(p, n);
        CHECK(cudaDeviceSynchronize());
    }
    double sum = 0; for (long i = 0; i < n; i += 1024) sum += p[i];
    printf("sum %.0f\n", sum);
}
static void vmm() {
    CHECK(cudaFree(0)); CUmemAllocationProp prop = {}; prop.type = CU_MEM_ALLOCATION_TYPE_PINNED; prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t g; CHECKU(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM)); size_t size = 32 * g; printf("granularity %zu\n", g);
    for (int i = 0; i < 2; ++i) {
        CUmemGenericAllocationHandle handle; CUdeviceptr at; CHECKU(cuMemAddressReserve(&at, size, 0, 0, 0)); CHECKU(cuMemCreate(&handle, size, &prop, 0));
        CHECKU(cuMemMap(at, size, 0, handle, 0)); CUmemAccessDesc access = {}; access.location = prop.location; access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        CHECKU(cuMemSetAccess(at, size, &access, 1)); CHECK(cudaMemset((void *)at, 0, size)); CHECK(cudaDeviceSynchronize());
        CHECKU(cuMemUnmap(at, size)); CHECKU(cuMemRelease(handle)); CHECKU(cuMemAddressFree(at, size));
    }
    void *plain; CHECK(cudaMalloc(&plain, 1 << 22)); CHECK(cudaFree(plain));
}
static void lazy_loading() {
    float *p; CHECK(cudaMalloc(&p, 4096));
    lazy<1><<<1, 32>>>(p); CHECK(cudaDeviceSynchronize()); lazy<2><<<1, 32>>>(p); CHECK(cudaDeviceSynchronize()); lazy<3><<<1, 32>>>(p); CHECK(cudaDeviceSynchronize());
    lazy<1><<<1, 32>>>(p); CHECK(cudaDeviceSynchronize()); lazy<2><<<1, 32>>>(p); CHECK(cudaDeviceSynchronize()); lazy<3><<<1, 32>>>(p); CHECK(cudaDeviceSynchronize());
}
static void mid(bool end) {
    cudaStream_t a, b; CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking)); CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    spin<<<1, 32, 0, a>>>(20); after_start<<<1, 32, 0, a>>>(20); running_at_stop<<<1, 32, 0, a>>>(20); CHECK(cudaDeviceSynchronize());
    if (!end) {
        before_start<<<1, 32, 0, a>>>(1000); running_at_start<<<1, 32, 0, a>>>(600000); queued_at_start<<<1, 32, 0, a>>>(1000); other_stream_at_start<<<1, 32, 0, b>>>(600000);
        usleep(20000);
    }
    CHECK(cudaProfilerStart()); printf("still running after start: %s\n", cudaStreamQuery(a) == cudaErrorNotReady ? "yes" : "no");
    after_start<<<1, 32, 0, a>>>(1000);
    if (!end) CHECK(cudaDeviceSynchronize());
    if (end) { CHECK(cudaStreamSynchronize(a)); running_at_stop<<<1, 32, 0, a>>>(600000); queued_at_stop<<<1, 32, 0, a>>>(1000); usleep(20000); }
    CHECK(cudaProfilerStop()); printf("still running after stop: %s\n", cudaStreamQuery(a) == cudaErrorNotReady ? "yes" : "no"); CHECK(cudaDeviceSynchronize());
}
static void fork_join() {
    cudaStream_t a, b; CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking)); CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    cudaStream_t launch; CHECK(cudaStreamCreateWithFlags(&launch, cudaStreamNonBlocking));
    cudaEvent_t f, j; CHECK(cudaEventCreate(&f)); CHECK(cudaEventCreate(&j));
    low<<<1, 32, 0, a>>>(20); high<<<1, 32, 0, b>>>(20); spin<<<1, 32, 0, launch>>>(20); CHECK(cudaDeviceSynchronize());
    cudaGraph_t g; CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal)); child_a<<<1, 32, 0, a>>>(50); CHECK(cudaEventRecord(f, a));
    CHECK(cudaStreamWaitEvent(b, f)); low<<<1, 32, 0, a>>>(100); high<<<1, 32, 0, b>>>(100); CHECK(cudaEventRecord(j, b)); CHECK(cudaStreamWaitEvent(a, j));
    child_c<<<1, 32, 0, a>>>(50); CHECK(cudaStreamEndCapture(a, &g)); cudaGraphExec_t e; CHECK(cudaGraphInstantiate(&e, g, 0));
    for (int i = 0; i < 3; ++i) { CHECK(cudaGraphLaunch(e, launch)); CHECK(cudaStreamSynchronize(launch)); }
}
int main(int, char **v) {
    std::string m = v[1];
    if (m == "child") child(); else if (m == "host") host(); else if (m == "misc") misc(); else if (m == "um") um(); else if (m == "vmm") vmm();
    else if (m == "lazy") lazy_loading(); else if (m == "mid") mid(false); else if (m == "stop") mid(true); else if (m == "fork") fork_join(); else return 2;
    CHECK(cudaDeviceSynchronize()); return 0;
}
