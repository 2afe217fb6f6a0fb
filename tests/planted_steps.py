"""Sequences of operations whose step is known, made from a seed: what cuts, varies and surrounds real training loops.

Each kind is one thing that made the step wrong: rare work between iterations, variants of a kernel, pauses of the host,
layers with most of the GPU time, and a second device. `plant_step` makes columns as `facts/loops` reads them.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

import numpy as np

KINDS = ("interrupted", "variants", "paused", "layers", "devices")
D2H, H2D, WAIT = -1, -2, -3
KERNELS_PER_CLASS = 1_000
MAX_OPERATIONS = 12_000


@dataclass
class PlantedStep:
    """The columns of a sequence, and when each step starts on the host."""

    kind: str
    is_marked: bool
    rows: list[tuple] = field(default_factory=list)
    starts_ns: list[int] = field(default_factory=list)
    now_ns: int = 0

    def append(self, token, runs_ns=0, device=0):
        """Append an operation: a kernel by its number, or a copy or wait."""
        self.now_ns += 2_000
        self.rows.append((token, self.now_ns, runs_ns, device))

    def columns(self):
        """Return the columns of the sequence. Kernels run one after another, each after its launch."""
        token, host_ns, gpu_ns, device = (np.array(column) for column in zip(*self.rows, strict=True))
        end_ns, ends = 0, []
        for host, runs in zip(host_ns.tolist(), gpu_ns.tolist(), strict=True):
            end_ns = max(end_ns, host + 3_000) + runs
            ends.append(end_ns)
        end_ns = np.array(ends)
        is_kernel = token >= 0
        return {
            "token": token * 8 + device, "class": np.where(is_kernel, token // KERNELS_PER_CLASS, -token + 10**6) * 8
            + device, "shape": np.abs(token), "host_ns": host_ns, "start_ns": end_ns - gpu_ns, "end_ns": end_ns,
            "gpu_ns": gpu_ns, "device_id": device, "stream_id": np.full(len(token), 7),
            "is_launch": is_kernel, "is_major": is_kernel,
            "is_graph": np.zeros(len(token), bool), "is_end": np.isin(token, [D2H, WAIT]),
            "is_operation": token != WAIT, "is_wait": token == WAIT, "is_result": token == D2H,
            "is_input": token == H2D, "ends_step": np.zeros(len(token), bool),
            "is_communication": np.zeros(len(token), bool),
        }  # fmt: skip


def plant_step(seed: int) -> PlantedStep:  # noqa: C901, PLR0912, PLR0915
    """Make a sequence: operations before the loop, the loop, and operations after it."""
    rng = random.Random(seed)  # noqa: S311
    planted = PlantedStep(KINDS[seed % len(KINDS)], is_marked=rng.random() < 0.7)
    classes = itertools.count()

    def block(size):
        """Kernels that may come again, with their times; each of its own class."""
        pool = [(next(classes) * KERNELS_PER_CLASS, rng.randint(2, 80) * 1_000) for _ in range(max(1, size * 3 // 4))]
        return [rng.choice(pool) for _ in range(size)]

    def unique(size):
        return [(next(classes) * KERNELS_PER_CLASS, rng.randint(2, 80) * 1_000) for _ in range(size)]

    def vary(kernels, variant, positions):
        """Replace kernels by others of their classes; some need a second kernel more."""
        return [
            (token + variant, runs + 1_000 * variant) if position in positions else (token, runs)
            for position, (token, runs) in enumerate(kernels)
        ]

    def put_all(kernels, device=0):
        for token, runs in kernels:
            planted.append(token, runs, device)

    has_layers = planted.kind == "layers" or (planted.kind != "devices" and rng.random() < 0.4)
    layer = [*unique(1), *block(rng.randint(2, 12)), *unique(1)]
    layers = rng.choice([4, 6, 8, 12, 16, 22, 24, 28, 32, 48]) if has_layers else 0
    head = [*unique(1), *block(rng.randint(1, 20)), *unique(1)]
    if planted.kind == "layers":
        layer = [(token, runs * 5) for token, runs in layer]
    size = layers * len(layer) + len(head)
    count = max(20, min(rng.choice([24, 40, 60, 100, 200]), MAX_OPERATIONS // size))
    in_head = set(rng.sample(range(len(head)), max(1, len(head) // 5)))
    in_layer = set(rng.sample(range(len(layer)), max(1, len(layer) // 5)))
    pattern = [0]
    if planted.kind == "variants":
        period = rng.randint(2, 8)
        variants = rng.choice([2, 2, 3])
        pattern = [1, *(rng.randrange(variants) for _ in range(period - 2)), 0]
        if len(head) < 7:
            head += unique(7 - len(head))
    interruptions = {}
    if planted.kind == "interrupted":
        share = rng.uniform(0.01, 0.2)
        if rng.random() < 0.4 and planted.is_marked:
            interval = max(5, round(1 / share))
            after = set(range(interval - 1, count - 1, interval))
        else:
            after = set(rng.sample(range(count - 1), max(1, round(share * count))))
        evaluation = block(rng.randint(3, max(4, min(40, size))))
        log = block(rng.randint(1, 3))
        interruptions = {number: rng.choice([evaluation, evaluation, log]) for number in after}
    has_threads = planted.kind == "devices" and rng.random() < 0.5
    waiting = []
    pauses = set()
    if planted.kind == "paused":
        interval = rng.choice([10, 10, 15, 25, 50])
        pauses = set(range(interval - 1, count, interval))
        if rng.random() < 0.4:
            pauses = set(rng.sample(range(count), count // 9))
    mark = rng.choice([D2H, D2H, H2D])
    put_all(block(rng.randint(0, 30)))
    for number in range(count):
        planted.starts_ns.append(planted.now_ns + 2_000)
        variant = pattern[number % len(pattern)]
        if planted.is_marked and mark == H2D:
            planted.append(H2D, 3_000)
        body = vary(head, variant, in_head)
        put_all(body[:1])
        for _ in range(layers):
            put_all(vary(layer, variant, in_layer) if has_layers and variant else layer)
        if has_threads:
            # Another thread works on the other device at the same time; it may fall behind by an iteration.
            waiting += body
            for token, runs in body[1:]:
                planted.append(token, runs)
                for _ in range(max(len(waiting) - len(body), min(len(waiting), rng.choice([0, 1, 1, 2])))):
                    planted.append(*waiting.pop(0), device=1)
        else:
            put_all(body[1:])
            put_all(body if planted.kind == "devices" else [], device=1)
        if planted.is_marked and mark == D2H:
            planted.append(D2H, 1_000)
            planted.append(WAIT)
        planted.now_ns += 20_000
        if number in interruptions:
            put_all(interruptions[number])
            planted.append(D2H, 1_000)
        if number in pauses:
            planted.now_ns += 20_000_000
    put_all(block(rng.randint(0, 10)))
    return planted
