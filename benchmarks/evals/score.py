"""Score answers to the questions about the sample traces, or answer them with the command line alone.

    python benchmarks/evals/score.py questions            # what to ask an agent: {name: {"trace", "question"}}
    python benchmarks/evals/score.py cli > answers.json   # what the command line answers
    python benchmarks/evals/score.py score answers.json   # a table from {name: answer}; exit 1 unless all are right

Run an agent once with the skill installed and once without it. Give it only the traces and its own tools. Write its
answers down and compare the scores.
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
    """A question, its right answer, and the command that answers it.

    `read` is the path of the answer in the JSON of the command. `tolerance` is the allowed error in percent.
    """

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


def answer_by_command_line(question: Question, run: Callable[[list[str]], Any]) -> Any:
    """Answer a question with its command. `run` returns the JSON that a command prints."""
    return read(run([*shlex.split(question.command), "--format", "json"]), question.read)


def read(answer: Any, path: str) -> Any:
    """Read a value in an answer by its path: ``rows[metric=kernels].value``. A leading minus changes the sign.

    Raises:
        LookupError: The answer does not have the value.
    """
    value = answer
    for name, selector in re.findall(r"(\w+)(?:\[([^\]]+)\])?", path):
        value = value[name]
        if selector.isdecimal():
            value = value[int(selector)]
        elif selector:
            conditions = dict(pair.split("=") for pair in selector.split(","))
            matching_rows = [row for row in value if all(str(row[key]) == text for key, text in conditions.items())]
            if not matching_rows:
                raise LookupError(f"no row of the answer has {selector}")
            value = matching_rows[0]
    return -value if path.startswith("-") else value


def is_right(question: Question, given_answer: Any) -> bool:
    """Return whether an answer is right. A number may be part of a sentence, if it is the only one there."""
    expected = question.answer
    if isinstance(expected, list):
        return isinstance(given_answer, str) and all(text in given_answer for text in expected)
    if isinstance(expected, str):
        return isinstance(given_answer, str) and given_answer.strip().lower() == expected.lower()
    numbers = [float(text) for text in _NUMBER.findall(str(given_answer).replace(",", ""))]
    return len(numbers) == 1 and abs(numbers[0] - expected) <= abs(expected) * question.tolerance / 100


def run_command_line(arguments: list[str]) -> Any:
    """Run nsys-insight in the folder of the sample traces and return the JSON that it prints.

    Raises:
        CalledProcessError: The command failed.
    """
    completed = subprocess.run(
        [sys.executable, "-m", "nsys_insight", *arguments], cwd=TRACES, capture_output=True, text=True, check=True
    )
    return json.loads(completed.stdout)


def main(arguments: list[str]) -> int:
    """Run the command that the arguments name and return the exit code."""
    match arguments:
        case ["questions"]:
            prompts = {
                name: {"trace": question.trace, "question": question.question} for name, question in questions().items()
            }
            print(json.dumps(prompts, indent=1))
        case ["cli"]:
            print(
                json.dumps(
                    {
                        name: answer_by_command_line(question, run_command_line)
                        for name, question in questions().items()
                    },
                    indent=1,
                )
            )
        case ["score", file]:
            answers = json.loads(Path(file).read_text(encoding="utf-8"))
            results = {name: is_right(question, answers.get(name)) for name, question in questions().items()}
            for name, is_correct in results.items():
                print(f"{'right' if is_correct else 'WRONG':7}{name:26}{answers.get(name)}")
            print(f"{sum(results.values())} of {len(results)} right")
            return 0 if all(results.values()) else 1
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
