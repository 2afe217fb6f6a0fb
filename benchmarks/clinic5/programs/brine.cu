// Molecular dynamics of a brine of six species: the forces of each pair of species have constants of their own.
#include <nvtx3/nvToolsExt.h>

#include "harness.cuh"

constexpr int SPECIES = 6, EACH = 512, PARTS = 32, THREADS = 128;
constexpr float BOX = 24, INTERVAL = 1e-4f;

struct Pair {
  float depth, diameter, charge, cutoff;
};
__constant__ Pair current;

__device__ void add_forces(const float4* places, float4* forces, int one, int other, Pair pair) {
  int particle = one * EACH + blockIdx.x * blockDim.x + threadIdx.x;
  float4 here = places[particle];
  float3 sum = {0, 0, 0};
  int share = EACH / PARTS, begin = other * EACH + blockIdx.y * share;
  for (int partner = begin; partner < begin + share; ++partner) {
    float4 there = places[partner];
    float dx = here.x - there.x, dy = here.y - there.y, dz = here.z - there.z;
    dx -= BOX * rintf(dx / BOX), dy -= BOX * rintf(dy / BOX), dz -= BOX * rintf(dz / BOX);
    float square = dx * dx + dy * dy + dz * dz + 0.25f;
    if (partner == particle || square > pair.cutoff * pair.cutoff) continue;
    float ratio = pair.diameter * pair.diameter / square, sixth = ratio * ratio * ratio;
    float force = (24 * pair.depth * (2 * sixth * sixth - sixth) + pair.charge * rsqrtf(square)) / square;
    sum.x += force * dx, sum.y += force * dy, sum.z += force * dz;
  }
  atomicAdd(&forces[particle].x, sum.x);
  atomicAdd(&forces[particle].y, sum.y);
  atomicAdd(&forces[particle].z, sum.z);
}

__global__ void forces_of_pair(const float4* places, float4* forces, int one, int other) {
  add_forces(places, forces, one, other, current);
}

__global__ void forces_of_pair_given(const float4* places, float4* forces, int one, int other, Pair pair) {
  add_forces(places, forces, one, other, pair);
}

__global__ void move(float4* places, float4* speeds, float4* forces) {
  int particle = blockIdx.x * blockDim.x + threadIdx.x;
  float4 force = forces[particle], speed = speeds[particle], place = places[particle];
  speed.x += INTERVAL * force.x, speed.y += INTERVAL * force.y, speed.z += INTERVAL * force.z;
  place.x += INTERVAL * speed.x, place.y += INTERVAL * speed.y, place.z += INTERVAL * speed.z;
  places[particle] = place, speeds[particle] = speed, forces[particle] = float4{0, 0, 0, 0};
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  constexpr int ALL = SPECIES * EACH;
  float4 *places = allocate<float4>(ALL), *speeds = allocate<float4>(ALL), *forces = allocate<float4>(ALL);
  static float4 start[ALL];
  for (int number = 0; number < ALL; ++number)
    start[number] = {BOX * (number % 16) / 16, BOX * (number / 16 % 16) / 16, BOX * (number / 256) / 12, 0};
  CHECK(cudaMemcpy(places, start, sizeof(start), cudaMemcpyHostToDevice));
  Pair pairs[SPECIES][SPECIES];
  for (int one = 0; one < SPECIES; ++one)
    for (int other = 0; other < SPECIES; ++other)
      pairs[one][other] = {0.1f + 0.01f * one * other, 1 + 0.05f * (one + other), one % 2 == other % 2 ? 1.0f : -1.0f, 8};

  measure(args, [&](int) {
    nvtxRangePushA("forces");
    dim3 grid(EACH / THREADS, PARTS);
    for (int one = 0; one < SPECIES; ++one)
      for (int other = 0; other < SPECIES; ++other) {
        if (args.is_cured) {
          forces_of_pair_given<<<grid, THREADS>>>(places, forces, one, other, pairs[one][other]);
        } else {
          CHECK(cudaMemcpyToSymbol(current, &pairs[one][other], sizeof(Pair)));
          forces_of_pair<<<grid, THREADS>>>(places, forces, one, other);
        }
      }
    nvtxRangePop();
    move<<<ALL / THREADS, THREADS>>>(places, speeds, forces);
  });
}
