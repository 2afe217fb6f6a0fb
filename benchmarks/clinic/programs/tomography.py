"""Reconstruct slices and bring each one to the host.

Ailing: cupy.asnumpy copies each slice to pageable memory and waits.
Cured: copies to two pinned buffers on a second stream, while the next slice is computed.
"""

import cupy as cp
import cupyx
import harness
import numpy as np


def main() -> None:
    args = harness.arguments(__doc__)
    cp.random.seed(0)
    size = 2048
    signal = cp.random.standard_normal((size, size), dtype=cp.float32)
    ramp = cp.abs(cp.fft.fftfreq(size)).astype(cp.float32)
    hosts = [cupyx.empty_pinned((size, size), np.float32) for _ in range(2)]
    copier = cp.cuda.Stream(non_blocking=True)
    copied_events = [cp.cuda.Event() for _ in hosts]
    images: list[object] = [None, None]

    def reconstruct() -> cp.ndarray:
        return cp.fft.irfft2(cp.fft.rfft2(signal) * ramp[: size // 2 + 1], s=signal.shape)

    def step(index: int) -> float:
        image = reconstruct()
        if args.variant == "ailing":
            return float(cp.asnumpy(image)[0, 0])
        slot = index % 2
        copier.wait_event(cp.cuda.get_current_stream().record())
        image.get(stream=copier, out=hosts[slot], blocking=False)
        copied_events[slot].record(copier)
        images[slot] = image
        if index:
            copied_events[1 - slot].synchronize()
        return float(hosts[1 - slot][0, 0])

    harness.measure(args, step, cp.cuda.Device().synchronize)


if __name__ == "__main__":
    main()
