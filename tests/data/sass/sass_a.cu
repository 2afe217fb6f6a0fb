// Kernels whose machine code is known by construction.
#include <cuda_fp16.h>
#include <mma.h>

// One 32-bit load of A and one of B per multiply-add.
__global__ void gemm_naive(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

// Two loads, TILE multiply-adds and two barriers per iteration.
template <int TILE>
__global__ void gemm_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int tile = 0; tile < n; tile += TILE) {
        as[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
template __global__ void gemm_tiled<8>(const float *, const float *, float *, int);
template __global__ void gemm_tiled<32>(const float *, const float *, float *, int);

// One 32-bit load and one store per iteration.
__global__ void copy_scalar(const float *in, float *out, int n) {
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}

// The same, 128 bits at a time.
__global__ void copy_vec4(const float4 *in, float4 *out, int n) {
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}

// Live values for more than the 32 registers that __launch_bounds__ leaves.
__global__ void __launch_bounds__(1024, 2) spilling(const float *in, float *out, int n) {
    float v[36];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 36; ++k) v[k] = in[i + k * n];
#pragma unroll 1
    for (int r = 0; r < n; ++r) {
#pragma unroll
        for (int k = 0; k < 36; ++k) v[k] = v[k] * v[(k + 7) % 36] + in[r];
    }
#pragma unroll
    for (int k = 0; k < 36; ++k) out[i + k * n] = v[k];
}

// Tensor cores: HMMA.
__global__ void wmma_gemm(const half *a, const half *b, float *c, int n) {
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
#pragma unroll 1
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(fa, a + row * n + k, n);
        wmma::load_matrix_sync(fb, b + k * n + column, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + row * n + column, fc, n, wmma::mem_row_major);
}

// Five shuffles, and an exponential per element.
__global__ void reduce_shfl(const float *in, float *out, int n) {
    float sum = 0;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += __expf(in[i]);
#pragma unroll
    for (int offset = 16; offset; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
