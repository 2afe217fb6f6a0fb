"""The questions for agents: each answer worked out a second way, and what the command line alone answers.

The second way knows nothing of this package: sqlite3 and plain loops over the export, or how the trace was made.
"""

from __future__ import annotations

import functools
import io
import json
import runpy
import sqlite3
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from nsys_insight.cli.main import app

REPOSITORY = Path(__file__).parents[1]
SCORE = runpy.run_path(str(REPOSITORY / "benchmarks" / "evals" / "score.py"))
QUESTIONS = SCORE["questions"]()
KERNELS = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"


@functools.cache
def rows(trace, query):
    path = REPOSITORY / "sample_traces" / f"{trace}.sqlite"
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        return database.execute(query).fetchall()


def one(trace, query):
    return rows(trace, query)[0][0]


def calls(name):
    return f"""SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId
        WHERE s.value LIKE '{name}%'"""


def ranges(trace, name):
    """The NVTX ranges of a name, by start."""
    return rows(
        trace,
        f"""SELECT start, "end" FROM NVTX_EVENTS LEFT JOIN StringIds s ON s.id = textId
        WHERE coalesce(text, s.value) = '{name}' ORDER BY start""",
    )


def in_steps(trace, query):
    """What a query of start times finds inside the decode steps, by step."""
    starts = [start for (start,) in rows(trace, query)]
    return [sum(first <= start < last for start in starts) for first, last in ranges(trace, "decode_step")]


@functools.cache
def operations(trace):
    """When a GPU worked, in order: kernels, copies, memsets."""
    found = []
    for table in ("KERNEL", "MEMCPY", "MEMSET"):
        found += rows(trace, f'SELECT start, "end" FROM CUPTI_ACTIVITY_KIND_{table}')
    return sorted(found)


def busy_ns(trace, windows):
    """How long any operation ran inside the windows, by a sweep."""
    total = 0
    for first, last in windows:
        at = first
        for start, end in operations(trace):
            start, end = max(start, at), min(end, last)  # noqa: PLW2901 - cut to what is not counted yet
            if end > start:
                total, at = total + end - start, end
    return total


def longest_gap(trace):
    longest, end = 0, operations(trace)[0][0]
    for start, until in operations(trace):
        longest, end = max(longest, start - end), max(end, until)
    return longest


def launch_bound(trace):
    """Mostly idle, and nearly all of that before a kernel whose launch call began after the work before it was done."""
    launched = rows(
        trace,
        """SELECT k.start, k."end", r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
        USING (correlationId) ORDER BY k.start""",
    )
    steps = ranges(trace, "decode_step")
    wall = sum(last - first for first, last in steps)
    idle, late, end = 0, 0, launched[0][0]
    for start, until, called in launched:
        if start > end:
            idle += start - end
            late += (start - end) * (called > end)
        end = max(end, until)
    return "launch-bound" if busy_ns(trace, steps) < 0.2 * wall and late > 0.75 * idle else "something else"


def wall_of_steps(trace):
    found = ranges(trace, "decode_step")
    return sum(end - start for start, end in found) / len(found)


def graph_step():
    """The mean distance of a graph launch from the next, but for the first two, which are slow."""
    starts = [start for start, _ in ranges("decode_graph_node", "decode_step")][2:]
    return (starts[-1] - starts[0]) / (len(starts) - 1)


HOTTEST = """SELECT s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
    GROUP BY s.value ORDER BY sum(k."end" - k.start) DESC LIMIT 1"""
LAUNCHES = """SELECT r.start FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId
    WHERE s.value LIKE 'cudaLaunchKernel%' OR s.value LIKE 'cuLaunchKernel%'"""
WAITS = """SELECT r.start FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId
    WHERE s.value LIKE 'cudaStreamSynchronize%'"""
