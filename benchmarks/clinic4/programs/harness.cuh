// Arguments, timing and capture marks that the CUDA programs share.
#pragma once
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                      \
  do {                                                                                   \
    cudaError_t status = (call);                                                         \
    if (status != cudaSuccess) {                                                         \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));    \
      exit(1);                                                                           \
    }                                                                                    \
  } while (0)

struct Arguments {
  bool is_cured = false;
  int profile = 0;
};

inline Arguments arguments(int count, char** words) {
  Arguments args;
  if (count < 2 || (strcmp(words[1], "ailing") && strcmp(words[1], "cured"))) {
    fprintf(stderr, "usage: %s ailing|cured [--profile STEPS]\n", words[0]);
    exit(2);
  }
  args.is_cured = !strcmp(words[1], "cured");
  if (count > 3 && !strcmp(words[2], "--profile")) args.profile = atoi(words[3]);
  if (const char* turn = getenv("TURN_FILE")) flock(open(turn, O_CREAT | O_RDWR | O_CLOEXEC, 0666), LOCK_EX);
  return args;
}

template <typename T>
T* allocate(size_t count) {
  T* data = nullptr;
  CHECK(cudaMalloc(&data, count * sizeof(T)));
  CHECK(cudaMemset(data, 0, count * sizeof(T)));
  return data;
}

// Time two rounds of steps, synchronizing only at their ends, or run a few steps for a profiler.
template <typename Step>
void measure(const Arguments& args, Step step, int warmup = 5) {
  using clock = std::chrono::steady_clock;
  int position = 0;
  auto run = [&](int count) {
    auto begin = clock::now();
    for (int last = position + count; position < last; ++position) step(position);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    return std::chrono::duration<double>(clock::now() - begin).count() / count;
  };
  run(warmup);
  if (args.profile) {
    CHECK(cudaProfilerStart());
    run(args.profile);
    CHECK(cudaProfilerStop());
    return;
  }
  int count = std::max(3, std::min(5000, int(0.6 / run(5))));
  double first = run(count), second = run(count);
  printf("{\"ms_per_step\": %.5f, \"steps\": %d}\n", std::min(first, second) * 1e3, count);
}
