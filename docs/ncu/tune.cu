// Two kernels made faster step by step, and a few whose machine code is known by construction.
//   tune time              every kernel alone, by CUDA events, and whether it computes what it should
//   tune profile           every kernel once between cudaProfilerStart and cudaProfilerStop
//   tune sweep             gemm_4_vector for n = 512, 1024, 2048, 4096, likewise
//   tune steps GEMM TRANSPOSE REDUCE   20 steps of a transpose, a product and a sum, in these versions
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_profiler_api.h>
#include <mma.h>
#include <nvtx3/nvToolsExt.h>

#define CHECK(call)                                                                            \
    do {                                                                                       \
        cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) {                                                            \
            std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error));          \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)

// ---- C = A B, n x n, single precision, row by row ----------------------------------------------------------------

// A warp's threads are in 32 rows: each load of A touches 32 sectors, and so does the store.
__global__ void gemm_0_rows(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

// A warp's threads are in one row.
__global__ void gemm_1_coalesced(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

// Tiles of 32 x 32 in shared memory: each value is loaded from global memory once a tile.
__global__ void gemm_2_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float as[32][32], bs[32][32];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int tile = 0; tile < n; tile += 32) {
        as[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// Tiles of 128 x 128, 8 x 8 values a thread: 64 multiply-adds for 16 values from shared memory.
__global__ void __launch_bounds__(256) gemm_3_registers(const float *a, const float *b, float *c, int n) {
    __shared__ float as[8][128], bs[8][128];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    a += blockIdx.y * 128 * n;
    b += blockIdx.x * 128;
    c += blockIdx.y * 128 * n + blockIdx.x * 128;
    float sum[8][8] = {};
#pragma unroll 1
    for (int tile = 0; tile < n; tile += 8) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int e = t + i * 256;
            as[e % 8][e / 8] = a[(e / 8) * n + tile + e % 8];
            bs[e / 128][e % 128] = b[(tile + e / 128) * n + e % 128];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float x[8], y[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) x[i] = as[k][ty * 8 + i], y[i] = bs[k][tx * 8 + i];
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) c[(ty * 8 + i) * n + tx * 8 + j] = sum[i][j];
}

// The same by 128-bit loads, without bank conflicts, and the next tile is under way while this one is used.
__global__ void __launch_bounds__(256, 2) gemm_4_vector(const float *a, const float *b, float *c, int n) {
    __shared__ __align__(16) float as[2][8][132], bs[2][8][128];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    a += blockIdx.y * 128 * n + (t / 2) * n + (t % 2) * 4;
    b += blockIdx.x * 128 + (t / 32) * n + (t % 32) * 4;
    c += blockIdx.y * 128 * n + blockIdx.x * 128;
    float sum[8][8] = {};
    float4 na = *reinterpret_cast<const float4 *>(a), nb = *reinterpret_cast<const float4 *>(b);
    int now = 0;
    auto put = [&](int into) {
        float *column = &as[into][(t % 2) * 4][t / 2];
        column[0] = na.x, column[132] = na.y, column[264] = na.z, column[396] = na.w;
        *reinterpret_cast<float4 *>(&bs[into][t / 32][(t % 32) * 4]) = nb;
    };
    put(0);
    __syncthreads();
#pragma unroll 1
    for (int tile = 8; tile <= n; tile += 8) {
        if (tile < n) {
            na = *reinterpret_cast<const float4 *>(a + tile);
            nb = *reinterpret_cast<const float4 *>(b + tile * n);
        }
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            float x[8], y[8];
            *reinterpret_cast<float4 *>(x) = *reinterpret_cast<float4 *>(&as[now][k][ty * 4]);
            *reinterpret_cast<float4 *>(x + 4) = *reinterpret_cast<float4 *>(&as[now][k][64 + ty * 4]);
            *reinterpret_cast<float4 *>(y) = *reinterpret_cast<float4 *>(&bs[now][k][tx * 4]);
            *reinterpret_cast<float4 *>(y + 4) = *reinterpret_cast<float4 *>(&bs[now][k][64 + tx * 4]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += x[i] * y[j];
        }
        if (tile < n) put(now ^ 1);
        __syncthreads();
        now ^= 1;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; j += 4)
            *reinterpret_cast<float4 *>(&c[((i / 4) * 64 + ty * 4 + i % 4) * n + (j / 4) * 64 + tx * 4]) =
                make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}

// Tensor cores: HMMA.
__global__ void gemm_wmma(const half *a, const half *b, float *c, int n) {
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

// ---- out = transposed in, n x n ----------------------------------------------------------------------------------

// Reads rows, writes columns: each store touches 32 sectors.
__global__ void transpose_0_strided(const float *in, float *out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}

// By way of shared memory, whose columns lie in one bank.
__global__ void transpose_1_shared(const float *in, float *out, int n) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = in[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

// Rows of 33 values: a column's values lie in 32 banks.
__global__ void transpose_2_padded(const float *in, float *out, int n) {
    __shared__ float tile[32][33];
    tile[threadIdx.y][threadIdx.x] = in[(blockIdx.y * 32 + threadIdx.y) * n + blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

// Four values a thread under way at once, and blocks of 256 threads.
__global__ void transpose_3_four(const float *in, float *out, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (int i = 0; i < 32; i += 8) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (int i = 0; i < 32; i += 8) out[(y + i) * n + x] = tile[threadIdx.x][threadIdx.y + i];
}

// ---- sum of all values -------------------------------------------------------------------------------------------

// A barrier for each halving.
__global__ void reduce_0_barriers(const float *in, float *out, int n) {
    __shared__ float part[1024];
    int i = blockIdx.x * 1024 + threadIdx.x;
    part[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
#pragma unroll 1
    for (int s = 512; s; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

// 128 bits a load, shuffles, one atomic a warp.
__global__ void reduce_1_shuffles(const float *in, float *out, int n) {
    float sum = 0;
    const float4 *in4 = reinterpret_cast<const float4 *>(in);
#pragma unroll 4
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
        float4 v = in4[i];
        sum += v.x + v.y + v.z + v.w;
    }
#pragma unroll
    for (int s = 16; s; s /= 2) sum += __shfl_down_sync(0xffffffff, sum, s);
    if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

// ---- known by construction ---------------------------------------------------------------------------------------

__global__ void copy_scalar(const float *in, float *out, int n) {
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}

__global__ void copy_vec4(const float4 *in, float4 *out, int n) {
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}

// 48 live values a thread.
__device__ __forceinline__ void keep_48(const float *in, float *out, int rounds) {
    float v[48];
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
#pragma unroll
    for (int k = 0; k < 48; ++k) v[k] = in[i + k * n];
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 48; ++k) v[k] = v[k] * v[(k + 7) % 48] + in[r];
    }
#pragma unroll
    for (int k = 0; k < 48; ++k) out[i + k * n] = v[k];
}
__global__ void __launch_bounds__(1024, 2) spill_0_forced(const float *in, float *out, int r) { keep_48(in, out, r); }
__global__ void __launch_bounds__(1024, 1) spill_1_free(const float *in, float *out, int r) { keep_48(in, out, r); }

// A special function for each value.
__global__ void exponentials(const float *in, float *out, int n) {
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = __expf(in[i]);
}

__global__ void fill(float *out, size_t n, unsigned seed) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * size_t(blockDim.x)) {
        unsigned h = unsigned(i) * 2654435761u + seed;
        h ^= h >> 15, h *= 2246822519u, h ^= h >> 13, h *= 3266489917u, h ^= h >> 16;
        out[i] = float(h >> 8) / 16777216.0f - 0.5f;
    }
}
__global__ void halves(const float *in, half *out, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += gridDim.x * size_t(blockDim.x)) out[i] = __float2half(in[i]);
}

constexpr int SIDE = 8192, MOST = 4096;  // of the transposed matrix; of the largest product
float *a, *b, *c, *big, *other, *total;
half *ha, *hb;

void gemm(int version, int n) {
    switch (version) {
        case 0: gemm_0_rows<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, c, n); break;
        case 1: gemm_1_coalesced<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, c, n); break;
        case 2: gemm_2_tiled<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(a, b, c, n); break;
        case 3: gemm_3_registers<<<dim3(n / 128, n / 128), 256>>>(a, b, c, n); break;
        case 4: gemm_4_vector<<<dim3(n / 128, n / 128), 256>>>(a, b, c, n); break;
        case 5: gemm_wmma<<<dim3(n / 16, n / 16), 32>>>(ha, hb, c, n); break;
    }
}
void transpose(int version) {
    dim3 grid(SIDE / 32, SIDE / 32);
    switch (version) {
        case 0: transpose_0_strided<<<grid, dim3(32, 32)>>>(big, other, SIDE); break;
        case 1: transpose_1_shared<<<grid, dim3(32, 32)>>>(big, other, SIDE); break;
        case 2: transpose_2_padded<<<grid, dim3(32, 32)>>>(big, other, SIDE); break;
        case 3: transpose_3_four<<<grid, dim3(32, 8)>>>(big, other, SIDE); break;
    }
}
void reduce(int version) {
    if (version == 0) reduce_0_barriers<<<SIDE * SIDE / 1024, 1024>>>(big, total, SIDE * SIDE);
    else reduce_1_shuffles<<<132 * 8, 256>>>(big, total, SIDE * SIDE);
}
void more(int which) {
    switch (which) {
        case 0: copy_scalar<<<132 * 8, 256>>>(big, other, SIDE * SIDE); break;
        case 1: copy_vec4<<<132 * 8, 256>>>((float4 *)big, (float4 *)other, SIDE * SIDE / 4); break;
        case 2: spill_0_forced<<<264, 1024>>>(big, other, 256); break;
        case 3: spill_1_free<<<264, 1024>>>(big, other, 256); break;
        case 4: exponentials<<<132 * 8, 256>>>(big, other, SIDE * SIDE); break;
    }
}
const char *GEMMS[] = {"gemm_0_rows", "gemm_1_coalesced", "gemm_2_tiled", "gemm_3_registers", "gemm_4_vector", "gemm_wmma"};
const char *TRANSPOSES[] = {"transpose_0_strided", "transpose_1_shared", "transpose_2_padded", "transpose_3_four"};
const char *REDUCES[] = {"reduce_0_barriers", "reduce_1_shuffles"};
const char *OTHERS[] = {"copy_scalar", "copy_vec4", "spill_0_forced", "spill_1_free", "exponentials"};

template <typename F> void timed(const char *name, F run) {
    cudaEvent_t from, to;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    for (int i = 0; i < 3; ++i) run();
    std::vector<float> took;
    for (int i = 0; i < 21; ++i) {
        CHECK(cudaEventRecord(from));
        run();
        CHECK(cudaEventRecord(to));
        CHECK(cudaEventSynchronize(to));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, from, to));
        took.push_back(1000 * ms);
    }
    CHECK(cudaGetLastError());
    std::sort(took.begin(), took.end());
    std::printf("RESULT %s %.2f us\nRESULT %s_min %.2f us\nRESULT %s_max %.2f us\n", name, took[10], name, took[0], name, took[20]);
}

