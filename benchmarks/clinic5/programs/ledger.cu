// Answer queries over an orders table: total the amounts for each customer in a hash table made for the query.
#include <nvtx3/nvToolsExt.h>

#include <cstdint>

#include "harness.cuh"

constexpr size_t ROWS = 4 << 20, SLOTS = 32 << 20;
constexpr uint32_t EMPTY = 0xffffffffu, CUSTOMERS = 1 << 20;

__device__ uint32_t scramble(uint32_t value) {
  value = (value ^ (value >> 16)) * 0x7feb352du;
  value = (value ^ (value >> 15)) * 0x846ca68bu;
  return value ^ (value >> 16);
}

__global__ void fill_orders(uint32_t* customers, float* amounts) {
  size_t row = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (row >= ROWS) return;
  customers[row] = scramble(uint32_t(row)) % CUSTOMERS;
  amounts[row] = 1 + scramble(uint32_t(row) + 7u) % 100;
}

__global__ void total(const uint32_t* customers, const float* amounts, uint32_t least, uint32_t* keys, float* sums) {
  size_t row = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (row >= ROWS || amounts[row] < least) return;
  uint32_t customer = customers[row];
  size_t slot = scramble(customer) % SLOTS;
  while (true) {
    uint32_t old = atomicCAS(&keys[slot], EMPTY, customer);
    if (old == EMPTY || old == customer) break;
    slot = (slot + 1) % SLOTS;
  }
  atomicAdd(&sums[slot], amounts[row]);
}

__global__ void count_rich(const uint32_t* keys, const float* sums, float bound, unsigned* found) {
  unsigned mine = 0;
  for (size_t slot = blockIdx.x * size_t(blockDim.x) + threadIdx.x; slot < SLOTS; slot += gridDim.x * size_t(blockDim.x))
    mine += keys[slot] != EMPTY && sums[slot] > bound;
  if (mine) atomicAdd(found, mine);
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  uint32_t* customers = allocate<uint32_t>(ROWS);
  float* amounts = allocate<float>(ROWS);
  fill_orders<<<ROWS / 256, 256>>>(customers, amounts);
  unsigned *found = allocate<unsigned>(1), *answer;
  CHECK(cudaMallocHost(&answer, sizeof(unsigned)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  if (args.is_cured) {
    cudaMemPool_t pool;
    uint64_t everything = UINT64_MAX;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything));
  }
  CHECK(cudaDeviceSynchronize());

  measure(args, [&](int index) {
    nvtxRangePushA("query");
    uint32_t* keys;
    float* sums;
    CHECK(cudaMallocAsync(&keys, SLOTS * sizeof(uint32_t), stream));
    CHECK(cudaMallocAsync(&sums, SLOTS * sizeof(float), stream));
    CHECK(cudaMemsetAsync(keys, 0xff, SLOTS * sizeof(uint32_t), stream));
    CHECK(cudaMemsetAsync(sums, 0, SLOTS * sizeof(float), stream));
    CHECK(cudaMemsetAsync(found, 0, sizeof(unsigned), stream));
    total<<<ROWS / 256, 256, 0, stream>>>(customers, amounts, 10 + index % 50, keys, sums);
    count_rich<<<132 * 8, 256, 0, stream>>>(keys, sums, 150.0f, found);
    CHECK(cudaFreeAsync(keys, stream));
    CHECK(cudaFreeAsync(sums, stream));
    CHECK(cudaMemcpyAsync(answer, found, sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    nvtxRangePop();
  });
}
