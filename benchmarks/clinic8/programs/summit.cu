// Shaded relief of a mountain range: slopes and curvature of a height grid, then a colored picture of it.
#include "harness.hpp"

constexpr int NX = 8192, NY = 8192;
constexpr size_t CELLS = size_t(NX) * NY;

__global__ void survey(float* height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    height[size_t(y) * NX + x] = 900 * sinf(x * 0.011f) * cosf(y * 0.007f) + 60 * sinf(x * 0.13f + y * 0.17f);
}

__global__ void slopes(const float* height, float* east, float* north, float* curvature) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    size_t i = size_t(y) * NX + x, row = size_t(y) * NX;
    int left = max(x - 1, 0), right = min(x + 1, NX - 1), up = max(y - 1, 0), down = min(y + 1, NY - 1);
    float l = height[row + left], r = height[row + right], h = height[i];
    float u = height[size_t(up) * NX + x], d = height[size_t(down) * NX + x];
    east[i] = (r - l) / 20;
    north[i] = (u - d) / 20;
    curvature[i] = (l + r + u + d - 4 * h) / 100;
}

__global__ void shade(const float* east, const float* north, const float* curvature, float3 sun, uchar4* picture) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    float e = east[i], n = north[i], c = curvature[i];
    float light = fmaxf(0.f, (sun.z - e * sun.x - n * sun.y) * rsqrtf(1 + e * e + n * n));
    float warm = fminf(fmaxf(c * 0.2f + 0.5f, 0.f), 1.f);
    picture[i] = make_uchar4(255 * light, 255 * light * (0.8f + 0.2f * warm), 200 * light * warm, 255);
}

int main(int argc, char** argv) {
    return run(argc, argv, [](bool ailing) {
        static float *height, *east, *north, *curvature;
        static uchar4* picture;
        for (float** place : {&height, &east, &north, &curvature}) CHECK(cudaMalloc(place, CELLS * sizeof(float)));
        CHECK(cudaMalloc(&picture, CELLS * sizeof(uchar4)));
        survey<<<dim3(NX / 256, NY), 256>>>(height);
        auto step = [ailing](int number) {
            float turn = 0.1f * number;
            if (ailing) {
                for (float* place : {east, north, curvature}) CHECK(cudaMemsetAsync(place, 0, CELLS * sizeof(float)));
                CHECK(cudaMemsetAsync(picture, 0, CELLS * sizeof(uchar4)));
            }
            slopes<<<dim3(NX / 256, NY), 256>>>(height, east, north, curvature);
            shade<<<CELLS / 256, 256>>>(east, north, curvature, {0.6f * cosf(turn), 0.6f * sinf(turn), 0.8f}, picture);
        };
        auto result = [] {
            std::vector<uchar4> colors(CELLS / 256);
            CHECK(cudaMemcpy(colors.data(), picture, colors.size() * sizeof(uchar4), cudaMemcpyDeviceToHost));
            std::vector<float> numbers;
            for (uchar4 color : colors) numbers.push_back(color.x + color.y + color.z);
            return numbers;
        };
        return Variant{step, result};
    });
}