std::vector<float> read(const float *from, size_t n) {
    std::vector<float> host(n);
    CHECK(cudaMemcpy(host.data(), from, n * sizeof(float), cudaMemcpyDeviceToHost));
    return host;
}

void check(int n) {
    size_t all = size_t(n) * n;
    std::vector<float> x = read(a, all), y = read(b, all);
    for (int v = 0; v < 6; ++v) {
        CHECK(cudaMemset(c, 0xff, all * sizeof(float)));
        gemm(v, n);
        std::vector<float> z = read(c, all);
        double off = 0, norm = 0;
        for (int i = 0; i < 4000; ++i) {  // rows and columns spread over the matrix
            int row = int((i * 7919ll) % n), column = int((i * 104729ll + i) % n);
            double sum = 0;
            for (int k = 0; k < n; ++k) sum += double(x[size_t(row) * n + k]) * y[size_t(k) * n + column];
            off += (sum - z[size_t(row) * n + column]) * (sum - z[size_t(row) * n + column]), norm += sum * sum;
        }
        bool unwritten = std::any_of(z.begin(), z.end(), [](float f) { return !(f == f); });
        std::printf("RESULT check_%s %.2e ratio%s\n", GEMMS[v], std::sqrt(off / norm), unwritten ? " UNWRITTEN" : "");
    }
    std::vector<float> in = read(big, size_t(SIDE) * SIDE);
    for (int v = 0; v < 4; ++v) {
        CHECK(cudaMemset(other, 0xff, size_t(SIDE) * SIDE * sizeof(float)));
        transpose(v);
        std::vector<float> out = read(other, size_t(SIDE) * SIDE);
        size_t wrong = 0;
        for (size_t r = 0; r < SIDE; ++r)
            for (size_t k = 0; k < SIDE; ++k) wrong += out[k * SIDE + r] != in[r * SIDE + k];
        std::printf("RESULT check_%s %zu values\n", TRANSPOSES[v], wrong);
    }
    double sum = 0;
    for (float f : in) sum += f;
    for (int v = 0; v < 2; ++v) {
        CHECK(cudaMemset(total, 0, 4));
        reduce(v);
        std::printf("RESULT check_%s %.4f of %.4f\n", REDUCES[v], read(total, 1)[0], sum);
    }
    CHECK(cudaDeviceSynchronize());
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "time";
    const int n = 2048;
    size_t most = size_t(MOST) * MOST;
    CHECK(cudaMalloc(&a, most * 4));
    CHECK(cudaMalloc(&b, most * 4));
    CHECK(cudaMalloc(&c, most * 4));
    CHECK(cudaMalloc(&ha, most * 2));
    CHECK(cudaMalloc(&hb, most * 2));
    CHECK(cudaMalloc(&big, size_t(SIDE) * SIDE * 4));
    CHECK(cudaMalloc(&other, size_t(SIDE) * SIDE * 4));
    CHECK(cudaMalloc(&total, 4));
    fill<<<1024, 256>>>(a, most, 1);
    fill<<<1024, 256>>>(b, most, 2);
    fill<<<1024, 256>>>(big, size_t(SIDE) * SIDE, 3);
    halves<<<1024, 256>>>(a, ha, most);
    halves<<<1024, 256>>>(b, hb, most);
    CHECK(cudaDeviceSynchronize());
    if (!std::strcmp(mode, "time")) {
        check(n);
        for (int round = 0; round < 2; ++round) {
            for (int v = 0; v < 6; ++v) timed(GEMMS[v], [&] { gemm(v, n); });
            for (int v = 0; v < 4; ++v) timed(TRANSPOSES[v], [&] { transpose(v); });
            for (int v = 0; v < 2; ++v) timed(REDUCES[v], [&] { reduce(v); });
            for (int v = 0; v < 5; ++v) timed(OTHERS[v], [&] { more(v); });
            timed("memcpy_256MiB", [&] { cudaMemcpyAsync(other, big, size_t(SIDE) * SIDE * 4, cudaMemcpyDeviceToDevice); });
        }
        for (int size : {512, 1024, 2048, 4096}) {
            char name[40];
            std::snprintf(name, sizeof name, "gemm_4_vector_%d", size);
            timed(name, [&] { gemm(4, size); });
        }
    } else if (!std::strcmp(mode, "profile")) {
        CHECK(cudaProfilerStart());
        for (int v = 0; v < 6; ++v) gemm(v, n);
        for (int v = 0; v < 4; ++v) transpose(v);
        for (int v = 0; v < 2; ++v) reduce(v);
        for (int v = 0; v < 5; ++v) more(v);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaProfilerStop());
    } else if (!std::strcmp(mode, "sweep")) {
        CHECK(cudaProfilerStart());
        for (int size : {512, 1024, 2048, 4096}) gemm(4, size);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaProfilerStop());
    } else {
        int g = count > 2 ? std::atoi(words[2]) : 0, t = count > 3 ? std::atoi(words[3]) : 0, r = count > 4 ? std::atoi(words[4]) : 0;
        cudaEvent_t from, to;
        CHECK(cudaEventCreate(&from));
        CHECK(cudaEventCreate(&to));
        for (int i = 0; i < 3; ++i) transpose(t), gemm(g, n), reduce(r);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaProfilerStart());
        CHECK(cudaEventRecord(from));
        for (int i = 0; i < 20; ++i) {
            nvtxRangePushA("step");
            transpose(t);
            gemm(g, n);
            reduce(r);
            nvtxRangePop();
        }
        CHECK(cudaEventRecord(to));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaProfilerStop());
        float ms;
        CHECK(cudaEventElapsedTime(&ms, from, to));
        std::printf("RESULT step_%d_%d_%d %.2f us\n", g, t, r, 50 * ms);
    }
    return 0;
}
