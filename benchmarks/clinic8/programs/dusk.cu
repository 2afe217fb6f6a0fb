// Cleaning of night pictures of a telescope: dark current and gain, a median of 3 x 3 pixels, then edges.
#include <nvtx3/nvToolsExt.h>
#include "harness.hpp"

constexpr int NX = 4096, NY = 3072;
constexpr size_t PIXELS = size_t(NX) * NY;
constexpr int LARGEST = 3;  // radius

__global__ void expose(unsigned short* raw, float* dark, float* gain, int number) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    unsigned hash = (unsigned(i) + number * 7919u) * 2654435761u;
    hash ^= hash >> 16;
    raw[i] = hash % 4096;
    dark[i] = (hash >> 12) % 64;
    gain[i] = 1 + (hash >> 20) / 16384.f;
}

__global__ void correct(const unsigned short* raw, const float* dark, const float* gain, float* picture) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    picture[i] = (raw[i] - dark[i]) * gain[i];
}

// The middle one of the pixels within a radius: the smaller half is sorted by exchanges.
template <int RADIUS>
__global__ void median(const float* picture, float* clean, int radius) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    int reach = RADIUS ? RADIUS : radius, side = 2 * reach + 1, count = side * side;
    float near[(2 * LARGEST + 1) * (2 * LARGEST + 1)];
#pragma unroll
    for (int v = 0; v < side; ++v)
#pragma unroll
        for (int u = 0; u < side; ++u) {
            int column = min(max(x + u - reach, 0), NX - 1), row = min(max(y + v - reach, 0), NY - 1);
            near[v * side + u] = picture[size_t(row) * NX + column];
        }
#pragma unroll
    for (int i = 0; i <= count / 2; ++i)
#pragma unroll
        for (int j = i + 1; j < count; ++j) {
            float low = fminf(near[i], near[j]), high = fmaxf(near[i], near[j]);
            near[i] = low;
            near[j] = high;
        }
    clean[size_t(y) * NX + x] = near[count / 2];
}

__global__ void edges(const float* clean, float* strength) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    int left = max(x - 1, 0), right = min(x + 1, NX - 1), up = max(y - 1, 0), down = min(y + 1, NY - 1);
    float dx = clean[size_t(y) * NX + right] - clean[size_t(y) * NX + left];
    float dy = clean[size_t(down) * NX + x] - clean[size_t(up) * NX + x];
    strength[size_t(y) * NX + x] = sqrtf(dx * dx + dy * dy);
}

int main(int argc, char** argv) {
    return run(argc, argv, [](bool ailing) {
        static unsigned short* raw[3];
        static float *dark, *gain, *picture, *clean, *strength;
        for (float** place : {&dark, &gain, &picture, &clean, &strength})
            CHECK(cudaMalloc(place, PIXELS * sizeof(float)));
        for (int i = 0; i < 3; ++i) {
            CHECK(cudaMalloc(&raw[i], PIXELS * sizeof(unsigned short)));
            expose<<<PIXELS / 256, 256>>>(raw[i], dark, gain, i);
        }
        auto step = [ailing](int number) {
            dim3 grid(NX / 256, NY);
            nvtxRangePushA("picture");
            nvtxRangePushA("correct");
            correct<<<PIXELS / 256, 256>>>(raw[number % 3], dark, gain, picture);
            nvtxRangePop();
            nvtxRangePushA("clean");
            if (ailing)
                median<0><<<grid, 256>>>(picture, clean, 1);
            else
                median<1><<<grid, 256>>>(picture, clean, 1);
            nvtxRangePop();
            nvtxRangePushA("edges");
            edges<<<grid, 256>>>(clean, strength);
            nvtxRangePop();
            nvtxRangePop();
        };
        auto result = [] {
            std::vector<float> numbers(PIXELS / 64);
            CHECK(cudaMemcpy(numbers.data(), strength, numbers.size() * sizeof(float), cudaMemcpyDeviceToHost));
            return numbers;
        };
        return Variant{step, result};
    });
}
