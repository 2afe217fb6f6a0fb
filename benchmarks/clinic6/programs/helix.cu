// Score the local alignments of pairs of proteins (Smith-Waterman): a block for each pair, one diagonal after the other.
#include "harness.cuh"

constexpr int PAIRS = 20000, LENGTH = 384, LIMIT = 4096, THREADS = 128;

__global__ void write_sequences(char* data) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i * 2654435761u;
  x ^= x >> 16; x *= 2246822519u; x ^= x >> 13;
  data[i] = x % 20;
}

__global__ void align(const char* left, const char* right, int* scores, int room) {
  extern __shared__ int shared[];
  int *older = shared, *last = older + room + 1, *next = last + room + 1;
  char *a = reinterpret_cast<char*>(next + room + 1), *b = a + room;
  const char *one = left + size_t(blockIdx.x) * LENGTH, *two = right + size_t(blockIdx.x) * LENGTH;
  for (int i = threadIdx.x; i < LENGTH; i += THREADS) {
    a[i] = one[i];
    b[i] = two[i];
  }
  for (int i = threadIdx.x; i <= LENGTH; i += THREADS) older[i] = last[i] = next[i] = 0;
  __syncthreads();
  int best = 0;
  for (int diagonal = 0; diagonal < 2 * LENGTH - 1; ++diagonal) {
    int begin = max(0, diagonal - LENGTH + 1), end = min(diagonal, LENGTH - 1);
    for (int i = begin + threadIdx.x; i <= end; i += THREADS) {
      int match = a[i] == b[diagonal - i] ? 5 : -3;
      int score = max(max(0, older[i] + match), max(last[i], last[i + 1]) - 4);
      next[i + 1] = score;
      best = max(best, score);
    }
    __syncthreads();
    int* free = older;
    older = last;
    last = next;
    next = free;
  }
  atomicMax(scores + blockIdx.x, best);
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  char *left = allocate<char>(PAIRS * LENGTH), *right = allocate<char>(PAIRS * LENGTH);
  int* scores = allocate<int>(PAIRS);
  write_sequences<<<PAIRS * LENGTH / 256, 256>>>(left);
  write_sequences<<<PAIRS * LENGTH / 256, 256>>>(right);
  int room = args.is_cured ? LENGTH : LIMIT, bytes = 3 * (room + 1) * sizeof(int) + 2 * room;
  CHECK(cudaFuncSetAttribute(align, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  measure(args, [&](int) {
    CHECK(cudaMemsetAsync(scores, 0, PAIRS * sizeof(int)));
    align<<<PAIRS, THREADS, bytes>>>(left, right, scores, room);
  });
}
