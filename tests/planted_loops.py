"""Sequences of operations with a known loop nest, made from a seed: nests of depth 1 to 4, some with noise."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

KINDS = ("plain", "noise", "phases", "logged")
COPY, WAIT = -1, -2  # operations that make no loop of their own
MAX_OPERATIONS = 20_000


@dataclass
class PlantedLoops:
    """Operations, and the outermost loops: the first operation of each iteration, and the end of the last one."""

    kind: str
    operations: list[int] = field(default_factory=list)
    loops: list[tuple[list[int], int]] = field(default_factory=list)


def plant(seed: int) -> PlantedLoops:  # noqa: C901
    """Make a sequence: operations before the loop, the loop, perhaps a second one, and operations after it."""
    rng = random.Random(seed)  # noqa: S311
    planted = PlantedLoops(rng.choice(KINDS))
    names = itertools.count()

    def block(size):
        pool = [next(names) for _ in range(max(1, int(size * rng.uniform(0.5, 1))))]
        return [rng.choice(pool) for _ in range(size)]

    def body(depth):
        if depth == 1:
            return [*block(rng.randint(1, 39)), next(names)]  # never a run of equal operations
        return [*block(rng.randint(1, 12)), (rng.randint(3, 24), body(depth - 1)), *block(rng.randint(0, 8))]

    def unroll(items):
        for item in items:
            if isinstance(item, tuple):
                count, inner = item
                for _ in range(count):
                    yield from unroll(inner)
            else:
                yield item

    def disturb(iteration):
        """Insert, drop or replace an operation."""
        position = rng.randrange(len(iteration))
        change = rng.choice(["insert", "drop", "replace"])
        if change == "insert":
            iteration[position:position] = [next(names)] * rng.randint(1, 3)
        elif change == "drop" and len(iteration) > 4:
            del iteration[position]
        else:
            iteration[position] = next(names)

    def run(items, count, kind):
        end = [COPY, WAIT] if rng.random() < 0.5 else []
        different = set(rng.sample(range(count), count // 20)) if kind == "noise" else set()
        starts = []
        for number in range(count):
            starts.append(len(planted.operations))
            iteration = [*unroll(items), *end]
            if number in different:
                disturb(iteration)
            planted.operations += iteration
            if kind == "logged" and number % 10 == 9:
                planted.operations += [COPY, WAIT]
        planted.loops.append((starts, len(planted.operations)))

    items = body(rng.randint(1, 4))
    size = sum(1 for _ in unroll(items))
    count = max(3, min(rng.choice([3, 4, 5, 8, 12, 20, 50, 100, 300, 1000]), MAX_OPERATIONS // size))
    planted.operations += block(rng.randint(0, 30))
    run(items, count, planted.kind)
    if planted.kind == "phases":
        planted.operations += block(rng.randint(1, 6))
        run(body(rng.randint(1, 2)), max(3, count // 2), "plain")
    planted.operations += block(rng.randint(0, 10))
    return planted
