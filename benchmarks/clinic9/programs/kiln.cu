// Heat in a porous brick: a cell that repeats in all directions, forty time steps for each call.
#include <nvtx3/nvToolsExt.h>
#include "harness.hpp"

constexpr int N = 160, M = N + 2, TIMES = 40;
constexpr size_t CELLS = size_t(M) * M * M;

__host__ __device__ constexpr size_t at(int x, int y, int z) { return (size_t(z) * M + y) * M + x; }

__global__ void fill(float* t, float* k) {
    int x = threadIdx.x + 1, y = blockIdx.x + 1, z = blockIdx.y + 1;
    unsigned mixed = ((x / 4 * 73856093u) ^ (y / 4 * 19349663u) ^ (z / 4 * 83492791u)) * 2654435761u;
    t[at(x, y, z)] = (mixed >> 8) / 16777216.f;
    k[at(x, y, z)] = mixed % 3 ? 0.12f : 0.02f;
}

// One pair of opposite faces: what lies beyond a face is what lies at the other.
__global__ void faces_x(float* t) {
    int y = blockIdx.x * blockDim.x + threadIdx.x + 1, z = blockIdx.y + 1;
    if (y <= N) t[at(0, y, z)] = t[at(N, y, z)];
}
__global__ void faces_x_end(float* t) {
    int y = blockIdx.x * blockDim.x + threadIdx.x + 1, z = blockIdx.y + 1;
    if (y <= N) t[at(N + 1, y, z)] = t[at(1, y, z)];
}
__global__ void faces_y(float* t) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, z = blockIdx.y + 1;
    if (x <= N) t[at(x, 0, z)] = t[at(x, N, z)];
}
__global__ void faces_y_end(float* t) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, z = blockIdx.y + 1;
    if (x <= N) t[at(x, N + 1, z)] = t[at(x, 1, z)];
}
__global__ void faces_z(float* t) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y + 1;
    if (x <= N) t[at(x, y, 0)] = t[at(x, y, N)];
}
__global__ void faces_z_end(float* t) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y + 1;
    if (x <= N) t[at(x, y, N + 1)] = t[at(x, y, 1)];
}

template <bool WRAP>
__global__ void heat(const float* t, const float* k, float* next, float fire) {
    int x = threadIdx.x + 1, y = blockIdx.x + 1, z = blockIdx.y + 1;
    auto before = [](int i) { return WRAP && i == 1 ? N : i - 1; };
    auto after = [](int i) { return WRAP && i == N ? 1 : i + 1; };
    size_t i = at(x, y, z);
    float sum = t[at(before(x), y, z)] + t[at(after(x), y, z)] + t[at(x, before(y), z)] + t[at(x, after(y), z)] +
                t[at(x, y, before(z))] + t[at(x, y, after(z))];
    next[i] = t[i] + k[i] * (sum - 6 * t[i]) + (x == 1 ? fire : 0.f);
}

int main(int argc, char** argv) {
    return run(argc, argv, 200, [](bool ailing) {
        static float *t, *next, *k;
        for (float** place : {&t, &next, &k}) {
            CHECK(cudaMalloc(place, CELLS * sizeof(float)));
            CHECK(cudaMemset(*place, 0, CELLS * sizeof(float)));
        }
        static dim3 cells(N, N), face((N + 127) / 128, N);
        fill<<<cells, N>>>(t, k);
        auto step = [ailing](int number) {
            nvtxRangePushA("forty");
            for (int time = 0; time < TIMES; ++time) {
                float fire = 1e-4f * (number % 3);
                if (ailing) {
                    faces_x<<<face, 128>>>(t);
                    faces_x_end<<<face, 128>>>(t);
                    faces_y<<<face, 128>>>(t);
                    faces_y_end<<<face, 128>>>(t);
                    faces_z<<<face, 128>>>(t);
                    faces_z_end<<<face, 128>>>(t);
                    heat<false><<<cells, N>>>(t, k, next, fire);
                } else {
                    heat<true><<<cells, N>>>(t, k, next, fire);
                }
                std::swap(t, next);
            }
            nvtxRangePop();
        };
        auto result = [] {
            std::vector<float> numbers(CELLS), inner;
            CHECK(cudaMemcpy(numbers.data(), t, CELLS * sizeof(float), cudaMemcpyDeviceToHost));
            for (int z = 1; z <= N; z += 7)
                for (int y = 1; y <= N; y += 7)
                    for (int x = 1; x <= N; ++x) inner.push_back(numbers[at(x, y, z)]);
            return inner;
        };
        return Variant{step, result};
    });
}
