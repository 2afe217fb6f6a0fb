"""Circuit: voltages of a large network by steps of an iterative solver."""

import cupy as cp
from cupyx.scipy import sparse
from harness import arguments, measure

NODES, WIRES = 500_000, 4_000_000

args = arguments(__doc__)
source = cp.random.default_rng(0)
rows, columns = source.integers(0, NODES, (2, WIRES), dtype=cp.int32)
conductance = source.random(WIRES, dtype=cp.float32)
coordinates = sparse.coo_matrix((conductance, (rows, columns)), shape=(NODES, NODES))
compressed = coordinates.tocsr()
voltage = cp.ones(NODES, dtype=cp.float32)


def step(_: int) -> None:
    global voltage  # noqa: PLW0603
    matrix = compressed if args.variant == "cured" else coordinates.tocsr()
    current = matrix @ voltage
    voltage = voltage - 1e-3 * (current - current.mean())


measure(args, step, cp.cuda.Device().synchronize)
