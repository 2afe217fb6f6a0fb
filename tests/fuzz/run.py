"""A fuzz run: broken traces by the thousand, each asked a few commands.

    python tests/fuzz/run.py --minutes 10 --seed 1 --keep /tmp/found      (just fuzz)

What fails is made small, and written to the folder as JSON for tests/fuzz/corpus.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import edits  # noqa: E402
from bases import BASES, written  # noqa: E402
from judge import Commands, judged, smallest  # noqa: E402

# `top` has sums that SQLite knows; of the rest, each file is asked some.
FIRST = ("top", "--format", "json", "--limit", "0")
MORE = ("diagnose", "diagnose", "ncu plan")


def main() -> None:
    """Run until the time is over, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    parser.add_argument("--commands", type=int, default=3, help="how many more commands each file is asked")
    asked = parser.parse_args()
    ends, files, ran, found = time.monotonic() + 60 * asked.minutes, 0, Counter[int](), list[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bases = {base: written(base, folder / f"{base}.sqlite") for base in BASES}
        from nsys_insight.packs.library import known

        rest = [*sorted({*known()} - {"fusion-candidate"}), *MORE]
        with Commands(folder, NSYS_INSIGHT_CACHE_DIR=str(folder / "cache")) as commands:
            seed = asked.seed
            while time.monotonic() < ends:
                chance = random.Random(seed)  # noqa: S311 - not for secrets
                base = chance.choice(list(BASES))
                wanted = [FIRST, *((*report.split(),) for report in chance.sample(rest, asked.commands))]
                made = edits.drawn(bases[base], chance)
                for command in wanted:
                    fault, code = judged(commands, bases[base], made, command)
                    ran[code] += 1
                    if fault:
                        small = smallest(commands, bases[base], made, command)
                        fault, _ = judged(commands, bases[base], small, command)
                        entry = {"base": base, "edits": small, "command": list(command)}
                        asked.keep.mkdir(exist_ok=True)
                        (asked.keep / f"{seed}-{command[0]}.json").write_text(json.dumps(entry), encoding="utf-8")
                        found.append(f"{seed} {' '.join(command)}: {json.dumps(small)[:300]}\n    {fault}")
                        print(found[-1], flush=True)
                files, seed = files + 1, seed + 1
    codes = ", ".join(f"{count} ended with {code}" for code, count in sorted(ran.items()))
    print(f"{files} files in {asked.minutes:g} minutes, {sum(ran.values())} commands: {codes}; {len(found)} findings")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
