// Stars that attract each other: leapfrog steps of a direct N-body simulation.
#include <cmath>
#include <vector>

#include "harness.cuh"

constexpr int STARS = 16384, THREADS = 64;
constexpr float DT = 1e-4f;

__global__ void attract(const float4* positions, float4* forces) {
  __shared__ float4 tile[THREADS];
  int i = blockIdx.x * THREADS + threadIdx.x;
  float4 own = positions[i], sum = {0, 0, 0, 0};
  for (int first = 0; first < STARS; first += THREADS) {
    tile[threadIdx.x] = positions[first + threadIdx.x];
    __syncthreads();
#pragma unroll 16
    for (int j = 0; j < THREADS; ++j) {
      float x = tile[j].x - own.x, y = tile[j].y - own.y, z = tile[j].z - own.z;
      float inverse = rsqrtf(x * x + y * y + z * z + 1e-3f);
      float factor = tile[j].w * inverse * inverse * inverse;
      sum.x += factor * x, sum.y += factor * y, sum.z += factor * z;
    }
    __syncthreads();
  }
  forces[i] = sum;
}

__host__ __device__ inline void move(float4& position, float4& velocity, const float4& force) {
  velocity.x += DT * force.x, velocity.y += DT * force.y, velocity.z += DT * force.z;
  position.x += DT * velocity.x, position.y += DT * velocity.y, position.z += DT * velocity.z;
}

__global__ void advance(float4* positions, float4* velocities, const float4* forces) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 position = positions[i], velocity = velocities[i];
  move(position, velocity, forces[i]);
  positions[i] = position, velocities[i] = velocity;
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  std::vector<float4> host(STARS), speed(STARS), pull(STARS);
  for (int i = 0; i < STARS; ++i) {
    float angle = i * 2.399963f, radius = std::sqrt(float(i) / STARS);
    host[i] = {radius * std::cos(angle), radius * std::sin(angle), 0.01f * (i % 17), 1.f / STARS};
  }
  auto positions = allocate<float4>(STARS), velocities = allocate<float4>(STARS), forces = allocate<float4>(STARS);
  size_t bytes = STARS * sizeof(float4);
  CHECK(cudaMemcpy(positions, host.data(), bytes, cudaMemcpyHostToDevice));
  measure(args, [&](int) {
    attract<<<STARS / THREADS, THREADS>>>(positions, forces);
    if (args.is_cured) {
      advance<<<STARS / 128, 128>>>(positions, velocities, forces);
      return;
    }
    CHECK(cudaMemcpy(pull.data(), forces, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < STARS; ++i) move(host[i], speed[i], pull[i]);
    CHECK(cudaMemcpy(positions, host.data(), bytes, cudaMemcpyHostToDevice));
  });
}
