"""A fuzz run: thousands of broken traces, and a few commands on each.

    python tests/fuzz/run.py --minutes 10 --seed 1 --keep /tmp/found      (just fuzz)

Failing edits are minimized, and written to the folder as JSON for tests/fuzz/corpus.
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
import folders  # noqa: E402
from bases import BASES, write_base  # noqa: E402
from judge import SUMS_QUERY, Commands, judge_edits, judge_folder, minimize_edits  # noqa: E402

# These run on each file: SQLite can calculate their sums. Some of the other commands run too.
FIRST = (("top", "--format", "json", "--limit", "0"), ("sql", SUMS_QUERY, "--format", "json"))
MORE_COMMANDS = ("diagnose", "diagnose", "ncu plan")


def main() -> None:
    """Run until the time is over, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--files", type=int, default=10**9, help="at most this many files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"))
    parser.add_argument("--commands", type=int, default=4, help="how many more commands each file is asked")
    arguments = parser.parse_args()
    deadline, files, exit_codes, findings = time.monotonic() + 60 * arguments.minutes, 0, Counter[int](), list[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bases = {base: write_base(base, folder / f"{base}.sqlite") for base in BASES}
        from nsys_insight.packs.library import all_packs

        other_commands = [*sorted({*all_packs()} - {"fusion-candidate"}), *MORE_COMMANDS]
        with Commands(folder, NSYS_INSIGHT_CACHE_DIR=str(folder / "cache")) as commands:
            seed, facts = arguments.seed, folder / "facts" / "everything.facts"
            commands.run("fleet", str(bases["everything"]), "-o", str(folder / "facts"), "--workers", "1")
            while time.monotonic() < deadline and files < arguments.files:
                chance = random.Random(seed)  # noqa: S311 - not for secrets
                base = chance.choice(list(BASES))
                commands_to_run = [
                    *FIRST,
                    *((*report.split(),) for report in chance.sample(other_commands, arguments.commands)),
                ]
                if files % 4 == 3:
                    edit_list = folders.draw_folder_edits(chance)
                    for command in commands_to_run:
                        if command[0] != "ncu":
                            fault, code = judge_folder(commands, bases["everything"], facts, edit_list, command)
                            exit_codes[code] += 1
                            if fault:
                                findings.append(
                                    f"{seed} {command[0]} of a folder: {json.dumps(edit_list)}\n    {fault}"
                                )
                                print(findings[-1], flush=True)
                    files, seed = files + 1, seed + 1
                    continue
                edit_list = edits.draw_edits(bases[base], chance)
                for command in commands_to_run:
                    fault, code = judge_edits(commands, bases[base], edit_list, command)
                    exit_codes[code] += 1
                    if fault:
                        minimal_edits = minimize_edits(commands, bases[base], edit_list, command)
                        fault, _ = judge_edits(commands, bases[base], minimal_edits, command)
                        entry = {"base": base, "edits": minimal_edits, "command": list(command)}
                        arguments.keep.mkdir(exist_ok=True)
                        (arguments.keep / f"{seed}-{command[0]}.json").write_text(json.dumps(entry), encoding="utf-8")
                        findings.append(f"{seed} {' '.join(command)}: {json.dumps(minimal_edits)[:300]}\n    {fault}")
                        print(findings[-1], flush=True)
                files, seed = files + 1, seed + 1
    codes = ", ".join(f"{count} ended with {code}" for code, count in sorted(exit_codes.items()))
    print(f"{files} files, {sum(exit_codes.values())} commands: {codes}; {len(findings)} findings")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
