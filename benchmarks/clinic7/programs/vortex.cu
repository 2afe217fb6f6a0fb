// Flow around a cylinder by the lattice Boltzmann method (D2Q9): 20 time steps, then the forces for the log.
#include <nvtx3/nvToolsExt.h>
#include <utility>
#include <vector>
#include "harness.hpp"

constexpr int NX = 2048, NY = 1536, TIMES = 20;
constexpr size_t CELLS = size_t(NX) * NY;

#define DIRECTIONS                                                                                                     \
    constexpr int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};                      \
    constexpr int BACK[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};                                                               \
    constexpr float W[9] = {4 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 36.f, 1 / 36.f, 1 / 36.f, 1 / 36.f};      \
    (void)CX, (void)CY, (void)BACK, (void)W

__device__ bool solid(int x, int y) {
    int dx = x - NX / 5, dy = y - NY / 2;
    return dx * dx + dy * dy < 60 * 60;
}

__global__ void advance(const float* f, float* next, float relaxation) {
    DIRECTIONS;
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= NX) return;
    float g[9], density = 0, ux = 0, uy = 0;
    bool wall = solid(x, y);
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        int u = (x - CX[k] + NX) % NX, v = (y - CY[k] + NY) % NY;
        g[k] = f[k * CELLS + size_t(v) * NX + u];
        density += g[k];
        ux += g[k] * CX[k];
        uy += g[k] * CY[k];
    }
    ux /= density;
    uy /= density;
    if (x == 0) {
        ux = 0.08f;
        uy = 0;
    }
    float square = 1.5f * (ux * ux + uy * uy);
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        float along = 3 * (CX[k] * ux + CY[k] * uy);
        float rest = W[k] * density * (1 + along + 0.5f * along * along - square);
        next[k * CELLS + size_t(y) * NX + x] = wall ? g[BACK[k]] : g[k] + relaxation * (rest - g[k]);
    }
}

__global__ void force(const float* f, float* total) {
    DIRECTIONS;
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    int x = i % NX, y = i / NX;
    if (i >= CELLS || !solid(x, y)) return;
    for (int k = 1; k < 9; ++k)
        if (!solid(x + CX[k], y + CY[k])) {
            atomicAdd(total, 2 * CX[k] * f[k * CELLS + i]);
            atomicAdd(total + 1, 2 * CY[k] * f[k * CELLS + i]);
        }
}

int main(int argc, char** argv) {
    return run(argc, argv, [](bool ailing) {
        std::vector<float> start(9 * CELLS);
        DIRECTIONS;
        for (int k = 0; k < 9; ++k)
            for (size_t i = 0; i < CELLS; ++i) start[k * CELLS + i] = W[k];
        static float *f, *next, *total, *log;
        CHECK(cudaMalloc(&f, 9 * CELLS * sizeof(float)));
        CHECK(cudaMalloc(&next, 9 * CELLS * sizeof(float)));
        CHECK(cudaMalloc(&total, 2 * sizeof(float)));
        CHECK(cudaMallocHost(&log, 2 * sizeof(float)));
        CHECK(cudaMemcpy(f, start.data(), 9 * CELLS * sizeof(float), cudaMemcpyHostToDevice));
        return [ailing](int) {
            nvtxRangePushA("interval");
            nvtxRangePushA("flow");
            for (int time = 0; time < TIMES; ++time) {
                advance<<<dim3(NX / 256, NY), 256>>>(f, next, 1.6f);
                if (ailing)
                    CHECK(cudaMemcpyAsync(f, next, 9 * CELLS * sizeof(float), cudaMemcpyDeviceToDevice));
                else
                    std::swap(f, next);
            }
            nvtxRangePop();
            nvtxRangePushA("forces");
            CHECK(cudaMemsetAsync(total, 0, 2 * sizeof(float)));
            force<<<CELLS / 256, 256>>>(f, total);
            CHECK(cudaMemcpyAsync(log, total, 2 * sizeof(float), cudaMemcpyDeviceToHost));
            CHECK(cudaStreamSynchronize(nullptr));
            nvtxRangePop();
            nvtxRangePop();
        };
    });
}
