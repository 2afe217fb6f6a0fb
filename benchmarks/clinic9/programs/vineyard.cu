// Yield of vineyards from pictures: the sugar of each plant, then the sum of each plot and the share of each plant in it.
#include <cub/cub.cuh>
#include "harness.hpp"

constexpr int PLOTS = 256, N = 1 << 25;

__global__ void plants(float* light, unsigned char* age) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mixed = (i + 1u) * 2654435761u;
    light[i] = (mixed >> 8) / 16777216.f;
    age[i] = (mixed ^ (mixed >> 15)) % 40;
}

__global__ void sugar(const float* light, const unsigned char* age, float* amount, float weather) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float day = 0, x = light[i];
    for (int hour = 0; hour < 24; ++hour) day += x * __sinf(0.13f * hour) * __expf(-0.02f * x * hour * weather);
    amount[i] = day * (1 + 0.01f * age[i]);
}

__global__ void shares(const float* amount, const float* sum, const int* plot, float* share) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    share[i] = amount[i] / sum[plot[i / 1024]];
}

int main(int argc, char** argv) {
    return run(argc, argv, 200, [](bool ailing) {
        // Plots of 64 to 192 blocks of 1024 plants
        static std::vector<int> first{0};
        std::vector<int> plot_of(N / 1024);
        unsigned seed = 1;
        while ((int)first.size() < PLOTS) {
            seed = seed * 1664525u + 1013904223u;
            first.push_back(first.back() + 1024 * (64 + (seed >> 10) % 129));
            if (first.back() >= N - 1024 * 200) break;
        }
        static int plots;
        plots = first.size();
        first.push_back(N);
        for (int p = 0; p < plots; ++p)
            for (int i = first[p]; i < first[p + 1]; i += 1024) plot_of[i / 1024] = p;

        static float *light, *amount, *sum, *share;
        static unsigned char* age;
        static int *plot, *edges;
        for (float** place : {&light, &amount, &share}) CHECK(cudaMalloc(place, N * sizeof(float)));
        CHECK(cudaMalloc(&sum, (PLOTS + 1) * sizeof(float)));
        CHECK(cudaMalloc(&age, N));
        CHECK(cudaMalloc(&plot, plot_of.size() * sizeof(int)));
        CHECK(cudaMalloc(&edges, first.size() * sizeof(int)));
        CHECK(cudaMemcpy(plot, plot_of.data(), plot_of.size() * sizeof(int), cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(edges, first.data(), first.size() * sizeof(int), cudaMemcpyHostToDevice));
        plants<<<N / 256, 256>>>(light, age);

        static void* scratch;
        static size_t bytes;
        size_t one = 0, all = 0;
        CHECK(cub::DeviceReduce::Sum(nullptr, one, amount, sum, N));
        CHECK(cub::DeviceSegmentedReduce::Sum(nullptr, all, amount, sum, plots, edges, edges + 1));
        bytes = std::max(one, all);
        CHECK(cudaMalloc(&scratch, bytes));
        auto step = [ailing](int number) {
            sugar<<<N / 256, 256>>>(light, age, amount, 1 + 0.1f * (number % 5));
            if (ailing) {
                for (int p = 0; p < plots; ++p)
                    CHECK(cub::DeviceReduce::Sum(scratch, bytes, amount + first[p], sum + p, first[p + 1] - first[p]));
            } else {
                CHECK(cub::DeviceSegmentedReduce::Sum(scratch, bytes, amount, sum, plots, edges, edges + 1));
            }
            shares<<<N / 256, 256>>>(amount, sum, plot, share);
        };
        auto result = [] {
            std::vector<float> numbers(plots);
            CHECK(cudaMemcpy(numbers.data(), sum, plots * sizeof(float), cudaMemcpyDeviceToHost));
            return numbers;
        };
        return Variant{step, result};
    });
}
