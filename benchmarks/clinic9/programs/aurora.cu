// Particles of the solar wind in a magnetic field, pushed at random by waves: eight time steps for each picture.
#include <curand.h>
#include <curand_kernel.h>
#include "harness.hpp"

constexpr int N = 1 << 24, TIMES = 8;

struct Particles {
    float *x, *y, *z, *u, *v, *w;
};

__device__ void advance(Particles p, int i, float a, float b, float c) {
    const float dt = 0.01f, drag = 0.3f, push = 0.05f, turn = 0.8f;
    float u = p.u[i], v = p.v[i], w = p.w[i];
    float du = turn * v - drag * u, dv = -turn * u - drag * v, dw = -drag * w;
    p.u[i] = u += dt * du + push * a;
    p.v[i] = v += dt * dv + push * b;
    p.w[i] = w += dt * dw + push * c;
    p.x[i] += dt * u;
    p.y[i] += dt * v;
    p.z[i] += dt * w;
}

__global__ void drift(Particles p, const float* noise) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    advance(p, i, noise[i], noise[N + i], noise[2 * N + i]);
}

__global__ void drift(Particles p, unsigned time) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(2024, i, 4ull * time, &state);
    float4 noise = curand_normal4(&state);
    advance(p, i, noise.x, noise.y, noise.z);
}

__global__ void picture(Particles p, int* counts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int column = min(max(int(256 + 400 * p.x[i]), 0), 511), row = min(max(int(256 + 400 * p.y[i]), 0), 511);
    atomicAdd(counts + row * 512 + column, 1);
}

int main(int argc, char** argv) {
    return run(argc, argv, 200, [](bool ailing) {
        static Particles p;
        for (float** place : {&p.x, &p.y, &p.z, &p.u, &p.v, &p.w}) {
            CHECK(cudaMalloc(place, N * sizeof(float)));
            CHECK(cudaMemset(*place, 0, N * sizeof(float)));
        }
        static float* noise;
        static int* counts;
        if (ailing) CHECK(cudaMalloc(&noise, 3ull * N * sizeof(float)));
        CHECK(cudaMalloc(&counts, 512 * 512 * sizeof(int)));
        static curandGenerator_t generator;
        if (ailing) {
            curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
            curandSetPseudoRandomGeneratorSeed(generator, 2024);
        }
        auto step = [ailing](int number) {
            for (int time = 0; time < TIMES; ++time) {
                if (ailing) {
                    curandGenerateNormal(generator, noise, 3ull * N, 0.f, 1.f);
                    drift<<<N / 256, 256>>>(p, noise);
                } else {
                    drift<<<N / 256, 256>>>(p, unsigned(number * TIMES + time));
                }
            }
            CHECK(cudaMemsetAsync(counts, 0, 512 * 512 * sizeof(int)));
            picture<<<N / 256, 256>>>(p, counts);
        };
        auto result = [] {  // the variants draw other numbers: only the spread of speeds can be compared
            std::vector<float> u(N);
            CHECK(cudaMemcpy(u.data(), p.u, N * sizeof(float), cudaMemcpyDeviceToHost));
            double sum = 0;
            for (float x : u) sum += double(x) * x;
            return std::vector<float>{float(sum / N)};
        };
        return Variant{step, result};
    });
}
