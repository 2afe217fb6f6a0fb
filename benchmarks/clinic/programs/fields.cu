// Relax eight independent fields, each on a stream of its own.
//
// Ailing: the streams are blocking and a small kernel runs on the legacy default stream after each field, so the
//         fields run one after the other.
// Cured:  the streams are non-blocking, and the small kernel runs on the stream of its field.
#include "harness.cuh"

constexpr int FIELDS = 8, ROUNDS = 6, SIZE = 16 * 256;

__global__ void relax(float* field, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = field[i];
  for (int k = 0; k < rounds; ++k) value = 0.999f * value + 0.001f * __sinf(value);
  field[i] = value;
}

__global__ void note(const float* field, float* log, int slot) { log[slot] = field[0]; }

int main(int argc, char** argv) {
  Arguments args = arguments(argc, argv);
  cudaStream_t streams[FIELDS];
  float *fields, *log;
  CHECK(cudaMalloc(&fields, FIELDS * SIZE * sizeof(float)));
  CHECK(cudaMalloc(&log, FIELDS * sizeof(float)));
  CHECK(cudaMemset(fields, 0, FIELDS * SIZE * sizeof(float)));
  for (auto& stream : streams)
    CHECK(cudaStreamCreateWithFlags(&stream, args.is_cured ? cudaStreamNonBlocking : cudaStreamDefault));
  measure(args, [&](int) {
    for (int round = 0; round < ROUNDS; ++round)
      for (int f = 0; f < FIELDS; ++f) {
        relax<<<SIZE / 256, 256, 0, streams[f]>>>(fields + f * SIZE, 800);
        note<<<1, 1, 0, args.is_cured ? streams[f] : cudaStreamLegacy>>>(fields + f * SIZE, log, f);
      }
  });
}
