// Sound in a strait, on two GPUs: each holds half of the rows, and four rows at the border are exchanged in each time step.
#include "harness.hpp"

constexpr int NX = 8192, ROWS = 2048, EDGE = 4, TIMES = 40, GPUS = 2;
constexpr size_t CELLS = size_t(NX) * (ROWS + 2 * EDGE), BORDER = size_t(NX) * EDGE;

__global__ void start(float* u, float* v, int gpu) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float row = y - EDGE + gpu * ROWS - ROWS, column = x - NX / 3;
    u[size_t(y) * NX + x] = v[size_t(y) * NX + x] = expf(-(row * row + column * column) / 4000.f);
}

__global__ void sound(const float* u, float* v) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y + EDGE;
    if (x < EDGE || x >= NX - EDGE) return;
    const float c[5] = {-205 / 72.f, 8 / 5.f, -1 / 5.f, 8 / 315.f, -1 / 560.f};
    const float* p = u + size_t(y) * NX + x;
    float sum = 2 * c[0] * p[0];
#pragma unroll
    for (int k = 1; k <= EDGE; ++k) sum += c[k] * (p[-k] + p[k] + p[-k * NX] + p[k * NX]);
    float& place = v[size_t(y) * NX + x];
    place = 2 * p[0] - place + 0.2f * sum;
}

int main(int argc, char** argv) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count < GPUS) {
        std::fprintf(stderr, "two GPUs are needed\n");
        return 3;
    }
    return run(argc, argv, 160, [](bool ailing) {
        static float *u[GPUS], *v[GPUS];
        static cudaStream_t stream[GPUS];
        static cudaEvent_t done[GPUS];
        static dim3 grid(NX / 256, ROWS);
        static std::vector<float> rows[GPUS];
        for (int gpu = 0; gpu < GPUS; ++gpu) {
            CHECK(cudaSetDevice(gpu));
            int direct = 0;
            CHECK(cudaDeviceCanAccessPeer(&direct, gpu, 1 - gpu));
            if (direct) CHECK(cudaDeviceEnablePeerAccess(1 - gpu, 0));
            CHECK(cudaStreamCreate(&stream[gpu]));
            CHECK(cudaEventCreateWithFlags(&done[gpu], cudaEventDisableTiming));
            for (float** place : {&u[gpu], &v[gpu]}) CHECK(cudaMalloc(place, CELLS * sizeof(float)));
            start<<<dim3(NX / 256, ROWS + 2 * EDGE), 256, 0, stream[gpu]>>>(u[gpu], v[gpu], gpu);
            CHECK(cudaStreamSynchronize(stream[gpu]));
            rows[gpu].resize(BORDER);
        }
        auto step = [ailing](int) {
            // The rows that a GPU gives, and where it keeps those of the other: below for the first, above for the second
            const size_t given[GPUS] = {size_t(NX) * ROWS, BORDER}, taken[GPUS] = {size_t(NX) * (ROWS + EDGE), 0};
            const size_t bytes = BORDER * sizeof(float);
            for (int time = 0; time < TIMES; ++time) {
                for (int gpu = 0; gpu < GPUS; ++gpu) {
                    CHECK(cudaSetDevice(gpu));
                    sound<<<grid, 256, 0, stream[gpu]>>>(u[gpu], v[gpu]);
                    CHECK(cudaEventRecord(done[gpu], stream[gpu]));
                    std::swap(u[gpu], v[gpu]);
                }
                if (ailing) {
                    for (int gpu = 0; gpu < GPUS; ++gpu) {
                        CHECK(cudaSetDevice(gpu));
                        CHECK(cudaStreamSynchronize(stream[gpu]));
                        CHECK(cudaMemcpy(rows[gpu].data(), u[gpu] + given[gpu], bytes, cudaMemcpyDeviceToHost));
                    }
                    for (int gpu = 0; gpu < GPUS; ++gpu) {
                        CHECK(cudaSetDevice(gpu));
                        CHECK(cudaMemcpy(u[gpu] + taken[gpu], rows[1 - gpu].data(), bytes, cudaMemcpyHostToDevice));
                    }
                    continue;
                }
                for (int gpu = 0; gpu < GPUS; ++gpu) {
                    CHECK(cudaSetDevice(gpu));
                    CHECK(cudaStreamWaitEvent(stream[gpu], done[1 - gpu], 0));
                    CHECK(cudaMemcpyPeerAsync(u[gpu] + taken[gpu], gpu, u[1 - gpu] + given[1 - gpu], 1 - gpu, bytes,
                                              stream[gpu]));
                }
            }
        };
        auto result = [] {
            std::vector<float> numbers(size_t(NX) * 64);
            CHECK(cudaSetDevice(0));
            CHECK(cudaMemcpy(numbers.data(), u[0] + size_t(NX) * (ROWS + EDGE - 64), numbers.size() * sizeof(float),
                             cudaMemcpyDeviceToHost));
            return numbers;
        };
        return Variant{step, result, GPUS};
    });
}
