"""Scopes of steps: what is in step N, or in the steady ones, has the counts of the report steps."""

from __future__ import annotations

import pytest
from conftest import REPOSITORY
from opening import open_trace
from planted import Loop, allocating, deep_queue, launch_bound, layers, planted
from synthetic import Trace

from nsys_insight.errors import UsageError
from nsys_insight.ingest.scope import Scope
from nsys_insight.packs.step_options import StepOptions

SCOPE_CONTENT = """
    SELECT
        (SELECT count(*) FROM kernels) AS kernels,
        (SELECT coalesce(sum(duration_ns), 0)::BIGINT FROM kernels) AS kernel_ns,
        (SELECT sum(duration_ns)::BIGINT FROM outer_api_calls) AS api_ns,
        (SELECT count(*) FROM outer_api_calls WHERE call_group IN ('launch', 'graph launch')) AS launch_calls,
        (SELECT sum(end_ns - start_ns)::BIGINT FROM wall) AS duration_ns,
        (SELECT avg(busy_ns) FROM used_gpus)::BIGINT AS gpu_busy_ns"""


def two_processes():
    """Two processes whose steps differ: 3 layers 6 times, 2 layers 9 times."""
    trace = Trace()
    loops = [Loop(trace, pid=pid, gpu=gpu) for pid, gpu in ((100, 0), (200, 1))]
    for loop, steps, count in zip(loops, (6, 9), (3, 2), strict=True):
        for _ in range(steps):
            loop.step()
            layers(loop, count=count)
    return planted(trace, *loops)


def read_content(trace):
    (row,) = trace.sql(SCOPE_CONTENT).to_dicts()
    return row


def steps_of(trace):
    return trace.sql("SELECT * FROM steps WHERE step IS NOT NULL ORDER BY step").to_dicts()


# The GPU far behind the host, in ranges; steps by kernels, with a warm-up.
@pytest.mark.slow
@pytest.mark.parametrize("build_trace", [lambda: deep_queue(nvtx="step"), lambda: allocating(warm_up=2)])
def test_a_step_scope_has_the_counts_of_the_report(build_trace, tmp_path):
    path = build_trace().write(tmp_path / "trace.sqlite")
    with open_trace(path) as trace:
        steps = steps_of(trace)
        for step in steps[-2:-1]:
            with trace.scope(step=step["step"]) as step_session:
                assert read_content(step_session) == {name: step[name] for name in read_content(step_session)}
                assert steps_of(step_session) == [step]
        steady = [step for step in steps if step["phase"] == "steady"]
        with trace.scope(steady=True) as part:
            assert read_content(part) == {name: sum(step[name] for step in steady) for name in read_content(part)}
            assert steps_of(part) == steady
            # A quantity has the same value in every scope.
            assert part.answer("per-token").dicts()[0] == trace.answer("per-token").dicts()[0]
        assert 0 < len(steady) <= len(steps)


@pytest.mark.slow
def test_a_real_step_too():
    with open_trace(REPOSITORY / "sample_traces" / "decode_graph_whole.sqlite") as trace:
        step = steps_of(trace)[3]
        with trace.scope(step=3) as step_session:
            known_values = {name: value for name, value in read_content(step_session).items() if step[name] is not None}
            assert known_values == {name: step[name] for name in known_values}
            assert step_session.answer("graph-candidates").report == "graph-candidates"
            assert step_session.answer("info").dicts()[3]["detail"] == "the wall time of step 3"


@pytest.mark.slow
def test_steps_are_those_of_the_process_and_the_rest_of_the_scope_narrows_them(tmp_path):
    path = two_processes().write(tmp_path / "trace.sqlite")
    with open_trace(path) as trace:
        with trace.scope(process=100) as first_process, first_process.scope(step=4) as step_session:
            assert read_content(step_session) == {
                name: steps_of(first_process)[4][name] for name in read_content(step_session)
            }
        with trace.scope(process=200, steady=True) as steady:
            third_end_ns = steps_of(steady)[2]["end_ns"]
            with steady.scope(to_ns=third_end_ns) as beginning:
                assert read_content(beginning)["duration_ns"] == third_end_ns - steps_of(steady)[0]["start_ns"]
                assert read_content(beginning)["kernels"] == 3 * 7


@pytest.mark.slow
def test_ranges_and_steps_together(tmp_path):
    trace = Trace()
    loop = Loop(trace)
    for number in range(6):
        loop.step()
        loop.range = None
        with loop.host.nvtx("odd" if number % 2 else "even"):
            layers(loop)
    path = planted(trace, loop).write(tmp_path / "trace.sqlite")
    with open_trace(path, step=3, nvtx="odd") as narrowed:
        assert read_content(narrowed)["kernels"] == 9
    # The next step's range begins a moment before its first launch, at which the next step begins.
    with open_trace(path, step=3, nvtx="even") as neither:
        assert read_content(neither)["kernels"] == 0
    with pytest.raises(UsageError, match="no NVTX range is named 'other'"), open_trace(path, step=3, nvtx="other"):
        pass


def test_a_missing_step_is_refused_with_the_existing_ones(tmp_path):
    path = launch_bound(5).write(tmp_path / "trace.sqlite")

    def refused(**scope):
        with pytest.raises(UsageError) as error, open_trace(path, **scope):
            pass
        return error.value.message, error.value.hint

    assert refused(step=99) == ("there is no step 99", "there are steps 0 to 4; nsys-insight steps lists them")
    trace = Trace()
    trace.thread().launch("once(int)", runs=100)
    trace.write(path)
    message, hint = refused(steady=True)
    assert message.startswith("no steps were found: no repetition was found")
    assert hint == "select a part with --nvtx RANGE, or with --from and --to"
    assert refused(steady=True, step=1) == ("--steady and --step both choose steps", "give one of them")


@pytest.mark.slow
def test_step_options_of_the_session_decide_the_steps(tmp_path):
    import nsys_insight

    path = deep_queue(nvtx="step").write(tmp_path / "trace.sqlite")
    options = StepOptions(step_method="sequence")
    with nsys_insight.open(path, scope=Scope(step=2), steps=options) as step_session:
        assert step_session.run("per-token", step_method="sequence").height
        assert step_session.sql("SELECT method FROM step_method").item() == "sequence"
        with pytest.raises(UsageError, match="the steps of this scope"):
            step_session.run("per-token", step_range="step")


@pytest.mark.slow
def test_every_answer_says_its_scope(tmp_path, capsys):
    import io

    from nsys_insight.render import write

    with open_trace(launch_bound().write(tmp_path / "trace.sqlite"), step=2, device=0) as step_session:
        for fmt, heading in (
            ("table", "Kernels by GPU time (scope: --step 2 --device 0)"),
            ("markdown", "## Kernels by GPU time (scope: --step 2 --device 0)"),
            ("json", '"step": 2'),
        ):
            text = io.StringIO()
            write(step_session.answer("top"), text, fmt)
            assert heading in text.getvalue()
        assert step_session.diagnose().text().startswith("trace.sqlite --step 2 --device 0: ")
        assert "Nothing in this scope (--step 2 --device 0)" in step_session.answer("nvtx").empty
