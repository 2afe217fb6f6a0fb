// Tones of a plane membrane: an orthonormal basis of 64 vectors, each a power of the operator more (cuBLAS).
#include <cublas_v2.h>
#include <nvtx3/nvToolsExt.h>
#include "harness.hpp"

constexpr int NX = 512, NY = 512, N = NX * NY, BASIS = 64, SWEEPS = 4;

__global__ void strike(float* x, int number) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = ((i * 2654435761u + number * 40503u) >> 8) / 16777216.f - 0.5f;
}

__global__ void membrane(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, u = i % NX, v = i / NX;
    float sum = 5 * x[i];
    if (u > 0) sum += x[i - 1];
    if (u < NX - 1) sum += x[i + 1];
    if (v > 0) sum += 2 * x[i - NX];
    if (v < NY - 1) sum += 2 * x[i + NX];
    y[i] = 0.1f * sum;
}

__global__ void without(const float* h, const float* v, float* w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    w[i] -= *h * v[i];
}

__global__ void unit(const float* norm, const float* w, float* v) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    v[i] = w[i] / *norm;
}

int main(int argc, char** argv) {
    return run(argc, argv, 100, [](bool ailing) {
        static float *v, *w, *other, *h, *numbers;
        CHECK(cudaMalloc(&v, size_t(BASIS + 1) * N * sizeof(float)));
        for (float** place : {&w, &other}) CHECK(cudaMalloc(place, N * sizeof(float)));
        CHECK(cudaMalloc(&h, (BASIS + 1) * sizeof(float)));
        CHECK(cudaMalloc(&numbers, 3 * sizeof(float)));
        const float host[3] = {0, 1, -1};
        CHECK(cudaMemcpy(numbers, host, sizeof host, cudaMemcpyHostToDevice));
        static cublasHandle_t blas;
        cublasCreate(&blas);
        cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE);
        auto step = [ailing](int number) {
            const float *zero = numbers, *one = numbers + 1, *minus = numbers + 2;
            nvtxRangePushA("strike");
            strike<<<N / 256, 256>>>(w, number);
            cublasSnrm2(blas, N, w, 1, h + BASIS);
            unit<<<N / 256, 256>>>(h + BASIS, w, v);
            nvtxRangePop();
            nvtxRangePushA("basis");
            for (int j = 0; j < BASIS; ++j) {
                membrane<<<N / 256, 256>>>(v + size_t(j) * N, w);
                for (int sweep = 1; sweep < SWEEPS; sweep += 2) {
                    membrane<<<N / 256, 256>>>(w, other);
                    membrane<<<N / 256, 256>>>(other, w);
                }
                if (ailing) {
                    for (int i = 0; i <= j; ++i) {
                        cublasSdot(blas, N, v + size_t(i) * N, 1, w, 1, h + i);
                        without<<<N / 256, 256>>>(h + i, v + size_t(i) * N, w);
                    }
                } else {
                    for (int again = 0; again < 2; ++again) {
                        cublasSgemv(blas, CUBLAS_OP_T, N, j + 1, one, v, N, w, 1, zero, h, 1);
                        cublasSgemv(blas, CUBLAS_OP_N, N, j + 1, minus, v, N, h, 1, one, w, 1);
                    }
                }
                cublasSnrm2(blas, N, w, 1, h + BASIS);
                unit<<<N / 256, 256>>>(h + BASIS, w, v + size_t(j + 1) * N);
            }
            nvtxRangePop();
        };
        auto result = [] {  // later vectors drift with rounding: the first eight
            std::vector<float> first(8 * N);
            CHECK(cudaMemcpy(first.data(), v, first.size() * sizeof(float), cudaMemcpyDeviceToHost));
            return first;
        };
        return Variant{step, result};
    });
}
