"""A fuzz run: thousands of broken traces, and a few commands on each.

    python tests/fuzz/run.py --minutes 10 --seed 1 --jobs 4 --keep /tmp/found      (just fuzz)

A seed is a file: a run has the same files with any number of jobs. Failing edits are minimized, and written to the
folder as JSON for tests/fuzz/corpus.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import edits  # noqa: E402
import folders  # noqa: E402
import surroundings  # noqa: E402
from bases import BASES, write_base  # noqa: E402
from judge import SUMS_QUERY, Commands, judge_edits, judge_folder, minimize_edits  # noqa: E402

# These run on each file: SQLite can calculate their sums. Some of the other commands run too.
FIRST = (("top", "--format", "json", "--limit", "0"), ("sql", SUMS_QUERY, "--format", "json"))
MORE_COMMANDS = ("diagnose", "diagnose", "ncu plan", "convert --as sqlite -o ../../out/converted.sqlite")
# These read tables that only these bases have.
COMMANDS_OF_BASE = {"mpi": ("mpi", "openacc", "openmp", "libraries"), "groups": ("ranks", "collectives"),
                    "pipeline": ("ranks", "collectives"), "rank": ("ranks", "collectives", "diagnose")}  # fmt: skip


class Trial(NamedTuple):
    """Exit code, CPU seconds and peak memory of each command on a file, and the faults: a text and a corpus entry."""

    seed: int
    commands: list[tuple[int, float, float]]
    faults: list[tuple[str, dict[str, Any]]]


class Worker:
    """Breaks files in a folder of its own, and runs commands on them."""

    def __init__(self, folder: Path, command_count: int) -> None:
        from nsys_insight.packs.library import all_packs

        self._command_count = command_count
        self._other_commands = [*sorted({*all_packs()} - {"fusion-candidate"}), *MORE_COMMANDS]
        self._bases = {base: write_base(base, folder / f"{base}.sqlite") for base in BASES}
        self._commands = Commands(folder)
        self._facts = folder / "facts" / "everything.facts"
        self._commands.run("fleet", str(self._bases["everything"]), "-o", str(folder / "facts"), "--workers", "1")

    def try_seed(self, seed: int) -> Trial:
        """Break a file, run commands on it, and reduce the edits of those that fail. Every fourth seed is a folder."""
        chance = random.Random(seed)  # noqa: S311 - not for secrets
        base = chance.choice(list(BASES))
        names = [*COMMANDS_OF_BASE.get(base, ()), *chance.sample(self._other_commands, self._command_count)]
        more_commands = [(*command.split(),) for command in names[: self._command_count]]
        trial = Trial(seed, [], [])
        user_files = surroundings.draw(chance)
        if seed % 4 == 3:
            edit_list = folders.draw_folder_edits(chance)
            for command in (*FIRST, *(("host",) if other[0] == "ncu" else other for other in more_commands)):
                fault, outcome = judge_folder(
                    self._commands, self._bases["everything"], self._facts, edit_list, command, user_files
                )
                trial.commands.append((outcome.code, outcome.seconds, outcome.peak_mb))
                if fault:
                    trial.faults.append(
                        (fault, {"folder": True, "edits": edit_list, "user_files": user_files, "command": [*command]})
                    )
            return trial
        edit_list = edits.draw_edits(self._bases[base], chance)
        for command in (*FIRST, *more_commands):
            fault, outcome = judge_edits(self._commands, self._bases[base], edit_list, command, user_files)
            trial.commands.append((outcome.code, outcome.seconds, outcome.peak_mb))
            if fault:
                fewer, files = minimize_edits(self._commands, self._bases[base], edit_list, command, user_files)
                fault, _ = judge_edits(self._commands, self._bases[base], fewer, command, files)
                entry = {"base": base, "edits": fewer, "user_files": files, "command": [*command]}
                trial.faults.append((fault, entry))
        return trial


_worker: Worker


def _start_worker(folder: str, command_count: int) -> None:
    global _worker  # noqa: PLW0603 - one for each process
    own_folder = Path(folder) / str(os.getpid())
    own_folder.mkdir()
    _worker = Worker(own_folder, command_count)


def _try_seed(seed: int) -> Trial:
    try:
        return _worker.try_seed(seed)
    except Exception as error:  # noqa: BLE001 - one file must not end a run of thousands
        return Trial(seed, [], [(f"the fuzzer fails: {error!r:.500}", {"edits": [], "command": ["fuzzer"]})])


def main() -> None:
    """Run until the time is over, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--files", type=int, default=100_000, help="at most this many files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="files at once")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    parser.add_argument("--commands", type=int, default=4, help="how many more commands run on each file")
    arguments = parser.parse_args()
    deadline = time.monotonic() + 60 * arguments.minutes
    seeds = range(arguments.seed, arguments.seed + arguments.files)
    files, commands, fault_count = 0, list[tuple[int, float, float]](), 0
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        context.Pool(arguments.jobs, _start_worker, (folder, arguments.commands)) as pool,
    ):
        for trial in pool.imap_unordered(_try_seed, seeds):
            files += 1
            commands += trial.commands
            fault_count += len(trial.faults)
            for fault, entry in trial.faults:
                arguments.keep.mkdir(exist_ok=True)
                name = f"{trial.seed}-{entry['command'][0]}.json"
                (arguments.keep / name).write_text(json.dumps(entry), encoding="utf-8")
                print(f"{name}: {json.dumps([entry['edits'], entry.get('user_files')])[:400]}\n    {fault}", flush=True)
            if files % 100 == 0:
                print(f"{files} files, {fault_count} faults", file=sys.stderr, flush=True)
            if time.monotonic() > deadline:
                break
    codes = ", ".join(f"{count} ended with {code}" for code, count in sorted(Counter(c for c, *_ in commands).items()))
    seconds, peak_mb = (max(column) for column in [*zip(*commands, strict=True)][1:])
    print(
        f"{files} files, {len(commands)} commands: {codes}; {fault_count} faults; max {seconds:.1f} s, {peak_mb:.0f} MB"
    )
    sys.exit(bool(fault_count))


if __name__ == "__main__":
    main()
