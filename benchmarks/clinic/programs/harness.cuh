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
  int steps = 0, profile = 0;
};

inline Arguments arguments(int count, char** words) {
  Arguments args;
  if (count < 2 || (strcmp(words[1], "ailing") && strcmp(words[1], "cured"))) {
    fprintf(stderr, "usage: %s ailing|cured [--steps N] [--profile STEPS]\n", words[0]);
    exit(2);
  }
  args.is_cured = !strcmp(words[1], "cured");
  for (int i = 2; i + 1 < count; i += 2) {
    if (!strcmp(words[i], "--steps")) args.steps = atoi(words[i + 1]);
    if (!strcmp(words[i], "--profile")) args.profile = atoi(words[i + 1]);
  }
  if (const char* turn = getenv("TURN_FILE")) flock(open(turn, O_CREAT | O_RDWR | O_CLOEXEC, 0666), LOCK_EX);
  return args;
}

// Time many steps, synchronizing only at the ends, or run a few for a profiler.
template <typename Step>
void measure(const Arguments& args, Step step, bool is_marked = true, int warmup = 5) {
  using clock = std::chrono::steady_clock;
  auto run = [&](int first, int count) {
    auto begin = clock::now();
    for (int i = first; i < first + count; ++i) step(i);
    CHECK(cudaDeviceSynchronize());
    return std::chrono::duration<double>(clock::now() - begin).count();
  };
  run(0, warmup);
  if (args.profile) {
    if (is_marked) CHECK(cudaProfilerStart());
    run(warmup, args.profile);
    if (is_marked) CHECK(cudaProfilerStop());
    return;
  }
  int count = args.steps, first = warmup;
  if (!count) {
    count = std::max(10, std::min(20000, int(1.2 * 5 / run(first, 5))));
    first += 5;
  }
  double seconds = run(first, count);
  printf("{\"ms_per_step\": %.5f, \"steps\": %d}\n", seconds * 1e3 / count, count);
}
