"""A fleet: traces worked out once by many workers answer as the traces do, whatever happens on the way."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
from command_line import run
from many_traces import everything
from rank_traces import Run

import nsys_insight
from nsys_insight.errors import ToolError, TraceError, UsageError
from nsys_insight.facts import file, store
from nsys_insight.fleet import pool
from nsys_insight.fleet.fleet import Workers, fleet
from nsys_insight.ingest import facts_folder, nsys

MS = 1_000_000
SECRET = "hunter2-in-the-environment"  # noqa: S105 - it has to be somewhere to be left out
# About the run, and by themselves: all that `diagnose` looks at is among them.
OF_RUN = ("ranks", "collectives")
VIEWS = (
    "kernels", "api_calls", "memcpys", "memsets", "syncs", "nvtx_ranges", "memory_events", "gpu_metrics", "os_calls",
    "graph_launches", "gpu_limits", "threads", "call_frames", "diagnostics", "profiler_overheads",
)  # fmt: skip
OF_EACH = ("top", "idle")


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Give two ranks, the second one late, of which only the launcher says which is which; and a file that is none."""
    folder = tmp_path_factory.mktemp("run")
    run = Run(2, steps=6)
    run.python[1] = {2: 12 * MS, 4: 12 * MS}
    for number, trace in enumerate(run.traces()):
        trace.environment = {"RANK": str(1 - number), "WORLD_SIZE": "3", "TOKEN": SECRET}
        trace.write(folder / f"part-{'ab'[number]}.sqlite")
    (folder / "part-c.sqlite").write_text("nothing that nsys wrote")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def facts(traces, tmp_path_factory):
    """Their facts, by one process; and what was said of each."""
    folder = tmp_path_factory.mktemp("facts")
    return folder, fleet(traces, folder, Workers())


def folders(facts):
    return sorted(facts.glob("*.facts"))


def states(answer):
    return {row["file"]: row["state"] for row in answer.dicts()}


def said(paths, reports=(*OF_RUN, *OF_EACH)):
    with nsys_insight.open(paths, use_cache=False) as opened:
        answers = {name: opened.answer(name) for name in reports}
        diagnosis = opened.diagnose()
        sql = opened.sql(
            "SELECT trace, name, sum(duration_ns)::BIGINT AS time_ns FROM kernels GROUP BY ALL ORDER BY ALL"
        )
        told = {name: (answer.dicts(), answer.notes) for name, answer in answers.items()}
    findings = [(each.name, each.recoverable_ns, each.place, each.evidence) for each in diagnosis.findings]
    return {
        **told,
        "diagnose": (diagnosis.run.sentence, diagnosis.verdict, diagnosis.shares, findings),
        "sql": sql.rows(),
    }


# The same answers ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_facts_answer_as_the_traces_do(traces, facts, monkeypatch):
    expected = said(traces[:2])
    assert expected["ranks"][0][0]["late_steps"] == 2
    assert "rank 2 is not in these traces" in expected["ranks"][1]  # as the launcher says
    found, fill = [], store.Facts._fill

    def noted(facts, kind, *rest):
        found.append(kind)
        fill(facts, kind, *rest)

    monkeypatch.setattr(store.Facts, "_fill", noted)
    assert said(folders(facts[0])) == expected
    assert found == []  # all of them were there
    with nsys_insight.open(folders(facts[0]), use_cache=False) as opened:
        opened.answer("steps", step_range="step")
        assert "steps" in found  # which are others now
        found.clear()
        # What facts are may change with the version: then those that lie there are left there.
        monkeypatch.setattr(store, "definitions", lambda: "another version")
        assert opened.answer("ranks").dicts() == expected["ranks"][0]
        assert {"ranks", "nccl"} <= set(found)


def test_of_the_environment_the_rank_is_kept_and_nothing_else(facts):
    with nsys_insight.open(folders(facts[0])[0]) as trace:
        settings = trace.sql("SELECT value FROM raw.META_DATA_CAPTURE WHERE value LIKE '%=%'")
        assert sorted(settings["value"]) == ['RANK="1"', 'WORLD_SIZE="3"']


