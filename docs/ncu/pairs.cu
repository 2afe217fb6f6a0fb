// Pairs of kernels, before and after a change, that no rule was made with.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_profiler_api.h>
struct Body { float x, y, z, w, a, b, c, d; };
__global__ void structs_0_array(const Body *in, float *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i].x + in[i].y;
}
__global__ void structs_1_arrays(const float *x, const float *y, float *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = x[i] + y[i];
}
__global__ void matvec_0_row(const float *a, const float *v, float *out, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[size_t(row) * n + k] * v[k];
    out[row] = sum;
}
__global__ void matvec_1_warp(const float *a, const float *v, float *out, int n) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (int k = lane; k < n; k += 32) sum += a[size_t(row) * n + k] * v[k];
    for (int s = 16; s; s /= 2) sum += __shfl_down_sync(0xffffffff, sum, s);
    if (lane == 0) out[row] = sum;
}
__global__ void interleaved_0(const float *in, float *out, int n) {
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int s = 1; s < 256; s *= 2) {
        int i = 2 * s * t;
        if (i < 256) part[i] += part[i + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
__global__ void interleaved_1(const float *in, float *out, int n) {
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    for (int s = 16; s; s /= 2) sum += __shfl_down_sync(0xffffffff, sum, s);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
__global__ void few_blocks(const float *in, float *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i] * 2;
}
__global__ void occupancy(const float *in, float *out, int n) {
    extern __shared__ float tile[];
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        tile[threadIdx.x] = in[i];
        out[i] = tile[threadIdx.x] * 2;
    }
}
__global__ void conv_0(const float *in, const float *w, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < 65; ++k) sum += in[i + k] * w[k];
    out[i] = sum;
}
__global__ void conv_1(const float *in, const float *w, float *out, int n) {
    __shared__ float weight[65];
    if (threadIdx.x < 65) weight[threadIdx.x] = w[threadIdx.x];
    __syncthreads();
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    float v[8], sum[4] = {};
    for (int j = 0; j < 4; ++j) v[j] = in[first + j];
#pragma unroll 16
    for (int k = 0; k < 64; k += 4) {
        float4 next = *reinterpret_cast<const float4 *>(&in[first + k + 4]);
        v[4] = next.x, v[5] = next.y, v[6] = next.z, v[7] = next.w;
        for (int s = 0; s < 4; ++s)
            for (int j = 0; j < 4; ++j) sum[j] += v[s + j] * weight[k + s];
        for (int j = 0; j < 4; ++j) v[j] = v[4 + j];
    }
    for (int j = 0; j < 4; ++j) out[first + j] = sum[j] + v[j] * weight[64];
}
const int N = 1 << 26, M = 8192;
float *in, *out, *v;
void go(int which) {
    switch (which) {
        case 0: structs_0_array<<<1056, 256>>>((Body *)in, out, N / 8); break;
        case 1: structs_1_arrays<<<1056, 256>>>(in, in + N / 8, out, N / 8); break;
        case 2: matvec_0_row<<<M / 128, 128>>>(in, v, out, M); break;
        case 3: matvec_1_warp<<<M / 8, 256>>>(in, v, out, M); break;
        case 4: interleaved_0<<<N / 256, 256>>>(in, out, N); break;
        case 5: interleaved_1<<<1056, 256>>>(in, out, N); break;
        case 6: few_blocks<<<33, 256>>>(in, out, N); break;
        case 7: few_blocks<<<1056, 256>>>(in, out, N); break;
        case 8: occupancy<<<1056, 128, 100 * 1024>>>(in, out, N); break;
        case 9: occupancy<<<1056, 128, 8 * 1024>>>(in, out, N); break;
        case 10: conv_0<<<N / 4 / 256, 256>>>(in, v, out, N); break;
        case 11: conv_1<<<N / 4 / 1024, 256>>>(in, v, out, N); break;
    }
}
const char *NAMES[] = {"structs_0", "structs_1", "matvec_0", "matvec_1", "interleaved_0", "interleaved_1", "few_blocks_0", "few_blocks_1", "occupancy_0", "occupancy_1", "conv_0", "conv_1"};
int main(int count, char **words) {
    cudaMalloc(&in, size_t(N) * 4 + 4096);
    cudaMalloc(&out, size_t(N) * 4 + 4096);
    cudaMalloc(&v, M * 4);
    std::vector<float> host(N);
    for (int i = 0; i < N; ++i) host[i] = float(i * 2654435761u >> 8) / 16777216.0f - 0.5f;
    cudaMemcpy(in, host.data(), size_t(N) * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(v, host.data(), M * 4, cudaMemcpyHostToDevice);
    cudaFuncSetAttribute(occupancy, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024);
    if (count > 1 && !std::strcmp(words[1], "profile")) {
        cudaProfilerStart();
        for (int k = 0; k < 12; ++k) go(k);
        cudaDeviceSynchronize();
        cudaProfilerStop();
    } else {
        for (int k = 0; k < 12; ++k) {
            cudaEvent_t a, b;
            cudaEventCreate(&a), cudaEventCreate(&b);
            std::vector<float> took;
            for (int i = 0; i < 14; ++i) {
                float ms;
                cudaEventRecord(a), go(k), cudaEventRecord(b), cudaEventSynchronize(b);
                cudaEventElapsedTime(&ms, a, b);
                if (i > 2) took.push_back(1000 * ms);
            }
            std::sort(took.begin(), took.end());
            std::printf("RESULT blind_%s %.2f us\n", NAMES[k], took[5]);
        }
        // The same sums, whichever way.
        double wanted = 0;
        for (float f : host) wanted += f;
        float got;
        cudaMemset(out, 0, 4), go(5), cudaMemcpy(&got, out, 4, cudaMemcpyDeviceToHost);
        std::printf("RESULT check_sum %.3f of %.3f\n", got, wanted);
        std::vector<float> x(4096), y(4096);
        go(2), cudaMemcpy(x.data(), out, 16384, cudaMemcpyDeviceToHost), go(3), cudaMemcpy(y.data(), out, 16384, cudaMemcpyDeviceToHost);
        double off = 0; for (int i = 0; i < 4096; ++i) off = std::max(off, double(std::abs(x[i] - y[i])));
        std::printf("RESULT check_matvec %.2e\n", off);
        go(10), cudaMemcpy(x.data(), out, 16384, cudaMemcpyDeviceToHost), go(11), cudaMemcpy(y.data(), out, 16384, cudaMemcpyDeviceToHost);
        off = 0; for (int i = 0; i < 4096; ++i) off = std::max(off, double(std::abs(x[i] - y[i])));
        std::printf("RESULT check_conv %.2e\n", off);
    }
    std::printf("RESULT error %s\n", cudaGetErrorString(cudaGetLastError()));
}
