// A picture of mirroring spheres by ray tracing: one thread follows one ray over a few bounces.
#include <cmath>
#include <vector>

#include "harness.cuh"

constexpr int WIDTH = 1280, HEIGHT = 720, SPHERES = 192, BOUNCES = 4;

__global__ void trace(const float4* scene, float* picture, float time) {
  extern __shared__ float4 spheres[];
  int local = threadIdx.y * blockDim.x + threadIdx.x;
  for (int i = local; i < SPHERES; i += blockDim.x * blockDim.y) spheres[i] = scene[i];
  __syncthreads();
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= WIDTH || row >= HEIGHT) return;
  float3 from = {0.3f * __sinf(time), 0, -6}, to = {(column - WIDTH / 2) / 640.f, (row - HEIGHT / 2) / 640.f, 1};
  float length = rsqrtf(to.x * to.x + to.y * to.y + to.z * to.z), light = 0, weight = 1;
  to = {to.x * length, to.y * length, to.z * length};
  for (int bounce = 0; bounce < BOUNCES; ++bounce) {
    float nearest = 1e9f;
    int hit = -1;
    for (int i = 0; i < SPHERES; ++i) {
      float x = spheres[i].x - from.x, y = spheres[i].y - from.y, z = spheres[i].z - from.z;
      float along = x * to.x + y * to.y + z * to.z;
      float inside = spheres[i].w - (x * x + y * y + z * z - along * along);
      if (inside < 0) continue;
      float distance = along - sqrtf(inside);
      if (distance > 1e-3f && distance < nearest) nearest = distance, hit = i;
    }
    if (hit < 0) {
      light += weight * (0.5f + 0.5f * to.y);
      break;
    }
    from = {from.x + nearest * to.x, from.y + nearest * to.y, from.z + nearest * to.z};
    float3 normal = {from.x - spheres[hit].x, from.y - spheres[hit].y, from.z - spheres[hit].z};
    float scale = rsqrtf(normal.x * normal.x + normal.y * normal.y + normal.z * normal.z);
    normal = {normal.x * scale, normal.y * scale, normal.z * scale};
    float twice = 2 * (to.x * normal.x + to.y * normal.y + to.z * normal.z);
    to = {to.x - twice * normal.x, to.y - twice * normal.y, to.z - twice * normal.z};
    light += weight * 0.1f, weight *= 0.8f;
  }
  picture[row * WIDTH + column] = light;
}

int main(int count, char** words) {
  Arguments args = arguments(count, words);
  std::vector<float4> spheres(SPHERES);
  for (int i = 0; i < SPHERES; ++i)
    spheres[i] = {4 * std::sin(i * 1.7f), 3 * std::sin(i * 2.9f), 4 * std::cos(i * 1.1f), 0.15f};
  auto scene = allocate<float4>(SPHERES);
  auto picture = allocate<float>(WIDTH * HEIGHT);
  CHECK(cudaMemcpy(scene, spheres.data(), SPHERES * sizeof(float4), cudaMemcpyHostToDevice));
  int bytes = SPHERES * sizeof(float4);
  if (!args.is_cured) CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CHECK(cudaFuncSetAttribute(trace, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  dim3 block(16, 8), grid(WIDTH / 16, HEIGHT / 8);
  measure(args, [&](int step) { trace<<<grid, block, bytes>>>(scene, picture, 0.01f * step); });
}
