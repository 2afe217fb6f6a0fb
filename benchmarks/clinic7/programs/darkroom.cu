// Development of raw pictures: colors from the sensor's mosaic, tone curve, sharpening. The camera fills a ring of buffers.
#include <cstdint>
#include <vector>
#include "harness.hpp"

constexpr int WIDTH = 3840, HEIGHT = 2160, RING = 4;
constexpr size_t PIXELS = size_t(WIDTH) * HEIGHT;

__device__ int reflect(int i, int n) { return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i; }

__global__ void demosaic(const uint16_t* raw, float4* colors) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= WIDTH || y >= HEIGHT) return;
    float sum[3] = {0, 0, 0}, weight[3] = {0, 0, 0};
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int u = reflect(x + dx, WIDTH), v = reflect(y + dy, HEIGHT);
            int color = (u & 1) + (v & 1);
            float w = (2 - abs(dx)) * (2 - abs(dy));
            sum[color] += w * raw[size_t(v) * WIDTH + u];
            weight[color] += w;
        }
    colors[size_t(y) * WIDTH + x] = make_float4(sum[0] / weight[0], sum[1] / weight[1], sum[2] / weight[2], 0);
}

__global__ void tone(float4* colors, float exposure) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= PIXELS) return;
    float4 c = colors[i];
    auto curve = [exposure](float v) {
        v *= exposure / 65535.0f;
        return powf(v * (2.51f * v + 0.03f) / (v * (2.43f * v + 0.59f) + 0.14f), 1 / 2.2f);
    };
    colors[i] = make_float4(curve(c.x), curve(c.y), curve(c.z), 0);
}

__global__ void sharpen(const float4* colors, uchar4* picture) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= WIDTH || y >= HEIGHT) return;
    float r = 0, g = 0, b = 0;
    for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx) {
            float4 c = colors[size_t(reflect(y + dy, HEIGHT)) * WIDTH + reflect(x + dx, WIDTH)];
            r += c.x;
            g += c.y;
            b += c.z;
        }
    float4 c = colors[size_t(y) * WIDTH + x];
    auto level = [](float v, float around) {
        return static_cast<unsigned char>(255 * fminf(fmaxf(v + 0.6f * (v - around / 25), 0.0f), 1.0f));
    };
    picture[size_t(y) * WIDTH + x] = make_uchar4(level(c.x, r), level(c.y, g), level(c.z, b), 255);
}

int main(int argc, char** argv) {
    return run(argc, argv, [](bool ailing) {
        std::vector<uint16_t*> ring(RING);
        for (auto& raw : ring) {
            raw = static_cast<uint16_t*>(std::aligned_alloc(4096, PIXELS * sizeof(uint16_t)));
            for (size_t i = 0; i < PIXELS; ++i) raw[i] = static_cast<uint16_t>(i * 2654435761u >> 16);
            if (!ailing) CHECK(cudaHostRegister(raw, PIXELS * sizeof(uint16_t), cudaHostRegisterDefault));
        }
        uint16_t* raw;
        float4* colors;
        uchar4 *picture, *result;
        CHECK(cudaMalloc(&raw, PIXELS * sizeof(uint16_t)));
        CHECK(cudaMalloc(&colors, PIXELS * sizeof(float4)));
        CHECK(cudaMalloc(&picture, PIXELS * sizeof(uchar4)));
        CHECK(cudaMallocHost(&result, PIXELS * sizeof(uchar4)));
        cudaStream_t stream;
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        return [=](int number) {
            uint16_t* frame = ring[number % RING];
            if (ailing) CHECK(cudaHostRegister(frame, PIXELS * sizeof(uint16_t), cudaHostRegisterDefault));
            CHECK(cudaMemcpyAsync(raw, frame, PIXELS * sizeof(uint16_t), cudaMemcpyHostToDevice, stream));
            dim3 block(32, 8), grid((WIDTH + 31) / 32, (HEIGHT + 7) / 8);
            demosaic<<<grid, block, 0, stream>>>(raw, colors);
            tone<<<(PIXELS + 255) / 256, 256, 0, stream>>>(colors, 1.0f + 0.1f * (number % 5));
            sharpen<<<grid, block, 0, stream>>>(colors, picture);
            CHECK(cudaMemcpyAsync(result, picture, PIXELS * sizeof(uchar4), cudaMemcpyDeviceToHost, stream));
            CHECK(cudaStreamSynchronize(stream));  // the picture is shown, and the camera gets its buffer back
            if (ailing) CHECK(cudaHostUnregister(frame));
        };
    });
}
