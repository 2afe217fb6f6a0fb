// Words of a genome: counts of all words of sixteen bases in a hash table, piece by piece from the host's memory.
#include <vector>

#include "harness.cuh"

constexpr int BASES = 1 << 22, PIECES = 8, SLOTS = 1 << 22, THREADS = 256, BLOCKS = 528;

__global__ void count_words(const unsigned char* bases, int count, unsigned* table) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i + 16 <= count; i += gridDim.x * blockDim.x) {
    unsigned word = 0;
#pragma unroll
    for (int j = 0; j < 16; ++j) word = word << 2 | bases[i + j];
    word ^= word >> 16, word *= 0x85ebca6bu, word ^= word >> 13, word *= 0xc2b2ae35u, word ^= word >> 16;
    atomicAdd(&table[word & (SLOTS - 1)], 1);
  }
}

__global__ void most_frequent(const unsigned* table, unsigned* most) {
  unsigned best = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < SLOTS; i += gridDim.x * blockDim.x) best = max(best, table[i]);
  best = __reduce_max_sync(~0u, best);
  if (threadIdx.x % 32 == 0) atomicMax(most, best);
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  std::vector<unsigned char> genome(size_t(BASES) * PIECES);
  unsigned value = 1;
  for (auto& base : genome) value = value * 1664525u + 1013904223u, base = value >> 30;
  auto bases = allocate<unsigned char>(BASES);
  auto table = allocate<unsigned>(SLOTS), most = allocate<unsigned>(1);
  unsigned char* staging = nullptr;
  unsigned* result = nullptr;
  CHECK(cudaMallocHost(&result, sizeof(unsigned)));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaDeviceSynchronize());
  if (args.is_cured) CHECK(cudaMallocHost(&staging, BASES));
  measure(args, [&](int step) {
    if (!args.is_cured) CHECK(cudaMallocHost(&staging, BASES));
    memcpy(staging, &genome[size_t(step % PIECES) * BASES], BASES);
    CHECK(cudaMemcpyAsync(bases, staging, BASES, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemsetAsync(table, 0, SLOTS * sizeof(unsigned), stream));
    count_words<<<BLOCKS, THREADS, 0, stream>>>(bases, BASES, table);
    most_frequent<<<BLOCKS, THREADS, 0, stream>>>(table, most);
    CHECK(cudaMemcpyAsync(result, most, sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (!args.is_cured) CHECK(cudaFreeHost(staging));
  });
}
