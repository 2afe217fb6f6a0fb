"""Follow neutrons through a moderator whose temperature falls (CuPy, Monte Carlo)."""

from __future__ import annotations

import cupy
from cupyx.profiler import time_range
from harness import arguments, measure

NEUTRONS, COLLISIONS = 1 << 22, 4500
SOURCE = """
extern "C" __global__ void collide(float* energy, unsigned* seeds, unsigned count, float heat) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned seed = seeds[i];
  float e = energy[i];
  for (int k = 0; k < COLLISIONS; ++k) {
    seed ^= seed << 13; seed ^= seed >> 17; seed ^= seed << 5;
    float u = seed * 2.3283064e-10f + 1e-9f;
    float loss = e * u * __expf(-e / (TEMPERATURE + 1.0f));
    e = e - loss - TEMPERATURE * __logf(u) * 1e-3f;
  }
  energy[i] = e;
  seeds[i] = seed;
}
""".replace("COLLISIONS", str(COLLISIONS))


def main() -> None:
    args = arguments(__doc__)
    energy = cupy.ones(NEUTRONS, dtype=cupy.float32)
    seeds = cupy.arange(1, NEUTRONS + 1, dtype=cupy.uint32)
    common = cupy.RawKernel(SOURCE.replace("TEMPERATURE", "heat"), "collide")

    def step(index: int) -> None:
        temperature = 300.0 / (1 + 0.001 * index)
        kernel = common
        if args.variant == "ailing":
            kernel = cupy.RawKernel(SOURCE.replace("TEMPERATURE", f"{temperature:.9f}f"), "collide")
        with time_range("collisions"):
            kernel((NEUTRONS // 256,), (256,), (energy, seeds, cupy.uint32(NEUTRONS), cupy.float32(temperature)))
        with time_range("spectrum"):
            cupy.log1p(energy).mean()

    measure(args, step, cupy.cuda.Device().synchronize)


main()
