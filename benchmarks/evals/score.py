"""Score answers to the questions about the sample traces, or answer them with the command line alone.

    python benchmarks/evals/score.py questions            # what to ask an agent: {name: {"trace", "question"}}
    python benchmarks/evals/score.py cli > answers.json   # what the command line answers
    python benchmarks/evals/score.py score answers.json   # of {name: answer} a table; exit 1 unless all are right

Run an agent once with the skill installed and once without, each with nothing but the traces and its own tools, write
down its answers, and compare the scores.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

TRACES = Path(__file__).parents[2] / "sample_traces"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


class Question(NamedTuple):
    """A question, its right answer, and how the command line alone answers it."""

    trace: str
    question: str
    answer: Any
    command: str
    read: str
    tolerance: float = 0.0


def questions() -> dict[str, Question]:
    """Return the questions by name."""
    text = (Path(__file__).parent / "questions.toml").read_text(encoding="utf-8")
    return {name: Question(**facts) for name, facts in tomllib.loads(text).items()}


def answered(question: Question, run: Callable[[list[str]], Any]) -> Any:
    """Answer a question with the command line alone; `run` returns the JSON that a command prints."""
    return read(run([*shlex.split(question.command), "--format", "json"]), question.read)


def read(answer: Any, path: str) -> Any:
    """Take a value out of an answer: ``rows[metric=kernels].value``; a minus before it changes its sign.

    Raises:
        LookupError: It is not there.
    """
    found = answer
    for name, row in re.findall(r"(\w+)(?:\[([^\]]+)\])?", path):
        found = found[name]
        if row.isdecimal():
            found = found[int(row)]
        elif row:
            wanted = dict(pair.split("=") for pair in row.split(","))
            rows = [each for each in found if all(str(each[key]) == value for key, value in wanted.items())]
            if not rows:
                raise LookupError(f"no row of the answer is one of {row}")
            found = rows[0]
    return -found if path.startswith("-") else found


def is_right(question: Question, given: Any) -> bool:
    """Tell whether an answer is right. A number may stand in a sentence, if it is the only one there."""
    right = question.answer
    if isinstance(right, list):
        return isinstance(given, str) and all(text in given for text in right)
    if isinstance(right, str):
        return isinstance(given, str) and given.strip().lower() == right.lower()
    numbers = [float(text) for text in _NUMBER.findall(str(given).replace(",", ""))]
    return len(numbers) == 1 and abs(numbers[0] - right) <= abs(right) * question.tolerance / 100


def command_line(arguments: list[str]) -> Any:
    """Run nsys-insight where the sample traces are; return the JSON that it prints.

    Raises:
        CalledProcessError: It failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "nsys_insight", *arguments], cwd=TRACES, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    match arguments:
        case ["questions"]:
            asked = {name: {"trace": each.trace, "question": each.question} for name, each in questions().items()}
            print(json.dumps(asked, indent=1))
        case ["cli"]:
            print(json.dumps({name: answered(each, command_line) for name, each in questions().items()}, indent=1))
        case ["score", file]:
            given = json.loads(Path(file).read_text(encoding="utf-8"))
            right = {name: is_right(each, given.get(name)) for name, each in questions().items()}
            for name, is_so in right.items():
                print(f"{'right' if is_so else 'WRONG':7}{name:26}{given.get(name)}")
            print(f"{sum(right.values())} of {len(right)} right")
            return 0 if all(right.values()) else 1
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
