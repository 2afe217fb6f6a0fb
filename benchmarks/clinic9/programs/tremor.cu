// Waves of an earthquake on a plane grid: in each time step four wells record the motion at all depths.
#include "harness.hpp"

constexpr int NX = 4096, NZ = 4096, TIMES = 24, WELLS = 4;
constexpr int PLACES[WELLS] = {400, 1500, 2600, 3700};
constexpr size_t N = size_t(NX) * NZ;

__global__ void speeds(float* c, float* u, float* v) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, z = blockIdx.y;
    size_t i = size_t(z) * NX + x;
    c[i] = 0.1f + 0.1f * z / NZ + 0.02f * ((x / 64 * 7 + z / 32 * 13) % 5);
    float r = (x - NX / 2) * (x - NX / 2) + (z - 900) * (z - 900);
    u[i] = v[i] = expf(-r / 90000.f);
}

__global__ void motion(const float* u, float* v, const float* c, float push) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, z = blockIdx.y;
    if (x < 1 || x >= NX - 1 || z < 1 || z >= NZ - 1) return;
    size_t i = size_t(z) * NX + x;
    float around = u[i - 1] + u[i + 1] + u[i - NX] + u[i + NX] - 4 * u[i];
    float next = 2 * u[i] - v[i] + c[i] * around;
    if (x == NX / 2 && z == 900) next += push;
    v[i] = 0.9999f * next;
}

struct Places {
    int x[WELLS];
};

__global__ void wells(const float* u, float* record, Places places) {
    int z = blockIdx.x * blockDim.x + threadIdx.x;
    record[blockIdx.y * NZ + z] = u[size_t(z) * NX + places.x[blockIdx.y]];
}

int main(int argc, char** argv) {
    return run(argc, argv, 160, [](bool ailing) {
        static float *u, *v, *c, *record, *host;
        for (float** place : {&u, &v, &c}) CHECK(cudaMalloc(place, N * sizeof(float)));
        CHECK(cudaMalloc(&record, WELLS * NZ * sizeof(float)));
        CHECK(cudaMallocHost(&host, size_t(TIMES) * WELLS * NZ * sizeof(float)));
        static cudaStream_t stream;
        CHECK(cudaStreamCreate(&stream));
        static dim3 grid(NX / 256, NZ);
        speeds<<<grid, 256, 0, stream>>>(c, u, v);
        static Places places;
        std::copy(PLACES, PLACES + WELLS, places.x);
        auto step = [ailing](int number) {
            for (int time = 0; time < TIMES; ++time) {
                motion<<<grid, 256, 0, stream>>>(u, v, c, 0.01f * ((number + time) % 7));
                std::swap(u, v);
                float* out = host + size_t(time) * WELLS * NZ;
                if (ailing) {
                    for (int well = 0; well < WELLS; ++well)
                        CHECK(cudaMemcpy2DAsync(out + well * NZ, sizeof(float), u + places.x[well], NX * sizeof(float),
                                                sizeof(float), NZ, cudaMemcpyDeviceToHost, stream));
                } else {
                    wells<<<dim3(NZ / 256, WELLS), 256, 0, stream>>>(u, record, places);
                    CHECK(cudaMemcpyAsync(out, record, WELLS * NZ * sizeof(float), cudaMemcpyDeviceToHost, stream));
                }
            }
        };
        auto result = [] { return std::vector<float>(host, host + size_t(TIMES) * WELLS * NZ); };
        return Variant{step, result};
    });
}