GRAPH_NS = 'SELECT sum("end" - start) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE'
READ_BACK = """SELECT sum(m.bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY m
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) WHERE copyKind = 2 AND r.start BETWEEN {} AND {}"""
PAGEABLE = "SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 1 AND srcKind = 0"
SECOND_WAY = {
    "eager-kernels": lambda: one("decode_eager", KERNELS),
    "eager-verdict": lambda: launch_bound("decode_eager"),
    "eager-launch-calls": lambda: sum(in_steps("decode_eager", LAUNCHES)) / 32,
    "eager-step-ns": lambda: wall_of_steps("decode_eager"),
    "eager-busy": lambda: 100 * busy_ns("decode_eager", ranges("decode_eager", "decode_step")) / sum(
        end - start for start, end in ranges("decode_eager", "decode_step")
    ),
    "eager-hottest-kernel": lambda: one("decode_eager", HOTTEST),
    "eager-longest-gap": lambda: longest_gap("decode_eager"),
    "eager-read-back": lambda: sum(
        one("decode_eager", READ_BACK.format(*step)) for step in ranges("decode_eager", "decode_step")
    ) / 32,
    "eager-waits": lambda: sum(in_steps("decode_eager", WAITS)) / 32,
    "eager-sms": lambda: one("decode_eager", "SELECT smCount FROM TARGET_INFO_GPU"),
    "fresh-prefill": lambda: next(end - start for start, end in ranges("decode_fresh", "prefill")),
    "fresh-steps": lambda: len(ranges("decode_fresh", "decode_step")),
    "graph-kernels-per-step": lambda: one("decode_graph_node", f"{KERNELS} WHERE graphNodeId > 0") / 32,
    "graph-launches": lambda: one("decode_graph_node", calls("cudaGraphLaunch")),
    "graph-speedup": lambda: 100 * (1 - graph_step() / wall_of_steps("decode_eager")),
    "graph-hidden": lambda: 100 * one("decode_graph_whole", GRAPH_NS) / (
        one("decode_graph_whole", GRAPH_NS) + sum(end - start for start, end in operations("decode_graph_whole"))
    ),
    "churn-mallocs": lambda: one("churn", calls("cudaMalloc")),
    "churn-pageable": lambda: one("churn", PAGEABLE),
    "churn-small-grid": lambda: one(
        "churn",
        """SELECT s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
        WHERE gridX * gridY * gridZ = 1 LIMIT 1""",
    ),
    "churn-streams": lambda: len({
        stream for table in ("KERNEL", "MEMCPY", "MEMSET")
        for (stream,) in rows("churn", f"SELECT DISTINCT streamId FROM CUPTI_ACTIVITY_KIND_{table}")
    }),
}  # fmt: skip


def ask(arguments):
    """Run a command in this process; return the JSON that it prints."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(io.StringIO()):
        app(arguments, standalone_mode=False)
    return json.loads(said.getvalue())


def test_there_are_twenty_with_a_second_way_each():
    assert len(QUESTIONS) == 20
    assert QUESTIONS.keys() == SECOND_WAY.keys()


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_is_right_by_a_second_way(name):
    found = SECOND_WAY[name]()
    assert SCORE["is_right"](QUESTIONS[name], found), found


@pytest.mark.slow
def test_the_command_line_alone_answers_all(monkeypatch):
    monkeypatch.chdir(REPOSITORY / "sample_traces")
    wrong = {}
    asked = functools.cache(lambda *words: ask(list(words)))
    for name, question in QUESTIONS.items():
        given = SCORE["answered"](question, lambda words: asked(*words))
        if not SCORE["is_right"](question, given):
            wrong[name] = given
    assert wrong == {}


def test_a_number_is_right_in_a_sentence_and_within_its_tolerance_only():
    busy, verdict, kernels = (QUESTIONS[name] for name in ("eager-busy", "eager-verdict", "eager-kernels"))
    right = SCORE["is_right"]
    assert right(busy, 13.7)
    assert right(busy, "about 13.75 % of the wall")
    assert not right(busy, 13.9)
    assert not right(busy, "between 13.6 and 13.8")
    assert right(kernels, "6,469 kernels")
    assert not right(kernels, 6470)
    assert not right(kernels, None)
    assert right(verdict, "Launch-bound")
    assert not right(verdict, "GPU-bound")


def test_answers_are_scored_in_a_table(tmp_path, monkeypatch, capsys):
    answers = tmp_path / "answers.json"
    given = {name: each.answer if isinstance(each.answer, int | float) else None for name, each in QUESTIONS.items()}
    answers.write_text(json.dumps(given))
    assert SCORE["main"](["score", str(answers)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "17 of 20 right"
    assert SCORE["main"](["questions"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == QUESTIONS.keys()
