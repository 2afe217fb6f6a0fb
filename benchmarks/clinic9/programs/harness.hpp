// Time, profile or save the steps of a program of this set: NAME ailing|cured [--profile STEPS] [--save FILE].
#pragma once
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define CHECK(call)                                                                                  \
    do {                                                                                             \
        cudaError_t error_ = (call);                                                                 \
        if (error_ != cudaSuccess) {                                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));     \
            std::exit(1);                                                                            \
        }                                                                                            \
    } while (0)

struct Variant {
    std::function<void(int)> step;
    std::function<std::vector<float>()> result;  // of the last step, to be compared between the variants
    int gpus = 1;
};

inline int run(int argc, char** argv, int steps, const std::function<Variant(bool)>& build) {
    if (argc < 2 || (std::strcmp(argv[1], "ailing") && std::strcmp(argv[1], "cured"))) {
        std::fprintf(stderr, "usage: %s ailing|cured [--profile STEPS] [--save FILE]\n", argv[0]);
        return 2;
    }
    auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
    auto variant = build(!std::strcmp(argv[1], "ailing"));
    auto wait = [&] {
        for (int gpu = variant.gpus - 1; gpu >= 0; --gpu) {
            CHECK(cudaSetDevice(gpu));
            CHECK(cudaDeviceSynchronize());
        }
    };
    int number = 0, profiled = 0;
    variant.step(number++);
    wait();
    CHECK(cudaGetLastError());
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!std::strcmp(argv[i], "--profile")) profiled = std::atoi(argv[i + 1]);
        if (!std::strcmp(argv[i], "--save")) {
            auto numbers = variant.result();
            std::FILE* file = std::fopen(argv[i + 1], "wb");
            std::fwrite(numbers.data(), sizeof(float), numbers.size(), file);
            std::fclose(file);
        }
    }
    for (int i = 0; i < 10; ++i) variant.step(number++);
    wait();
    if (profiled) {
        CHECK(cudaProfilerStart());
        for (int i = 0; i < profiled; ++i) variant.step(number++);
        wait();
        CHECK(cudaProfilerStop());
        return 0;
    }
    double rounds[2];
    for (double& round : rounds) {
        double start = now();
        for (int i = 0; i < steps / 2; ++i) {
            variant.step(number++);
            if (i % 4 == 3) wait();  // the host runs ahead by four steps at most
        }
        wait();
        round = 1000 * (now() - start) / (steps / 2);
    }
    std::printf("%.3f ms (%.3f, %.3f)\n", std::min(rounds[0], rounds[1]), rounds[0], rounds[1]);
    return 0;
}
