// Audit passwords: stretch each candidate by a hundred rounds of a keyed hash (SipHash-2-4) and look for a match.
#include <cstdint>

#include "harness.cuh"

constexpr int CANDIDATES = 1 << 18, ROUNDS = 100, THREADS = 256;

__device__ uint64_t rotate(uint64_t value, int bits) { return (value << bits) | (value >> (64 - bits)); }

struct Sip {
  uint64_t a, b, c, d;

  __device__ Sip(uint64_t low, uint64_t high)
      : a(low ^ 0x736f6d6570736575ull), b(high ^ 0x646f72616e646f6dull),
        c(low ^ 0x6c7967656e657261ull), d(high ^ 0x7465646279746573ull) {}

  __device__ void round() {
    a += b; b = rotate(b, 13) ^ a; a = rotate(a, 32);
    c += d; d = rotate(d, 16) ^ c;
    a += d; d = rotate(d, 21) ^ a;
    c += b; b = rotate(b, 17) ^ c; c = rotate(c, 32);
  }

  __device__ uint64_t digest(uint64_t word) {
    d ^= word; round(); round(); a ^= word;
    uint64_t last = 8ull << 56;
    d ^= last; round(); round(); a ^= last;
    c ^= 0xff; round(); round(); round(); round();
    return a ^ b ^ c ^ d;
  }
};

__global__ void audit(uint64_t first, uint64_t salt, const uint64_t* wanted, int wanted_count, unsigned long long* found) {
  for (int place = blockIdx.x * blockDim.x + threadIdx.x; place < CANDIDATES; place += gridDim.x * blockDim.x) {
    uint64_t word = first + place;
    for (int round = 0; round < ROUNDS; ++round) word = Sip(salt, word).digest(word);
    for (int number = 0; number < wanted_count; ++number)
      if (word == wanted[number]) atomicExch(found, (unsigned long long)(first + place));
  }
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  int processors = 0;
  CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  int blocks = args.is_cured ? 8 * processors : 16;  // sixteen filled the card that this was written for
  constexpr int WANTED = 8;
  uint64_t* wanted = allocate<uint64_t>(WANTED);
  unsigned long long* found = allocate<unsigned long long>(1);
  CHECK(cudaMemset(wanted, 0x5a, WANTED * sizeof(uint64_t)));
  measure(args, [&](int index) {
    audit<<<blocks, THREADS>>>(uint64_t(index) * CANDIDATES, 0x5eed, wanted, WANTED, found);
  });
}
