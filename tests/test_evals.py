"""The questions for agents: each answer is calculated in a second way, and the command line alone answers all.

The reference answers do not use this package: they use sqlite3 and plain loops over the export, or how the trace was
made.
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
def read_rows(trace, query):
    path = REPOSITORY / "sample_traces" / f"{trace}.sqlite"
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        return database.execute(query).fetchall()


def first_value(trace, query):
    return read_rows(trace, query)[0][0]


def count_calls_query(name):
    return f"""SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId
        WHERE s.value LIKE '{name}%'"""


def list_ranges(trace, name):
    """Return the NVTX ranges of a name, by start."""
    return read_rows(
        trace,
        f"""SELECT start, "end" FROM NVTX_EVENTS LEFT JOIN StringIds s ON s.id = textId
        WHERE coalesce(text, s.value) = '{name}' ORDER BY start""",
    )


def count_in_steps(trace, query):
    """Count the start times of a query inside each decode step."""
    starts = [start for (start,) in read_rows(trace, query)]
    return [sum(first <= start < last for start in starts) for first, last in list_ranges(trace, "decode_step")]


@functools.cache
def list_operations(trace):
    """Return the start and end of kernels, copies and memsets, in order of time."""
    intervals = []
    for table in ("KERNEL", "MEMCPY", "MEMSET"):
        intervals += read_rows(trace, f'SELECT start, "end" FROM CUPTI_ACTIVITY_KIND_{table}')
    return sorted(intervals)


def measure_busy_ns(trace, windows):
    """Return how long any operation ran inside the windows, by a sweep."""
    total = 0
    for first, last in windows:
        counted_to = first
        for start, end in list_operations(trace):
            start, end = max(start, counted_to), min(end, last)  # noqa: PLW2901 - cut to the part that is not counted yet
            if end > start:
                total, counted_to = total + end - start, end
    return total


def measure_longest_gap(trace):
    longest, end = 0, list_operations(trace)[0][0]
    for start, operation_end in list_operations(trace):
        longest, end = max(longest, start - end), max(end, operation_end)
    return longest


def judge_bottleneck(trace):
    """Call a trace launch-bound if it is mostly idle, nearly always because the next launch came late."""
    kernels = read_rows(
        trace,
        """SELECT k.start, k."end", r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
        USING (correlationId) ORDER BY k.start""",
    )
    steps = list_ranges(trace, "decode_step")
    wall = sum(last - first for first, last in steps)
    idle, late, end = 0, 0, kernels[0][0]
    for start, kernel_end, call_start in kernels:
        if start > end:
            idle += start - end
            late += (start - end) * (call_start > end)
        end = max(end, kernel_end)
    return "launch-bound" if measure_busy_ns(trace, steps) < 0.2 * wall and late > 0.75 * idle else "something else"


def measure_step_wall(trace):
    steps = list_ranges(trace, "decode_step")
    return sum(end - start for start, end in steps) / len(steps)


def measure_graph_step():
    """Return the mean distance of graph launches, without the first two, which are slow."""
    starts = [start for start, _ in list_ranges("decode_graph_node", "decode_step")][2:]
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
REFERENCE_ANSWERS = {
    "eager-kernels": lambda: first_value("decode_eager", KERNELS),
    "eager-verdict": lambda: judge_bottleneck("decode_eager"),
    "eager-launch-calls": lambda: sum(count_in_steps("decode_eager", LAUNCHES)) / 32,
    "eager-step-ns": lambda: measure_step_wall("decode_eager"),
    "eager-busy": lambda: 100 * measure_busy_ns("decode_eager", list_ranges("decode_eager", "decode_step")) / sum(
        end - start for start, end in list_ranges("decode_eager", "decode_step")
    ),
    "eager-hottest-kernel": lambda: first_value("decode_eager", HOTTEST),
    "eager-longest-gap": lambda: measure_longest_gap("decode_eager"),
    "eager-read-back": lambda: sum(
        first_value("decode_eager", READ_BACK.format(*step)) for step in list_ranges("decode_eager", "decode_step")
    ) / 32,
    "eager-waits": lambda: sum(count_in_steps("decode_eager", WAITS)) / 32,
    "eager-sms": lambda: first_value("decode_eager", "SELECT smCount FROM TARGET_INFO_GPU"),
    "fresh-prefill": lambda: next(end - start for start, end in list_ranges("decode_fresh", "prefill")),
    "fresh-steps": lambda: len(list_ranges("decode_fresh", "decode_step")),
    "graph-kernels-per-step": lambda: first_value("decode_graph_node", f"{KERNELS} WHERE graphNodeId > 0") / 32,
    "graph-launches": lambda: first_value("decode_graph_node", count_calls_query("cudaGraphLaunch")),
    "graph-speedup": lambda: 100 * (1 - measure_graph_step() / measure_step_wall("decode_eager")),
    "graph-hidden": lambda: 100 * first_value("decode_graph_whole", GRAPH_NS) / (
        first_value("decode_graph_whole", GRAPH_NS)
        + sum(end - start for start, end in list_operations("decode_graph_whole"))
    ),
    "churn-mallocs": lambda: first_value("churn", count_calls_query("cudaMalloc")),
    "churn-pageable": lambda: first_value("churn", PAGEABLE),
    "churn-small-grid": lambda: first_value(
        "churn",
        """SELECT s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName
        WHERE gridX * gridY * gridZ = 1 LIMIT 1""",
    ),
    "churn-streams": lambda: len({
        stream for table in ("KERNEL", "MEMCPY", "MEMSET")
        for (stream,) in read_rows("churn", f"SELECT DISTINCT streamId FROM CUPTI_ACTIVITY_KIND_{table}")
    }),
}  # fmt: skip


def ask(arguments):
    """Run a command in this process; return the JSON that it prints."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(io.StringIO()):
        app(arguments, standalone_mode=False)
    return json.loads(output.getvalue())


