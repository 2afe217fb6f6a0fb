// Sharpen the frames of a film: four streams upload, equalize, sharpen and download frames from pinned memory.
#include <nvtx3/nvToolsExt.h>

#include "harness.cuh"

constexpr int WIDTH = 3840, HEIGHT = 2160, STREAMS = 4, FRAMES = 8, LEVELS = 256;
constexpr size_t PIXELS = size_t(WIDTH) * HEIGHT;
using Pixel = unsigned char;

__global__ void count_levels(const Pixel* frame, unsigned* levels) {
  __shared__ unsigned mine[LEVELS];
  for (int level = threadIdx.x; level < LEVELS; level += blockDim.x) mine[level] = 0;
  __syncthreads();
  for (size_t place = blockIdx.x * blockDim.x + threadIdx.x; place < PIXELS; place += gridDim.x * blockDim.x)
    atomicAdd(&mine[frame[place]], 1u);
  __syncthreads();
  for (int level = threadIdx.x; level < LEVELS; level += blockDim.x) atomicAdd(&levels[level], mine[level]);
}

__global__ void accumulate(unsigned* levels) {
  __shared__ unsigned sums[LEVELS];
  sums[threadIdx.x] = levels[threadIdx.x];
  __syncthreads();
  unsigned sum = 0;
  for (int level = 0; level <= int(threadIdx.x); ++level) sum += sums[level];
  levels[threadIdx.x] = unsigned(sum * 255.0 / PIXELS);
}

__global__ void sharpen(const Pixel* frame, const unsigned* levels, Pixel* result) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= WIDTH || y >= HEIGHT) return;
  float blurred = 0, weight = 0;
  for (int dy = -3; dy <= 3; ++dy)
    for (int dx = -3; dx <= 3; ++dx) {
      int column = min(max(x + dx, 0), WIDTH - 1), row = min(max(y + dy, 0), HEIGHT - 1);
      float share = __expf(-(dx * dx + dy * dy) / 4.0f);
      blurred += share * levels[frame[row * size_t(WIDTH) + column]];
      weight += share;
    }
  float here = levels[frame[y * size_t(WIDTH) + x]];
  result[y * size_t(WIDTH) + x] = Pixel(fminf(fmaxf(1.6f * here - 0.6f * blurred / weight, 0), 255));
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  Pixel *film, *done, *frames[STREAMS], *results[STREAMS];
  unsigned* levels[STREAMS];
  cudaStream_t streams[STREAMS];
  CHECK(cudaMallocHost(&film, FRAMES * PIXELS));
  CHECK(cudaMallocHost(&done, FRAMES * PIXELS));
  for (size_t place = 0; place < FRAMES * PIXELS; ++place) film[place] = Pixel(place * 2654435761u >> 13);
  for (int lane = 0; lane < STREAMS; ++lane) {
    frames[lane] = allocate<Pixel>(PIXELS);
    results[lane] = allocate<Pixel>(PIXELS);
    levels[lane] = allocate<unsigned>(LEVELS);
    CHECK(cudaStreamCreate(&streams[lane]));
  }
  CHECK(cudaDeviceSynchronize());
  dim3 block(32, 8), grid(WIDTH / 32, HEIGHT / 8);

  measure(args, [&](int) {
    for (int number = 0; number < FRAMES; ++number) {
      nvtxRangePushA("frame");
      int lane = number % STREAMS;
      cudaStream_t stream = streams[lane];
      CHECK(cudaMemcpyAsync(frames[lane], film + number * PIXELS, PIXELS, cudaMemcpyHostToDevice, stream));
      if (args.is_cured)
        CHECK(cudaMemsetAsync(levels[lane], 0, LEVELS * sizeof(unsigned), stream));
      else
        CHECK(cudaMemset(levels[lane], 0, LEVELS * sizeof(unsigned)));
      count_levels<<<264, 256, 0, stream>>>(frames[lane], levels[lane]);
      accumulate<<<1, LEVELS, 0, stream>>>(levels[lane]);
      sharpen<<<grid, block, 0, stream>>>(frames[lane], levels[lane], results[lane]);
      CHECK(cudaMemcpyAsync(done + number * PIXELS, results[lane], PIXELS, cudaMemcpyDeviceToHost, stream));
      nvtxRangePop();
    }
  });
}