# What goes wrong -----------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_listed_and_the_others_answer(facts):
    folder, answer = facts
    assert states(answer) == {"part-a": "written", "part-b": "written", "part-c": "failed"}
    first = answer.dicts()[0]
    assert (first["file"], first["size_bytes"]) == ("part-c", None)
    assert "is a text file, not a trace" in first["why"]
    assert answer.notes[0].startswith("2 written, 1 failed; ")
    printed = run("top", folder, "--format", "csv")
    assert printed.stdout.startswith("name,"), "of two ranks added up"
    assert f"1 trace is not in {folder}: fleet could not read part-c.sqlite" in printed.stderr


def test_what_is_finished_is_kept_until_the_file_changes(traces, facts, tmp_path):
    run, folder = tmp_path / "run", tmp_path / "facts"
    shutil.copytree(facts[0], folder)
    run.mkdir()
    paths = [shutil.copy(path, run / path.name) for path in traces]
    said_of = {path.stem: facts_folder.about(folder / f"{path.stem}.facts") for path in paths[:2]}
    for path in paths[:2]:  # as if it had been worked out here
        about = said_of[path.stem]
        moved = facts_folder.About(**{**vars(about), "identity": facts_folder.cache_folder.key(path)})
        moved.write(folder / f"{path.stem}.facts")
    before = [
        (path, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*.parquet")) if path.parent.name != "run"
    ]
    assert states(fleet(paths, folder, Workers())) == {"part-a": "kept", "part-b": "kept", "part-c": "failed"}
    assert before == [(path, path.stat().st_mtime_ns) for path, _ in before]
    paths[0].write_bytes(paths[0].read_bytes()[:20_000])
    # What was worked out of it would answer for the file as it was.
    assert states(fleet(paths, folder, Workers())) == {"part-a": "failed", "part-b": "kept", "part-c": "failed"}
    assert [path.name for path in folders(folder)] == ["part-b.facts"]
    assert not (folder / ".work").exists()


def test_traces_none_of_which_can_be_read(traces, tmp_path, monkeypatch):
    with pytest.raises(TraceError, match=r"^part-c.sqlite cannot be read: .* is a text file"):
        fleet(traces[2:], tmp_path / "facts", Workers())
    report = tmp_path / "part-d.nsys-rep"
    report.write_bytes(b"NVIDIA Tegra Profiler Report 20240101" + bytes(100))
    monkeypatch.setattr(nsys, "installed", list)
    said = r"^none of 2 traces can be read; part-c.* text file"
    with pytest.raises(TraceError, match=said):
        fleet([traces[2], report], tmp_path / "facts", Workers())
    failed = facts_folder.failed_of(tmp_path / "facts")
    assert failed["part-d.nsys-rep"] == f"nsys, which exports it, is not installed on {platform.node()}"


def test_facts_do_not_go_among_the_traces(traces):
    with pytest.raises(UsageError, match="the traces themselves are in"):
        fleet(traces, traces[0].parent, Workers())


def test_files_of_one_name_get_folders_of_their_own(traces, tmp_path, monkeypatch):
    for node in ("node1", "node2"):
        (tmp_path / node).mkdir()
        shutil.copy(traces[2], tmp_path / node / "rank0.sqlite")
    made = []
    monkeypatch.setattr(pool, "in_process", lambda tasks: made.extend(tasks) or iter(()))
    with pytest.raises(KeyError):
        fleet([tmp_path / "node1/rank0.sqlite", tmp_path / "node2/rank0.sqlite"], tmp_path / "facts", Workers())
    assert [task.folder.name for task in made] == ["node1-rank0.facts", "node2-rank0.facts"]


def test_without_dask_it_is_said_how_to_install_it(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "has_dask", lambda: False)
    with pytest.raises(ToolError, match="several workers need Dask") as caught:
        fleet(traces, tmp_path / "facts", Workers(count=2))
    assert "pip install 'nsys-insight[fleet]'" in caught.value.hint
    assert "--workers 1" in caught.value.hint


# On a cluster --------------------------------------------------------------------------------------------------------


def kill_the_first_worker(folder, killed):
    """Kill the process that makes the first folder, which is named after it, in the middle of it."""
    end = time.monotonic() + 60
    while not killed and time.monotonic() < end:
        with suppress(OSError):
            for made in folder.glob(".work/.nsys-insight-*/*/facts"):
                process = int(made.parent.parent.name.removeprefix(".nsys-insight-").partition("-")[0])
                assert process != os.getpid()
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                break
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.skipif(not pool.has_dask(), reason="Dask is not installed")
def test_a_worker_that_is_killed_is_replaced(traces, tmp_path):
    paths, folder, killed = [everything().write(tmp_path / "all.sqlite"), *traces[1:]], tmp_path / "facts", []
    watch = threading.Thread(target=kill_the_first_worker, args=(folder, killed))
    watch.start()
    found = fleet(paths, folder, Workers(count=2, memory_bytes=2 * 10**9))
    watch.join()
    assert killed
    assert states(found) == {"all": "written", "part-b": "written", "part-c": "failed"}
    assert sorted(path.name for path in folder.iterdir()) == ["all.facts", "fleet.json", "part-b.facts", "run"]
    # Of a trace that has all tables, all of them are there.
    with nsys_insight.open(paths[0]) as trace, nsys_insight.open(folder / "all.facts") as copy:
        for view in VIEWS:
            counted = f"SELECT count(*) FROM {view}"
            assert trace.sql(counted).rows() == copy.sql(counted).rows() != [(0,)], view


@pytest.mark.skipif(not pool.has_dask(), reason="Dask is not installed")
def test_a_scheduler_that_does_not_answer(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_TIMEOUT_S", 0.5)
    with pytest.raises(ToolError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        fleet(traces, tmp_path / "facts", Workers(scheduler="tcp://127.0.0.1:9"))


CLUSTER = """
import sys
from distributed import LocalCluster
with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, host="127.0.0.1",
                  protocol="tcp") as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not pool.has_dask(), reason="Dask is not installed")
def test_a_cluster_that_somebody_else_started_and_its_end(traces, tmp_path):
    folder, command = tmp_path / "facts", [sys.executable, "-c", CLUSTER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, **pipes) as cluster:
        workers = Workers(scheduler=cluster.stdout.readline().strip())
        assert states(fleet(traces[1:], folder, workers)) == {"part-b": "written", "part-c": "failed"}
        killed: list[int] = []
        watch = threading.Thread(target=kill_the_first_worker, args=(folder, killed))
        watch.start()
        with pytest.raises(ToolError, match=r"no longer answers; finished files are kept") as caught:
            fleet(traces, folder, workers)
        watch.join()
        assert killed == [cluster.pid]
        assert caught.value.hint == "when it is there again, the same command goes on with the rest"
    assert [path.name for path in folders(folder)] == ["part-b.facts"]


@pytest.mark.skipif(not pool.has_dask(), reason="Dask is not installed")
def test_keys_are_asked_for_where_a_scheduler_has_them(traces, tmp_path):
    with pytest.raises(ToolError, match=r"there are no keys to talk over TLS with tls://127.0.0.1:9") as caught:
        fleet(traces, tmp_path / "facts", Workers(scheduler="tls://127.0.0.1:9"))
    assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in caught.value.hint


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command(traces, facts):
    done = run("fleet", traces[0].parent, "-o", facts[0], "--format", "csv", "--workers", "1")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "file,state,size_bytes,time_ns,why")
    assert "note: 2 kept, 1 failed" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "fleet needs a folder to write to"),
        (("-o", "x", "--scheduler", "tcp://h:1", "--workers", "2"), "--scheduler has its own workers"),
        (("-o", "x", "--memory", "1MB"), "--memory 1MB is too little for a worker"),
    ],
)
def test_what_cannot_be_asked(traces, arguments, text):
    done = run("fleet", traces[0], *arguments)
    assert done.returncode == 2
    assert text in done.stderr


def test_what_a_folder_says_need_not_be_believed(tmp_path):
    for text in ("", "{}", "[]", '{"schema": "nsys-insight-facts/1"}', '{"schema": "nsys-insight-facts/1", "file": 1}'):
        (tmp_path / "about.json").write_text(text)
        assert facts_folder.about(tmp_path) is None


def test_the_definitions_are_those_of_the_facts_in_the_cache():
    assert store.definitions is file.definitions