def test_there_are_twenty_questions_with_a_reference_answer_each():
    assert len(QUESTIONS) == 20
    assert QUESTIONS.keys() == REFERENCE_ANSWERS.keys()


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_agrees_with_the_reference(name):
    answer = REFERENCE_ANSWERS[name]()
    assert SCORE["is_right"](QUESTIONS[name], answer), answer


@pytest.mark.slow
def test_the_command_line_alone_answers_all(monkeypatch):
    monkeypatch.chdir(REPOSITORY / "sample_traces")
    wrong = {}
    ask_once = functools.cache(lambda *words: ask(list(words)))
    for name, question in QUESTIONS.items():
        answer = SCORE["answer_by_command_line"](question, lambda words: ask_once(*words))
        if not SCORE["is_right"](question, answer):
            wrong[name] = answer
    assert wrong == {}


def test_a_number_may_be_in_a_sentence_and_must_be_within_its_tolerance():
    busy, verdict, kernels = (QUESTIONS[name] for name in ("eager-busy", "eager-verdict", "eager-kernels"))
    right = SCORE["is_right"]
    assert right(busy, 13.7)
    assert right(busy, "about 13.75% of the wall")
    assert not right(busy, 13.9)
    assert not right(busy, "between 13.6 and 13.8")
    assert right(kernels, "6,469 kernels")
    assert not right(kernels, 6470)
    assert not right(kernels, None)
    assert right(verdict, "Launch-bound")
    assert not right(verdict, "GPU-bound")


def test_answers_are_scored_in_a_table(tmp_path, monkeypatch, capsys):
    answers = tmp_path / "answers.json"
    own_answers = {
        name: question.answer if isinstance(question.answer, int | float) else None
        for name, question in QUESTIONS.items()
    }
    answers.write_text(json.dumps(own_answers))
    assert SCORE["main"](["score", str(answers)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "17 of 20 right"
    assert SCORE["main"](["questions"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == QUESTIONS.keys()
