"""Registration of a volume (a head) with an atlas: its difference, and the slopes over six parameters of the motion."""

import cupy as cp
import harness
import numpy as np
from cupyx.profiler import time_range
from cupyx.scipy import ndimage

SIZE, TRIES = 160, 7


def build(*, ailing: bool) -> harness.Step:
    """Return the step: one update of the motion."""
    generator = cp.random.default_rng(0)
    fixed = ndimage.gaussian_filter(generator.standard_normal((SIZE,) * 3, dtype=cp.float32), 4)
    moving = cp.roll(fixed, (2, -1, 3), axis=(0, 1, 2))
    source = moving if ailing else ndimage.spline_filter(moving, order=3, mode="mirror")
    state = {"motion": np.zeros(6)}

    def difference(motion: np.ndarray) -> cp.ndarray:
        """Return the mean square difference of the warped volume and the atlas."""
        a, b, c = motion[:3]
        matrix = np.eye(3) + np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])
        warped = ndimage.affine_transform(
            source, cp.asarray(matrix), motion[3:], order=3, mode="mirror", prefilter=ailing, output=cp.float32
        )
        return ((warped - fixed) ** 2).mean()

    def step(_: int) -> np.ndarray:
        motion = state["motion"]
        tries = [motion, *(motion + 1e-2 * unit for unit in np.eye(6))]
        with time_range("tries"):
            values = cp.stack([difference(trial) for trial in tries])
        with time_range("update"):
            values = values.get()
            slopes = (values[1:] - values[0]) / 1e-2
            state["motion"] = motion - 0.02 * slopes / (np.linalg.norm(slopes) + 1e-12)
        return values

    return step


if __name__ == "__main__":
    harness.run(build, cp.cuda.Device().synchronize)
