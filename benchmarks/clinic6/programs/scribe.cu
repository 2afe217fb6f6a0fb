// Split a text into words on the GPU: count the words of each block, add up the counts, write their starts.
#include <cub/device/device_scan.cuh>

#include "harness.cuh"

constexpr int TEXT = 1 << 27, PIECE = 256, PIECES = TEXT / PIECE;

__device__ bool begins(const char* text, int i) {
  return text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
}

__global__ void write_text(char* text) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i * 2654435761u;
  x ^= x >> 15; x *= 2246822519u; x ^= x >> 13;
  text[i] = x % 6 == 0 ? ' ' : 'a' + x % 26;
}

__global__ void count_words(const char* text, int* counts) {
  int i = blockIdx.x * PIECE + threadIdx.x;
  int total = __syncthreads_count(begins(text, i));
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

__global__ void add_up(const int* counts, int* offsets) {
  __shared__ int sums[1024];
  int carry = 0;
  for (int base = 0; base < PIECES; base += 1024) {
    int own = counts[base + threadIdx.x];
    sums[threadIdx.x] = own;
    __syncthreads();
    for (int reach = 1; reach < 1024; reach *= 2) {
      int other = threadIdx.x >= reach ? sums[threadIdx.x - reach] : 0;
      __syncthreads();
      sums[threadIdx.x] += other;
      __syncthreads();
    }
    offsets[base + threadIdx.x] = carry + sums[threadIdx.x] - own;
    carry += sums[1023];
    __syncthreads();
  }
}

__global__ void write_words(const char* text, const int* offsets, int* starts) {
  __shared__ int warps[PIECE / 32];
  int i = blockIdx.x * PIECE + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  bool is_first = begins(text, i);
  unsigned votes = __ballot_sync(~0u, is_first);
  if (lane == 0) warps[warp] = __popc(votes);
  __syncthreads();
  if (!is_first) return;
  int place = offsets[blockIdx.x] + __popc(votes & ((1u << lane) - 1));
  for (int w = 0; w < warp; ++w) place += warps[w];
  starts[place] = i;
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  char* text = allocate<char>(TEXT);
  int *counts = allocate<int>(PIECES), *offsets = allocate<int>(PIECES), *starts = allocate<int>(TEXT / 2);
  write_text<<<TEXT / 256, 256>>>(text);
  size_t room = 0;
  CHECK(cub::DeviceScan::ExclusiveSum(nullptr, room, counts, offsets, PIECES));
  char* workspace = allocate<char>(room);
  measure(args, [&](int) {
    count_words<<<PIECES, PIECE>>>(text, counts);
    if (args.is_cured) {
      CHECK(cub::DeviceScan::ExclusiveSum(workspace, room, counts, offsets, PIECES));
    } else {
      add_up<<<1, 1024>>>(counts, offsets);
    }
    write_words<<<PIECES, PIECE>>>(text, offsets, starts);
  });
}
