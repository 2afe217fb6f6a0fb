"""Light through a thick sample: in each slice a change of phase, then the way to the next by Fourier transforms."""

import cupy as cp
import harness

PROBES, SIZE, SLICES = 4, 2048, 6
AXES = (-2, -1)


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one pass of four probes through all slices."""
    random = cp.random.RandomState(0)
    place = cp.arange(SIZE, dtype=cp.float32) - SIZE // 2
    square = place[:, None] ** 2 + place[None, :] ** 2
    propagator = cp.exp(-1j * (3e-5 * square)).astype(cp.complex64)  # zero frequency in the middle
    phases = cp.exp(1j * 0.3 * random.rand(SLICES, SIZE, SIZE, dtype=cp.float32)).astype(cp.complex64)
    probes = cp.stack([cp.exp(-cp.roll(square, 100 * i, 1) / 40000) for i in range(PROBES)]).astype(cp.complex64)
    if not ailing:  # everything in the order of the transform
        propagator, phases, probes = (cp.fft.ifftshift(array, axes=AXES) for array in (propagator, phases, probes))

    def through(waves: cp.ndarray) -> cp.ndarray:
        for phase in phases:
            waves = waves * phase
            if ailing:
                spectrum = cp.fft.fftshift(cp.fft.fft2(cp.fft.ifftshift(waves, axes=AXES)), axes=AXES)
                spectrum *= propagator
                waves = cp.fft.fftshift(cp.fft.ifft2(cp.fft.ifftshift(spectrum, axes=AXES)), axes=AXES)
            else:
                spectrum = cp.fft.fft2(waves)
                spectrum *= propagator
                waves = cp.fft.ifft2(spectrum)
        return waves

    def step(number: int) -> cp.ndarray:
        waves = through(probes * cp.float32(1 + 0.01 * (number % 5)))
        picture = cp.abs(waves).sum(axis=0)
        return picture if ailing else cp.fft.fftshift(picture)

    return step


if __name__ == "__main__":
    harness.run(build, lambda: cp.cuda.get_current_stream().synchronize(), 200)
