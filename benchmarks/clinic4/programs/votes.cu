// Votes: how often each of 32 choices was made, among many ballots.
#include "harness.cuh"

constexpr int BALLOTS = 1 << 24, CHOICES = 32, THREADS = 256;

__global__ void fill(unsigned* ballots) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  ballots[i] = (i * 2654435761u) >> 27;
}

__global__ void mark(const unsigned* ballots, unsigned* marks, unsigned choice) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  marks[i] = ballots[i] == choice;
}

__global__ void add(const unsigned* marks, unsigned* counts, int choice) {
  __shared__ unsigned sum;
  if (!threadIdx.x) sum = 0;
  __syncthreads();
  unsigned mine = 0;
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < BALLOTS; i += gridDim.x * THREADS) mine += marks[i];
  atomicAdd(&sum, mine);
  __syncthreads();
  if (!threadIdx.x) atomicAdd(&counts[choice], sum);
}

__global__ void histogram(const unsigned* ballots, unsigned* counts) {
  __shared__ unsigned mine[THREADS / 32][CHOICES];
  mine[threadIdx.x / 32][threadIdx.x % 32] = 0;
  __syncthreads();
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < BALLOTS; i += gridDim.x * THREADS)
    atomicAdd(&mine[threadIdx.x / 32][ballots[i]], 1);
  __syncthreads();
  if (threadIdx.x < CHOICES) {
    unsigned sum = 0;
    for (auto& warp : mine) sum += warp[threadIdx.x];
    atomicAdd(&counts[threadIdx.x], sum);
  }
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  auto ballots = allocate<unsigned>(BALLOTS), marks = allocate<unsigned>(BALLOTS), counts = allocate<unsigned>(CHOICES);
  fill<<<BALLOTS / THREADS, THREADS>>>(ballots);
  measure(args, [&](int) {
    CHECK(cudaMemsetAsync(counts, 0, CHOICES * sizeof(unsigned)));
    if (args.is_cured) {
      histogram<<<1056, THREADS>>>(ballots, counts);
      return;
    }
    for (int choice = 0; choice < CHOICES; ++choice) {
      mark<<<BALLOTS / THREADS, THREADS>>>(ballots, marks, choice);
      add<<<1056, THREADS>>>(marks, counts, choice);
    }
  });
}
