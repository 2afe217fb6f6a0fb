// Four planted errors, for compute-sanitizer: a race in shared memory, an uninitialized read, a barrier with a wrong mask,
// and a write beyond the end of an allocation.
#include <cstdio>
#include <cstring>
__global__ void race(int *out) {
    __shared__ int sum[64];
    sum[threadIdx.x] = threadIdx.x;
    // no __syncthreads()
    out[threadIdx.x] = sum[63 - threadIdx.x];
}
__global__ void uninitialized(const int *in, int *out) {
    out[threadIdx.x] = in[threadIdx.x] + 1;
}
__global__ void wrong_mask(int *out) {
    if (threadIdx.x < 16) __syncwarp(0xFFFF0000u);
    out[threadIdx.x] = 1;
}
template <typename T> __global__ void beyond(T *out, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at <= n) out[at] = T(1);
}
int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    auto wanted = [&](const char *name) { return !strcmp(what, "all") || !strcmp(what, name); };
    int *in, *out;
    cudaMalloc(&in, 64 * sizeof(int));
    cudaMalloc(&out, 64 * sizeof(int));
    cudaMemset(out, 0, 64 * sizeof(int));
    if (wanted("race")) race<<<1, 64>>>(out);
    cudaDeviceSynchronize();
    if (wanted("uninitialized")) uninitialized<<<1, 64>>>(in, out);
    cudaDeviceSynchronize();
    if (wanted("beyond")) beyond<float><<<2, 64>>>((float *)out, 64);
    cudaDeviceSynchronize();
    if (wanted("wrong_mask")) wrong_mask<<<1, 32>>>(out);
    printf("done: %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    cudaFree(in); cudaFree(out);
}
