// Displacements of a plane truss under loads: conjugate gradients with cuBLAS, 40 iterations for each load.
#include <cublas_v2.h>
#include <nvtx3/nvToolsExt.h>
#include "harness.hpp"

constexpr int NX = 512, NY = 512, N = NX * NY, ITERATIONS = 40;

__global__ void load(float* b, int number) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = (i % NX == NX / 2 ? 1.f : 0.f) + 0.1f * ((i * 2654435761u + number) % 97) / 97.f;
}

// y = A x: each joint is held by its four neighbors and, a little, by the ground.
__global__ void stiffness(const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, u = i % NX, v = i / NX;
    float sum = 4.05f * x[i];
    if (u > 0) sum -= x[i - 1];
    if (u < NX - 1) sum -= x[i + 1];
    if (v > 0) sum -= x[i - NX];
    if (v < NY - 1) sum -= x[i + NX];
    y[i] = sum;
}

// s = {r.r, p.Ap, alpha, -alpha, new r.r, beta}
__global__ void step_length(float* s) {
    s[2] = s[0] / s[1];
    s[3] = -s[2];
}

__global__ void direction(float* s) {
    s[5] = s[4] / s[0];
    s[0] = s[4];
}

int main(int argc, char** argv) {
    return run(argc, argv, [](bool ailing) {
        static float *x, *r, *p, *q, *s;
        for (float** place : {&x, &r, &p, &q}) CHECK(cudaMalloc(place, N * sizeof(float)));
        CHECK(cudaMalloc(&s, 8 * sizeof(float)));
        static cublasHandle_t blas;
        cublasCreate(&blas);
        cublasSetPointerMode(blas, ailing ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE);
        static float one = 1;
        static float* unit;
        CHECK(cudaMalloc(&unit, sizeof(float)));
        CHECK(cudaMemcpy(unit, &one, sizeof(float), cudaMemcpyHostToDevice));
        auto step = [ailing](int number) {
            nvtxRangePushA("load");
            load<<<N / 256, 256>>>(r, number);
            CHECK(cudaMemsetAsync(x, 0, N * sizeof(float)));
            CHECK(cudaMemcpyAsync(p, r, N * sizeof(float), cudaMemcpyDeviceToDevice));
            nvtxRangePop();
            nvtxRangePushA("solve");
            if (ailing) {
                float rr, pq, next;
                cublasSdot(blas, N, r, 1, r, 1, &rr);
                for (int i = 0; i < ITERATIONS; ++i) {
                    stiffness<<<N / 256, 256>>>(p, q);
                    cublasSdot(blas, N, p, 1, q, 1, &pq);
                    float alpha = rr / pq, minus = -alpha;
                    cublasSaxpy(blas, N, &alpha, p, 1, x, 1);
                    cublasSaxpy(blas, N, &minus, q, 1, r, 1);
                    cublasSdot(blas, N, r, 1, r, 1, &next);
                    float beta = next / rr;
                    rr = next;
                    cublasSscal(blas, N, &beta, p, 1);
                    cublasSaxpy(blas, N, &one, r, 1, p, 1);
                }
            } else {
                cublasSdot(blas, N, r, 1, r, 1, s);
                for (int i = 0; i < ITERATIONS; ++i) {
                    stiffness<<<N / 256, 256>>>(p, q);
                    cublasSdot(blas, N, p, 1, q, 1, s + 1);
                    step_length<<<1, 1>>>(s);
                    cublasSaxpy(blas, N, s + 2, p, 1, x, 1);
                    cublasSaxpy(blas, N, s + 3, q, 1, r, 1);
                    cublasSdot(blas, N, r, 1, r, 1, s + 4);
                    direction<<<1, 1>>>(s);
                    cublasSscal(blas, N, s + 5, p, 1);
                    cublasSaxpy(blas, N, unit, r, 1, p, 1);
                }
            }
            nvtxRangePop();
        };
        auto result = [] {
            std::vector<float> numbers(N);
            CHECK(cudaMemcpy(numbers.data(), x, N * sizeof(float), cudaMemcpyDeviceToHost));
            return numbers;
        };
        return Variant{step, result};
    });
}
